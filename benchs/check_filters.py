#!/usr/bin/env python3
"""Checks a result of bench_filters, cell by cell: with a filter no search takes
much longer than without, and one query among few ids much less.

    benchs/check_filters.py benchs/results/h200/filters.json

Exit code 1 if a cell misses.
"""

import argparse
import sys

from result_file import load


def shape_of(row):
    return (row["n"], row["d"], row["q"], row["k"], row.get("metric"))


def findings(rows, slowest, least_speedup):
    """(row, ms without a filter, what is wrong or "") of every filtered row."""
    plain = {shape_of(r): r["ms"] for r in rows if r["selector"] == "none"}
    for row in rows:
        if row["selector"] == "none":
            continue
        without = plain[shape_of(row)]
        wrong = ""
        if row["ms"] > slowest * without:
            wrong = f"more than {slowest} times as long as without a filter"
        elif row["q"] == 1 and row["allowed"] <= 0.01:
            if row["ms"] * least_speedup > without:
                wrong = f"less than {least_speedup} times as fast as without"
        yield row, without, wrong


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--slowest", type=float, default=1.15)
    parser.add_argument("--least-speedup", type=float, default=5)
    options = parser.parse_args(arguments)
    missed = 0
    for row, without, wrong in findings(
        load(options.file)["rows"], options.slowest, options.least_speedup
    ):
        missed += bool(wrong)
        print(
            f"{'MISS' if wrong else 'ok':4} {row['selector']:7}"
            f" {row['allowed']:5.0%} q={row['q']:<6} k={row['k']:<4}"
            f" {row['ms']:10.4f} ms, {without / row['ms']:7.2f} times as fast"
            f" as without {wrong and ': ' + wrong}"
        )
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
