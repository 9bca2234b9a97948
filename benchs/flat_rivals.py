#!/usr/bin/env python3
"""Adds rivals to a result file of bench_flat, cell by cell, and real data.

    benchs/flat_rivals.py flat.json [--data uniform,sift,fashion_mnist,...]

Run it right after bench_flat, on the same idle GPU. Of the data "uniform" every
cell that has a row of faiss_bits gets one of each method that is no index of
FAISS: torch_fp32, torch_tf32, cuvs, flashlib_fp32, flashlib_bf16. Of other data
(sift, fashion_mnist, clustered_sorted) all methods are measured, faiss_bits,
faiss_bits_fp32 and faiss_flat too; their rows say so in "data". Rows that are
there are left alone.

"recall" is the share of the exact neighbours of up to --check queries that the
answer has, by float64. Methods that cannot be imported are named in the meta's
"missing", and cells that one has no answer for have a row with "why" and no
"ms". Every row gets "frac_peak", 2 q n d over the time and the GPU's peak in
16 bits.
"""

import argparse
import sys
import time

from program import end_with
from result_file import cell_of, load, save

INDEXES = ("faiss_bits", "faiss_bits_fp32", "faiss_flat")
RIVALS = ("torch_fp32", "torch_tf32", "cuvs", "flashlib_fp32", "flashlib_bf16")
FIELDS = ("n", "d", "q", "k", "metric", "dtype", "data")
#: Dense products of 16 bits a second, as measured with cuBLAS.
PEAKS = {"NVIDIA H200": 790e12}
#: {data: (n, d, qs)} of the cells beside those of the file; k is one of KS.
OTHER_DATA = {
    "sift": (99000, 128, (1, 16, 1000)),
    "fashion_mnist": (60000, 784, (1, 16, 1024, 10000)),
    "clustered_sorted": (1 << 20, 128, (1, 16, 1024, 10240)),
}
KS = (10, 100)
#: Times of fewer queries than these do not tell what more of them take.
LEAST_TELLING = 128


def cells_to_measure(rows, data, chosen):
    """[(cell, methods that lack a row)]: those that search the same vectors
    together. chosen is {field: set of values, or None for all}."""
    done = {(cell_of(row), row["method"]) for row in rows}
    cells = {}
    if "uniform" in data:
        for row in rows:
            if row["method"] == "faiss_bits" and not row.get("forced") \
                    and "data" not in row:
                cells[cell_of(row)] = {f: row[f] for f in FIELDS[:-1]}
    for name in data:
        if name == "uniform":
            continue
        n, d, qs = OTHER_DATA[name]
        for q in qs:
            for k in KS:
                cell = dict(zip(FIELDS, (n, d, q, k, "L2", "float32", name)))
                cells[cell_of({"bench": "flat", **cell})] = cell
    result = []
    for key, cell in cells.items():
        if any(values and cell[f] not in values for f, values in chosen.items()):
            continue
        wanted = RIVALS if "data" not in cell else INDEXES + RIVALS
        lacking = [m for m in wanted if (key, m) not in done]
        if lacking:
            result.append((cell, lacking))
    return sorted(result, key=lambda item: (
        group_of(item[0]), item[0]["q"], item[0]["k"]))


def first_line(error):
    """What an exception says, in short."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def group_of(cell):
    """What cells with the same vectors have in common."""
    return (cell.get("data", ""), cell["n"], cell["d"], cell["metric"],
            cell["dtype"])


def add_shares(data):
    """Gives every row its "frac_peak", where the GPU's peak is known."""
    peak = PEAKS.get(data["meta"]["gpu"])
    for row in data["rows"]:
        if peak and row.get("ms"):
            work = 2.0 * row["q"] * row["n"] * row["d"]
            row["frac_peak"] = float(f"{work / peak / row['ms'] * 1e3:.4g}")


def too_slow(times, cell, limit):
    """What a call would take by the times of fewer queries, if above the
    limit; else None. times is {(q, k): ms} of one method and group."""
    known = [(q, ms) for (q, k), ms in times.items()
             if LEAST_TELLING <= q < cell["q"] and k == cell["k"]]
    if not known:
        return None
    q, ms = max(known)
    guess = ms * cell["q"] / q
    return guess if guess > limit else None


