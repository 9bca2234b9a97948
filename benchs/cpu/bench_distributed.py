#!/usr/bin/env python3
"""faiss_bits.distributed on a LocalCluster of CPU workers: what plan() says, with
rates of calibrate(), against what is measured.

    benchs/cpu/bench_distributed.py --out benchs/results/cpu/distributed.json
    benchs/cpu/bench_distributed.py --docs docs/distributed.md    # its tables

Every cell is calibrated and measured in turns; a row has the medians, `planned_ms`
and `ms`, whether all bytes were those of the plan, and the largest message. Jobs:
`load` (a .npy file that was just written), `search`, `knn_graph`, `kmeans` (5
iterations). --docs writes the table of such a file, and what plan() says of jobs
that are too large for one machine, into the page.
"""

import argparse
import datetime
import logging
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from result_file import load, save  # noqa: E402

NITER = 5
# n, d, q, k of each job.
CELLS = {
    "search": [
        (1 << 17, 64, 4000, 10), (1 << 17, 64, 4000, 100),
        (1 << 19, 32, 2000, 10), (1 << 18, 128, 2000, 10),
    ],
    "knn_graph": [(30000, 32, 30000, 10)],
    "kmeans": [(1 << 17, 32, 0, 256), (1 << 18, 32, 0, 64)],
}
BATCH = 1000
# Jobs of many machines, as they stand in the docs.
LARGE = [
    (10**9, 128, 10240, 10, 32, "search"),
    (10**9, 128, 10240, 2000, 32, "search"),
    (10**9, 128, 10**9, 10, 32, "knn_graph"),
    (10**9, 128, 0, 65536, 32, "kmeans"),
]


def timed(function):
    begin = time.perf_counter()
    result = function()
    return 1e3 * (time.perf_counter() - begin), result


def traffic(index):
    """As plans name it, since the index was made."""
    stats = index.stats()
    found = {f"client {name}": size for name, size in stats["client"].items()}
    for worker in stats["workers"]:
        for name in ("inputs", "outputs", "rows"):
            found[name] = found.get(name, 0) + worker["sent"].get(name, 0)
    largest = max(worker["largest_message"] for worker in stats["workers"])
    return found, largest


def cell(client, folder, job, n, d, q, k, runs):
    """Two rows: the load, and the job."""
    import numpy as np

    import faiss_bits.distributed as fd

    x = np.random.default_rng(n + d).random((n, d), np.float32)
    path = Path(folder) / "x.npy"
    np.save(path, x)
    workers = len(client.nthreads())
    specs = fd.ShardSpec.split(path, workers)
    times = {"load": ([], []), job: ([], [])}
    for _ in range(runs):
        loaded, index = timed(
            lambda: fd.DistributedFlat(client, specs, progress=False)
        )
        with index:
            rates = fd.calibrate(index, k, BATCH)
            plan = fd.plan(
                n, d, q, k, workers, job, batch=BATCH, niter=NITER, rates=rates
            )
            before, _ = traffic(index)
            if job == "search":
                call = lambda: index.search(x[:q], k, batch=BATCH)  # noqa: E731
            elif job == "knn_graph":
                call = lambda: fd.knn_graph(  # noqa: E731
                    index, k, batch=BATCH, progress=False
                )
            else:
                call = lambda: fd.kmeans(  # noqa: E731
                    index, k, NITER, init_centroids=x[:k], progress=False
                )
            took, _ = timed(call)
            after, largest = traffic(index)
        sent = {name: size - before.get(name, 0) for name, size in after.items()}
        exact = all(
            sent.get(name, 0) == size for name, size in plan.traffic.items()
        )
        first = 1e3 * plan.steps[0].seconds
        for name, planned, measured in (
            ("load", first, loaded), (job, 1e3 * plan.seconds - first, took)
        ):
            times[name][0].append(planned)
            times[name][1].append(measured)
    path.unlink()
    for name, (planned, measured) in times.items():
        row = {
            "bench": "distributed", "job": name, "workers": workers, "n": n, "d": d,
            "q": q, "k": k, "ms": round(statistics.median(measured), 3),
            "planned_ms": round(statistics.median(planned), 3),
        }
        if name != "load":
            row.update(
                bytes=sum(plan.traffic.values()), bytes_as_planned=exact,
                largest_message=largest,
            )
        yield row


def measure(options):
    import dask
    import distributed
    import faiss

    # Results are compared with what one process would take: no other threads.
    cluster = distributed.LocalCluster(
        n_workers=options.workers, threads_per_worker=1, processes=True,
        dashboard_address=None, silence_logs=logging.ERROR,
    )
    data = {
        "meta": {
            "cpu": platform.processor() or platform.machine(),
            "cores": os.cpu_count(), "faiss": faiss.__version__,
            "dask": dask.__version__, "runs": options.runs,
            "commit": options.commit, "date": datetime.date.today().isoformat(),
        },
        "rows": [],
    }
    with cluster, distributed.Client(cluster) as client:
        for job, cells in CELLS.items():
            for shape in cells:
                with tempfile.TemporaryDirectory() as folder:
                    for row in cell(client, folder, job, *shape, options.runs):
                        print(row, flush=True)
                        data["rows"].append(row)
                        save(options.out, data)


def measured_table(path):
    data = load(path)
    meta = data["meta"]
    lines = [
        f"{data['rows'][0]['workers']} worker processes on {meta['cores']} cores, "
        f"Dask {meta['dask']}, medians of {meta['runs']} ({meta['date']}, commit "
        f"{meta['commit'][:10]}; `benchs/results/cpu/distributed.json`):",
        "",
        "| job | n | d | q | k | planned | measured | measured / planned |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in data["rows"]:
        lines.append(
            f"| {row['job']} | {row['n']:,} | {row['d']} | {row['q']:,} | {row['k']} "
            f"| {row['planned_ms']:.0f} ms | {row['ms']:.0f} ms | "
            f"{row['ms'] / row['planned_ms']:.2f} |"
        )
    return "\n".join(lines)


def planned_tables():
    import faiss_bits.distributed as fd

    return "\n\n".join(fd.plan(*shape).table() for shape in LARGE)


def page(text, results):
    """The page with both of its tables made again."""
    for name, table in (
        ("measured", measured_table(results)), ("planned", planned_tables())
    ):
        mark = re.compile(
            f"(<!-- {name}: begin .*?-->\n).*?\n(<!-- {name}: end -->)", re.S
        )
        text, count = mark.subn(lambda m: f"{m[1]}\n{table}\n\n{m[2]}", text)
        if count != 1:
            raise ValueError(f"the page has {count} places for '{name}'")
    return text


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    results = Path(__file__).resolve().parents[1] / "results/cpu/distributed.json"
    add("--out", help="JSON file to write")
    add("--docs", help="page whose tables are to be written")
    add("--results", default=results, help="file that --docs reads")
    add("--workers", type=int, default=4)
    add("--runs", type=int, default=5)
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    if options.out:
        measure(options)
    if options.docs:
        path = Path(options.docs)
        path.write_text(page(path.read_text(), options.results))


if __name__ == "__main__":
    main()
