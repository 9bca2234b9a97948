#!/usr/bin/env python3
"""Compare faiss_bits with its best rival, cell by cell.

    benchs/check.py benchs/results/h200/select.json
    benchs/check.py flat.json --min-speedup 5 --max-q 16 --max-d 256 --max-k 100
    benchs/check.py new.json --against old.json
    benchs/check.py select.json --targets benchs/select_targets.json
    benchs/check.py ivf.json --targets benchs/ivf_targets.json
    benchs/check.py ivf_sweep.json --noise 1.05 --noise-ms 0.015

Prints one line a cell: our time, the best rival's time, the ratio. Exits with 1
if a cell is slower than --min-speedup times its best rival, or lacks one of
the two; slower by less than --noise times or --noise-ms is none. With --against, the rival is the faiss_bits of another file. With
--targets, the lines of that file are checked instead (benchs/targets.py).
"""

import argparse

from program import end_with
import targets
from result_file import cell_of, load
from targets import OURS
NUMBER_FIELDS = ("rows", "cols", "k", "n", "d", "q", "nlist", "nprobe")


def times_by_cell(rows):
    """{cell: {method: ms}}, in file order; of repeated rows the last counts.
    Rows of a forced algorithm are left out, and those with wrong answers."""
    cells = {}
    for row in rows:
        if row.get("forced") or row.get("wrong"):
            continue
        cells.setdefault(cell_of(row), {})[row["method"]] = row["ms"]
    return cells


def compare(cells):
    """(cell, our ms, rival's name, rival's ms, speed-up) of every cell.

    What is missing is None.
    """
    result = []
    for cell, times in cells.items():
        ours = times.get(OURS)
        # Other modes of ours are no rivals.
        rivals = {name: ms for name, ms in times.items() if ms is not None
                  and name != OURS and not name.startswith(f"{OURS}_")}
        name = min(rivals, key=rivals.get) if rivals else None
        best = rivals.get(name)
        speedup = best / ours if ours and best else None
        result.append((cell, ours, name, best, speedup))
    return result


def replace_rivals(rows, old_rows):
    """Our rows, with the faiss_bits of another file as the only rival."""
    ours = [row for row in rows if row["method"] == OURS]
    old = [dict(row, method="before") for row in old_rows
           if row["method"] == OURS]
    wanted = {cell_of(row) for row in ours}
    return ours + [row for row in old if cell_of(row) in wanted]


def within(cell, limits):
    """True if the cell keeps to {(field, "min" or "max"): limit}."""
    values = dict(cell[1:])
    for (field, side), limit in limits.items():
        if limit is None:
            continue
        value = values.get(field)
        if value is None:
            return False
        if side == "max" and value > limit or side == "min" and value < limit:
            return False
    return True


def describe(cell):
    """The cell as text."""
    return " ".join(f"{field}={value}" for field, value in cell[1:])


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--min-speedup", type=float, default=1.0,
                        help="at or ahead is 1 (default)")
    parser.add_argument("--against", metavar="FILE",
                        help="compare with faiss_bits of an older file")
    parser.add_argument("--targets", metavar="FILE",
                        help="check the lines of this file instead")
    parser.add_argument("--noise", type=float, default=1.0, metavar="TIMES")
    parser.add_argument("--noise-ms", type=float, default=0.0, metavar="MS",
                        help="behind by no more than both is not behind: for "
                             "cells of some microseconds")
    parser.add_argument("--index", help="ivf: this index only")
    parser.add_argument("--quiet", action="store_true",
                        help="print the cells that fail only")
    parser.add_argument("--order", help="select: this order only")
    parser.add_argument("--dtype", help="this type only")
    parser.add_argument("--metric", help="flat: this metric only")
    for field in NUMBER_FIELDS:
        parser.add_argument(f"--min-{field}", type=int)
        parser.add_argument(f"--max-{field}", type=int)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    data = load(options.file)
    rows = data["rows"]
    if options.targets:
        print(", ".join(f"{k}: {v}" for k, v in data["meta"].items()))
        results = targets.check(rows, load(options.targets))
        return 1 if targets.report(results, options.quiet) else 0
    if options.against:
        rows = replace_rivals(rows, load(options.against)["rows"])
    limits = {(field, side): getattr(options, f"{side}_{field}")
              for field in NUMBER_FIELDS for side in ("min", "max")}
    exact = {field: getattr(options, field)
             for field in ("order", "dtype", "metric", "index")
             if getattr(options, field)}
    cells = {
        cell: times for cell, times in times_by_cell(rows).items()
        if within(cell, limits)
        and all(dict(cell[1:]).get(f) == v for f, v in exact.items())
    }
    if not cells:
        print("no cell is left to compare")
        return 1

    print(", ".join(f"{k}: {v}" for k, v in data["meta"].items()))
    failed = 0
    for cell, ours, name, best, speedup in compare(cells):
        wanted = None if best is None else best / options.min_speedup
        good = speedup is not None and (
            ours <= wanted * options.noise
            or ours - wanted < options.noise_ms)
        failed += not good
        if good and options.quiet:
            continue
        def text(ms):
            return "missing" if ms is None else f"{ms:.4g} ms"
        ratio = "-" if speedup is None else f"{speedup:.2f}x"
        print(f"{'ok  ' if good else 'MISS'} {describe(cell):55s} "
              f"ours {text(ours):>12s}  {name or 'rival'} {text(best):>12s}  "
              f"{ratio}")
    print(f"{len(cells)} cells, {failed} below {options.min_speedup:g}x")
    return 1 if failed else 0


if __name__ == "__main__":
    end_with(main)
