#!/usr/bin/env python3
"""Checks a result of bench_flat_cpu.py against what it has to reach.

    benchs/cpu/check_cpu.py benchs/results/cpu/flat.json

The lines come from flat_targets.json, float32 and L2:

    rivals           builds of FAISS that a cell needs (default: those there)
    speedups         time of the faster FAISS over ours; both must be there
    geometric_means  the same over all cells of a line
    reads            our time over that of reading the vectors once
    peaks            share of the measured FMA peak
    model            share of all cells with forced variants in which the one
                     that the cost model picks takes at most `ratio` times as
                     long as the best; `least_cells` have to be there
    ahead_of_every_faiss  speed-up in every cell that has both, any metric

Exits with 1 if a line is missed or not measured.
"""

import argparse
import itertools
import math
import sys
from pathlib import Path
from typing import NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from result_file import cell_of, load  # noqa: E402

OURS = "faiss_bits"
TARGETS = Path(__file__).resolve().parent / "flat_targets.json"
FIELDS = ("n", "q", "d", "k")


class Line(NamedTuple):
    """One line of the report."""

    what: str
    cell: str
    value: Optional[float]  # None: not measured
    reached: bool
    target: float


def by_cell(rows):
    """{cell: {method: row}} of the race; the last row counts."""
    cells = {}
    for row in rows:
        if not row.get("forced") and row["ms"]:
            cells.setdefault(cell_of(row), {})[row["method"]] = row
    return cells


def faiss_names(rows):
    """All builds of FAISS in the file: a cell needs each."""
    return sorted({row["method"] for row in rows
                   if row["method"].startswith("faiss_cpu_")})


def speedup(methods, rivals):
    """(name, time of the fastest rival over ours), or (None, None) where ours
    or a rival is missing."""
    if OURS not in methods or not rivals or any(r not in methods
                                                for r in rivals):
        return None, None
    name = min(rivals, key=lambda rival: methods[rival]["ms"])
    return name, methods[name]["ms"] / methods[OURS]["ms"]


def cells_of_target(target):
    """Cells of a line of the targets."""
    for values in itertools.product(*(target[field] for field in FIELDS)):
        at = dict(zip(FIELDS, values))
        yield ("flat_cpu", *((f, at[f]) for f in ("n", "d", "q", "k")),
               ("metric", "L2"), ("dtype", "float32"))


def text_of(cell):
    return " ".join(f"{field}={value}" for field, value in cell[1:])


def _speedups(cells, rivals, target):
    for cell in cells_of_target(target):
        name, value = speedup(cells.get(cell, {}), rivals)
        yield Line(f"over {name or 'FAISS'}", text_of(cell), value,
                   value is not None and value >= target["speedup"],
                   target["speedup"])


def _geometric_means(cells, rivals, target):
    values = [speedup(cells.get(cell, {}), rivals)[1]
              for cell in cells_of_target(target)]
    there = [value for value in values if value is not None]
    mean = (math.exp(sum(map(math.log, there)) / len(there))
            if len(there) == len(values) else None)
    yield Line("geometric mean", f"{len(there)} of {len(values)} cells", mean,
               mean is not None and mean >= target["speedup"],
               target["speedup"])


def _reads(cells, rivals, target):
    for cell in cells_of_target(target):
        row = cells.get(cell, {}).get(OURS)
        value = row["ms"] / row["read_ms"] if row and row.get("read_ms") \
            else None
        yield Line("over one read", text_of(cell), value,
                   value is not None and value <= target["ratio"],
                   target["ratio"])


def _peaks(cells, meta, target):
    for cell in cells_of_target(target):
        row = cells.get(cell, {}).get(OURS)
        value = row["gflops"] / meta["peak_gflops"] if row else None
        yield Line("of the FMA peak", text_of(cell), value,
                   value is not None and value >= target["share"],
                   target["share"])


def forced_times(rows):
    """{cell: {variant: ms}} of the forced variants."""
    cells = {}
    for row in rows:
        if row.get("forced") and row["method"] == OURS and row["ms"]:
            cells.setdefault(cell_of(row), {})[row["variant"]] = row["ms"]
    return cells


def model_ratios(rows):
    """{cell: (variant that the model picks, best variant, ratio)} of all cells
    with forced variants: times of both as forced, which are of one kind."""
    race, result = by_cell(rows), {}
    for cell, variants in forced_times(rows).items():
        ours = race.get(cell, {}).get(OURS)
        if ours is None or ours["variant"] not in variants:
            continue
        best = min(variants, key=variants.get)
        picked = ours["variant"]
        result[cell] = picked, best, variants[picked] / variants[best]
    return result


def _model(rows, target):
    ratios = model_ratios(rows)
    good = 0
    for cell, (picked, best, ratio) in ratios.items():
        good += ratio <= target["ratio"]
        if ratio > target["ratio"]:
            yield Line(f"model: {picked}, best {best}", text_of(cell), ratio,
                       True, target["ratio"])
    enough = len(ratios) >= target.get("least_cells", 1)
    share = good / len(ratios) if enough else None
    yield Line("model: cells within", f"{good} of {len(ratios)} cells", share,
               share is not None and share >= target["share"],
               target["share"])


def _ahead(cells, rivals, least):
    for cell, methods in cells.items():
        name, value = speedup(methods, rivals)
        if value is not None:
            yield Line(f"ahead of {name}", text_of(cell), value,
                       value >= least, least)


def check(data, targets):
    """All lines of a result."""
    rows, meta = data["rows"], data["meta"]
    cells = by_cell(rows)
    rivals = targets.get("rivals") or faiss_names(rows)
    lines = []
    for name, make in (("speedups", _speedups), ("reads", _reads),
                       ("geometric_means", _geometric_means)):
        for target in targets.get(name, ()):
            lines += make(cells, rivals, target)
    for target in targets.get("peaks", ()):
        lines += _peaks(cells, meta, target)
    if "model" in targets:
        lines += _model(rows, targets["model"])
    if "ahead_of_every_faiss" in targets:
        lines += _ahead(cells, rivals, targets["ahead_of_every_faiss"])
    return lines


def report(lines, quiet=False):
    """Prints the lines; returns how many were missed."""
    for line in lines:
        if line.reached and quiet:
            continue
        value = "missing" if line.value is None else f"{line.value:.3f}"
        print(f"{'ok  ' if line.reached else 'MISS'} {line.cell:52s} "
              f"{line.what:30s} {value:>8s} of {line.target:g}")
    missed = sum(not line.reached for line in lines)
    print(f"{len(lines)} lines, {missed} missed")
    return missed


def main(arguments=None):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--targets", default=TARGETS, metavar="FILE",
                        help="default: flat_targets.json beside this script")
    parser.add_argument("--quiet", action="store_true",
                        help="print what was missed only")
    options = parser.parse_args(arguments)
    data = load(options.file)
    print(", ".join(f"{k}: {v}" for k, v in data["meta"].items()))
    return 1 if report(check(data, load(options.targets)), options.quiet) else 0


if __name__ == "__main__":
    sys.exit(main())