class Runner:
    """Measures cells, one group of vectors at a time."""

    def __init__(self, options, methods):
        import flat_data
        import flat_reference
        import flat_timing

        self.checked = flat_reference.checked
        self.options, self.methods = options, methods
        self.makes = flat_data.Data(options.device)
        self.clock = flat_timing.Clock(options.device)
        self.still_works = lambda: flat_timing.still_works(options.device)
        self.group, self.reference, self.made, self.times = None, None, {}, {}

    def prepare(self, cell, most_queries):
        from flat_reference import Reference, torch

        self.group, self.made, self.times = group_of(cell), {}, {}
        self.vectors = self.queries = self.reference = None
        self.still_works()  # and gives memory back
        self.vectors, self.queries = self.makes.make(
            cell.get("data", "uniform"), cell["n"], most_queries, cell["d"], 1)
        stored = self.vectors.to(getattr(torch, cell["dtype"]))
        self.reference = Reference(
            stored, self.queries[: self.options.check], cell["metric"])

    def measure(self, cell, name):
        """The fields of a row that were measured."""
        method = self.methods[name]
        why = method.why_not(cell)
        times = self.times.setdefault(name, {})
        guess = too_slow(times, cell, self.options.max_ms)
        if guess:
            why = f"about {guess:.0f} ms a call"
        if why:
            return {"ms": None, "why": why}
        if name not in self.made:
            self.made[name] = method(
                self.vectors, cell["metric"], cell["dtype"])
        queries = self.queries[: cell["q"]].contiguous()
        searcher, k = self.made[name], cell["k"]
        measured = self.checked(
            name, searcher, queries, k, self.reference.first(cell["q"]))
        ms, repeats = self.clock.median(lambda: searcher.search(queries, k))
        times[cell["q"], k] = ms
        rate = cell["q"] * cell["n"] / ms / 1e6
        return {"ms": float(f"{ms:.5g}"), "gdist_s": float(f"{rate:.5g}"),
                "repeats": repeats, **measured}

    def row(self, cell, name):
        try:
            measured = self.measure(cell, name)
        # Each library has exceptions of its own, and none may end the race.
        except Exception as error:  # noqa: BLE001
            measured = {"ms": None, "why": "failed: " + first_line(error)}
            self.made.pop(name, None)
            self.still_works()
        return {"bench": "flat", "method": name, **cell, **measured}


def run(options):
    """Measures and saves after every row; returns how many rows of an index
    are wrong or failed."""
    import flat_methods
    import torch

    result = load(options.file)
    if options.device != "cpu":
        name = torch.cuda.get_device_name()
        if name != result["meta"]["gpu"]:
            raise RuntimeError(f"{options.file} is of {result['meta']['gpu']}, "
                               f"this is {name}")
    methods = flat_methods.usable(
        options.methods, options.device, result["meta"])
    runner = Runner(options, methods)
    data = []
    for name in options.data:
        why = runner.makes.why_missing(name)
        if why is None:
            data.append(name)
        else:
            print(f"note: {name} is left out: {why}", flush=True)
    todo = cells_to_measure(result["rows"], data, options.chosen)
    begin, wrong = time.monotonic(), 0
    for i, (cell, lacking) in enumerate(todo):
        if time.monotonic() - begin > options.max_seconds:
            print(f"--max-seconds is spent: {len(todo) - i} of {len(todo)} "
                  "cells left out")
            break
        names = [m for m in lacking if m in methods]
        if names and group_of(cell) != runner.group:
            runner.prepare(cell, max(
                c["q"] for c, _ in todo if group_of(c) == group_of(cell)))
        for name in names:
            row = runner.row(cell, name)
            result["rows"].append(row)
            add_shares(result)
            save(options.file, result)
            wrong += row.get("places_wrong", 0) > 0 or (
                name in INDEXES and row.get("why", "").startswith("failed"))
            said = row.get("why") or (
                f"{row['ms']:.4f} ms ({row['repeats']}) recall "
                f"{row['recall']:.5f}")
            where = " ".join(f"{f}={v}" for f, v in cell.items())
            print(f"{time.monotonic() - begin:5.0f}s {i + 1}/{len(todo)} "
                  f"{name:15} {where} {said}"
                  + (" WRONG" if row.get("places_wrong") else ""), flush=True)
    add_shares(result)
    save(options.file, result)
    return wrong


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    names = lambda text: text.split(",")  # noqa: E731
    numbers = lambda text: {int(value) for value in text.split(",")}  # noqa: E731
    add("file", help="of bench_flat")
    add("--methods", type=names, default=[*INDEXES, *RIVALS],
        help="default: all")
    add("--data", type=names, default=["uniform", *OTHER_DATA],
        help=f"of uniform,{','.join(OTHER_DATA)} (default: all)")
    for field in ("n", "d", "q", "k"):
        add(f"--{field}s", type=numbers, help=f"cells of these {field} only")
    add("--metrics", type=names, help="of L2,IP")
    add("--dtypes", type=names, help="of float32,float16 (storage)")
    add("--check", type=int, default=32, help="queries of which the recall is")
    add("--max-ms", type=float, default=3000,
        help="leave out what takes longer a call, by its time for fewer\n"
             "queries")
    add("--max-seconds", type=float, default=float("inf"),
        help="start no cell after that")
    add("--device", default="cuda", help="cpu: to try this script")
    options = parser.parse_args(arguments)
    for name in options.methods:
        if name not in INDEXES + RIVALS:
            parser.error(f"--methods {name} is none of "
                         + ", ".join(INDEXES + RIVALS))
    for name in options.data:
        if name != "uniform" and name not in OTHER_DATA:
            parser.error(f"--data {name} is none of uniform, "
                         + ", ".join(OTHER_DATA))
    options.chosen = {
        "n": options.ns, "d": options.ds, "q": options.qs, "k": options.ks,
        "metric": options.metrics, "dtype": options.dtypes}
    return options


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    try:
        wrong = run(options)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if wrong:
        print(f"{wrong} rows of indexes are wrong or failed", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    end_with(main)
