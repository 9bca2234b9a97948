"""Range searches on a GPU: ours (the program bench_range) and rivals', cell by
cell, to one result file.

    python benchs/bench_range.py --program build/gpu/benchs/bin/bench_range \\
        --out benchs/results/h200/range.json [options of the program]

Methods of the rows: `faiss_bits` (results as a sparse matrix on the device; of
`--indexes` `flat`, which in few dimensions keeps boxes and states the time for them
as `build_ms`, `brute_force`, which keeps nothing, `list_of_clusters` and `sss`),
`faiss_bits_host` (as FAISS's RangeSearchResult, with --host 1), and those of
range_rivals.py that can be imported: `torch` (float32 products and norms of some
queries at a time, compared with the radius, and nonzero()), `cuml`
(radius_neighbors_graph, L2 alone), `open3d` (fixed_radius_search, points of 3
dimensions by L2 alone) and `faiss_contrib` (FAISS's range_search_gpu).
The vectors of rivals are uniform too, but other ones; the number of their results
is stated. Their `calls` are those that the time is the median of: `--once-s` takes
the first call alone where that takes longer. `--rival-cells` names the cells that
rivals get, as METRIC:QUERIES:SELECTIVITY with commas between; an empty part stands
for all (`l2:10240:,:1:0.01`). `--limit-s` starts no cell of a rival after so many
seconds of it; what is left out is said.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from program import end_with  # noqa: E402
from range_rivals import RIVALS  # noqa: E402
from result_file import load, save  # noqa: E402


def median_ms(call, synchronize, least, seconds=0.5, once=float("inf")):
    """(median ms, last result, calls timed) of a call, after one that is not timed;
    of the first call itself where `least` is 0 or it takes more than `once` s."""
    times = []

    def timed():
        synchronize()
        begin = time.perf_counter()
        result = call()
        synchronize()
        times.append(time.perf_counter() - begin)
        return result

    result = timed()
    if least and times[0] <= once:
        times.clear()
        while len(times) < least or (sum(times) < seconds and len(times) < 31):
            result = timed()
    return 1e3 * sorted(times)[len(times) // 2], result, len(times)


def takes(rival, row):
    """Whether the rival can answer a row of ours."""
    dimensions = getattr(rival, "DIMENSIONS", None)
    return row["metric"] in rival.METRICS and (
        dimensions is None or row["d"] in dimensions
    )


def named_cell(text):
    """What a row must have for METRIC:QUERIES:SELECTIVITY; ValueError if it is
    something else."""
    metric, q, selectivity = text.split(":")
    return {
        **({"metric": metric} if metric else {}),
        **({"q": int(q)} if q else {}),
        **({"selectivity": float(selectivity)} if selectivity else {}),
    }


def is_named(row, cells):
    """Whether one of the cells is the row's; all are where there is none."""
    return not cells or any(
        all(row[key] == value for key, value in cell.items()) for cell in cells
    )


def rival_rows(torch, name, rows, limit_s, once_s):
    """A row of the rival for every one of ours that it can answer."""
    rival = RIVALS[name]
    shape, by_metric, begin, left_out = None, {}, time.perf_counter(), 0
    once = float("inf")  # the very first call loads kernels too
    for row in rows:
        if row["method"] != "faiss_bits" or not takes(rival, row):
            continue
        if limit_s and time.perf_counter() - begin > limit_s:
            left_out += 1
            continue
        new, metric = (row["n"], row["d"], row["q"]), row["metric"]
        if new != shape:
            made = None  # the last one's memory goes too
            by_metric.clear()
            torch.cuda.empty_cache()
            shape = new
        if metric not in by_metric:
            by_metric[metric] = rival(torch, *new, metric)
        made = by_metric[metric]
        ms, results, calls = median_ms(
            lambda: made.search(row["radius"]), torch.cuda.synchronize, rival.LEAST,
            once=once,
        )
        once = once_s or once
        other = {
            key: value
            for key, value in row.items()
            if key not in ("knn_ms", "bound_ms", "build_ms")
        }
        other.update(
            method=name, results=results, ms=float(f"{ms:.5g}"), calls=calls)
        if made.build_ms is not None:
            other["build_ms"] = float(f"{made.build_ms:.5g}")
        print(
            f"{name} {shape} {metric} {row['selectivity']}: {ms:.4g} ms, "
            f"{ms / row['ms']:.3g} times ours", flush=True,
        )
        yield other
    if left_out:
        print(f"{name}: {left_out} cells left out after {limit_s} s", flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", help="without it, --out's rows of ours stay")
    parser.add_argument("--out", required=True)
    parser.add_argument("--rivals", default=",".join(RIVALS))
    parser.add_argument("--limit-s", type=float, default=0, help="a rival; 0: none")
    parser.add_argument("--once-s", type=float, default=0, help="0: never")
    parser.add_argument("--rival-cells", default="", help="default: all")
    options, others = parser.parse_known_args(arguments)
    wanted = [name for name in options.rivals.split(",") if name != "none"]
    unknown = [name for name in wanted if name not in RIVALS]
    if unknown:
        parser.error(f"--rivals {','.join(unknown)}: known are {', '.join(RIVALS)}")
    try:
        cells = [named_cell(text) for text in options.rival_cells.split(",") if text]
    except ValueError:
        parser.error(
            f"--rival-cells {options.rival_cells}: METRIC:QUERIES:SELECTIVITY "
            "of each cell")
    if options.program:
        subprocess.run(
            [options.program, "--out", options.out, "--rivals", "none", *others],
            check=True,
        )
    elif others:
        parser.error(f"{' '.join(others)}: options of the program, without --program")
    data = load(options.out)
    ours = [row for row in data["rows"]
            if row["method"] == "faiss_bits" and row["index"] == "flat"
            and is_named(row, cells)]
    for cell in cells:
        if not any(is_named(row, [cell]) for row in ours):
            parser.error(f"--rival-cells {options.rival_cells}: {cell} is no cell")
    data["rows"] = [row for row in data["rows"]
                    if row["method"] not in wanted or not is_named(row, cells)]
    # In the order of shapes, so that a rival is made once for each; few queries and
    # few results by every metric first, should its time end.
    ours.sort(key=lambda row: (
        row["n"], row["d"], row["q"], row["selectivity"], row["metric"]))
    if not wanted:
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    for name in wanted:
        try:
            versions = RIVALS[name].versions()
        except ImportError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        data["meta"].update(versions)
        for row in rival_rows(
            torch, name, ours, options.limit_s, options.once_s
        ):
            data["rows"].append(row)
            save(options.out, data)


if __name__ == "__main__":
    end_with(main)
