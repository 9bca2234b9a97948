#!/usr/bin/env python3
"""Times IndexFusedIVFFlat against FAISS's IndexIVFFlat with the same lists.

    PYTHONPATH=build/cpu/python benchs/cpu/bench_ivf_cpu.py \\
        --out benchs/results/cpu/ivf.json --commit "$(git rev-parse HEAD)" \\
        --wheel-python wheelenv/bin/python

SIFT (99,000 descriptors of 128 dimensions, of which FAISS makes the lists); the
queries are the 1,000 that came with them and, for larger batches, stored
vectors with a little noise. Every method has a process of its own, and they
take turns; no two calls in a row have the same queries. Rows have the median of
the rounds and the least of all calls. benchs/cpu/README.md says more.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_flat_cpu import cpu_name, digits  # noqa: E402
from result_file import save  # noqa: E402
from turns import PAUSE  # noqa: E402

SCRIPT = Path(__file__).resolve().parent / "ivf_worker.py"
TURN = 0.2  # seconds of calls in a turn, at least one call
SAME = 0.999  # ids of two methods that must agree: others are tied


class Worker:
    """A process of ivf_worker.py."""

    def __init__(self, kind, python, threads, files):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads),
                           OPENBLAS_NUM_THREADS=str(threads))
        if kind == "wheel":  # its own FAISS, not that of our build
            environment.pop("PYTHONPATH", None)
            environment.pop("LD_LIBRARY_PATH", None)
        self.process = subprocess.Popen(
            [python, str(SCRIPT), "ours" if kind == "ours" else "faiss",
             *map(str, files)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment)
        hello = self._read()
        self.method, self.faiss = hello["method"], hello["faiss"]
        self.calls = 0

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{self.process.args[2]} worker has ended with status "
                f"{self.process.wait()}")
        return json.loads(line)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def sift_data():
    """Vectors and 10,000 queries."""
    from faiss_bits.contrib import datasets

    data = datasets.sift()
    rng = np.random.default_rng(1)
    rows = rng.choice(len(data.base), 10000 - len(data.queries), replace=False)
    noise = rng.integers(-3, 4, (len(rows), data.base.shape[1]))
    more = data.base[rows] + noise.astype(np.float32)
    return data.base, np.concatenate([data.queries, more])


def write_files(folder, vectors, queries, options):
    """FAISS's lists of the vectors, and the queries."""
    import faiss

    d = vectors.shape[1]
    metric = faiss.METRIC_L2 if options.metric == "L2" else (
        faiss.METRIC_INNER_PRODUCT)
    index = faiss.IndexIVFFlat(
        faiss.IndexFlat(d, metric), d, options.nlist, metric)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(folder / "lists"))
    np.save(folder / "queries.npy", np.ascontiguousarray(queries))
    return folder / "lists", folder / "queries.npy"


def run_cell(workers, q, k, options):
    """The rows of a cell, and whether all methods agree."""
    times = {worker: [] for worker in workers}
    least = {worker: float("inf") for worker in workers}
    answers, first = {}, {}
    common = {"q": q, "k": k, "nprobe": options.nprobe}
    for worker in workers:
        reply = worker.ask(**common, first=0, calls=1, answer=True)
        answers[worker] = np.array(reply["ids"])
        first[worker] = worker.ask(
            **common, first=1, calls=1, answer=False)["ms"][0]
    for number in range(options.rounds):
        shift = number % len(workers)
        for worker in workers[shift:] + workers[:shift]:
            time.sleep(PAUSE)
            calls = max(1, min(1000, int(1e3 * TURN / first[worker])))
            spent = worker.ask(**common, first=2 + worker.calls,
                               calls=calls + 1, answer=False)["ms"][1:]
            worker.calls += calls
            times[worker].append(statistics.median(spent))
            least[worker] = min(least[worker], *spent)
    rows, right = [], True
    for worker in workers:
        same = float((answers[worker] == answers[workers[0]]).mean())
        right = right and same >= SAME
        rows.append({
            "bench": "ivf_cpu", "method": worker.method, **options.data,
            "nlist": options.nlist, "nprobe": options.nprobe, "q": q, "k": k,
            "metric": options.metric,
            "ms": digits(statistics.median(times[worker])),
            "least_ms": digits(least[worker]), "rounds": options.rounds,
            "same_ids": digits(same)})
        print(f"  q {q:6d} k {k:4d} {worker.method:15s} "
              f"{rows[-1]['ms']:10.4g} ms, least {rows[-1]['least_ms']:.4g}, "
              f"same ids {same:.5f}", flush=True)
    return rows, right


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", required=True, help="JSON file, kept whole after every cell")
    add("--wheel-python", metavar="PYTHON",
        help="a Python that has faiss-cpu; without it, that rival is left out")
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"),
        help="for meta (default: $FAISS_BITS_COMMIT)")
    add("--date", default=datetime.date.today().isoformat(), help="for meta")
    add("--threads", type=int, default=os.cpu_count(),
        help="of every method (default: all)")
    add("--vectors", metavar="FILE.npy", help="in place of SIFT; its first "
        "half is stored, the second searches")
    add("--nlist", type=int, default=256)
    add("--nprobe", type=int, default=16)
    add("--metric", choices=["L2", "IP"], default="L2")
    add("--qs", type=numbers, default=[1, 10, 1000, 10000])
    add("--ks", type=numbers, default=[10, 100])
    add("--rounds", type=int, default=9)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    if options.vectors:
        both = np.load(options.vectors)
        vectors, queries = np.array_split(both, 2)
        name = Path(options.vectors).name
    else:
        vectors, queries = sift_data()
        name = "sift"
    if max(options.qs) > len(queries):
        print(f"--qs {max(options.qs)}: there are {len(queries)} queries",
              file=sys.stderr)
        return 2
    options.data = {"data": name, "n": len(vectors), "d": vectors.shape[1]}
    rows, right, workers = [], True, []
    with tempfile.TemporaryDirectory() as folder:
        try:
            files = write_files(Path(folder), vectors, queries, options)
            workers = [Worker("ours", sys.executable, options.threads, files),
                       Worker("native", sys.executable, options.threads, files)]
            if options.wheel_python:
                workers.append(Worker("wheel", options.wheel_python,
                                      options.threads, files))
            meta = {"cpu": cpu_name(), "cores": os.cpu_count(),
                    "threads": options.threads, "faiss": workers[0].faiss,
                    "faiss_wheel": workers[-1].faiss,
                    "load_before": [digits(x) for x in os.getloadavg()],
                    "commit": options.commit, "date": options.date}
            for q in options.qs:
                for k in options.ks:
                    more, agreed = run_cell(workers, q, k, options)
                    rows += more
                    right = right and agreed
                    save(options.out, {"meta": meta, "rows": rows})
        finally:
            for worker in workers:
                worker.close()
    if not right:
        print("WRONG: methods disagree", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
