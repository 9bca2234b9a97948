#!/usr/bin/env python3
"""Checks a result of bench_filters, or of bench_ivf --filters, cell by cell:
with a filter no search takes much longer than without, and among few ids much
less: one query of a flat index, and many of inverted lists.

    benchs/check_filters.py benchs/results/h200/filters.json
    benchs/check_filters.py benchs/results/h200/ivf_filters.json

Exit code 1 if a cell misses.
"""

import argparse

from program import end_with
from result_file import load


def shape_of(row):
    return tuple(row.get(field) for field in (
        "index", "data", "n", "d", "nlist", "nprobe", "q", "k", "metric"))


def least_speedup_of(row, of_flat, of_lists):
    """What a row is to reach, or None."""
    if row["allowed"] > 0.01:
        return None
    if row["bench"] == "ivf_filters":
        many = row["q"] >= 10240 and row["nprobe"] >= 128
        return of_lists if many and row["index"] == "ivf_flat" else None
    return of_flat if row["q"] == 1 else None


def findings(rows, slowest, noise_ms, of_flat, of_lists):
    """(row, ms without a filter, what is wrong or "") of every filtered row."""
    plain = {shape_of(r): r["ms"] for r in rows if r["selector"] == "none"}
    for row in rows:
        if row["selector"] == "none":
            continue
        without = plain[shape_of(row)]
        wrong = ""
        least = least_speedup_of(row, of_flat, of_lists)
        if row["ms"] > max(slowest * without, without + noise_ms):
            wrong = f"more than {slowest} times as long as without a filter"
        elif least and row["ms"] * least > without:
            wrong = f"less than {least} times as fast as without"
        yield row, without, wrong


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--slowest", type=float, default=1.15)
    parser.add_argument("--noise-ms", type=float, default=0,
                        help="slower by less does not count")
    parser.add_argument("--least-speedup", type=float, default=5)
    parser.add_argument("--least-speedup-lists", type=float, default=3)
    options = parser.parse_args(arguments)
    missed = 0
    for row, without, wrong in findings(
        load(options.file)["rows"], options.slowest, options.noise_ms,
        options.least_speedup, options.least_speedup_lists
    ):
        missed += bool(wrong)
        print(
            f"{'MISS' if wrong else 'ok':4} {row['selector']:7}"
            f" {row['allowed']:5.1%} "
            + (f"{row['index']} nprobe={row['nprobe']:<4} " if "index" in row
               else "")
            + f"q={row['q']:<6} k={row['k']:<4}"
            f" {row['ms']:10.4f} ms, {without / row['ms']:7.2f} times as fast"
            f" as without {wrong and ': ' + wrong}"
        )
    print(f"{missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    end_with(main)
