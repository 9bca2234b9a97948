#!/usr/bin/env python3
"""Measures every algorithm of runSelect and writes its tuning table.

    benchs/tune_select.py --bench build/dev/benchs/bin/bench_select \\
        --commit "$(git rev-parse HEAD)" --out kernels/select/SelectTable.inc
    benchs/tune_select.py --from tune.json --out kernels/select/SelectTable.inc

The first form runs bench_select over shapes x k x types on random keys (some
minutes), keeps what it measured in --json, and writes the table; the
second writes the table from such a file. With --max-cols the first measures
shorter rows alone, and with --longer TABLE either keeps that table's rows for
longer ones than were measured. The table is C++ rows

    BITS_SELECT_ROW(computeCapability, keyBytes, maxRows, maxCols, maxK, name)

of which the first that fits wins (keyBytes equal, the others not above). Every
bound is the geometric middle between two measured sizes, so that a problem
goes by the measured one that is nearest; the last one of each kind is
kAnyRows, kAnyCols or kAnyK.
A problem that the winner of a row refuses goes on to the next rows, so the
rows for larger k serve k that a smaller row's winner cannot take.
"""

import argparse
import math
import re
import subprocess
import sys
from pathlib import Path

import merge
from program import end_with
from result_file import load

#: Auto's candidates. Of those that are as fast, the first is taken: it minds the
#: order of keys least.
ALGORITHMS = ("short_rows", "sample_threshold", "bits", "bits_global",
              "sample_select", "sample_select_two_stage", "radix_select",
              "sort")
SORT_ALL = ("bits_global", "sample_select", "sample_select_two_stage",
            "radix_select")
NOISE = 1.03
HELD_UP = 1.4
ROWS = (1, 8, 64, 256, 1024, 4096, 16384, 131072, 1 << 20)
#: Short rows have odd lengths, as most have: at multiples of its tile `bits`
#: loads whole tiles alone, and would win lengths that it loses beside them.
COLS = (31, 127, 255, 509, 1021, 2039, 4093, 8191, 32749,
        1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 27)
KS = (1, 10, 32, 128, 512, 1024, 2048, 4096, 16384, 65536, 131072, 262144,
      524288, 1 << 20, 1 << 24)
#: Of long rows these tell nothing that the others do not.
KS_OF_SHORT_ROWS = (32, 512, 1024)
#: 1 GiB of floats; a quarter where more rows of a length change nothing.
MOST_KEYS = 1 << 28
MOST_KEYS_OF_SHORT_ROWS = 1 << 26
LEAST_KEYS = 8000


def shapes():
    """(rows, cols) that are measured: no more than MOST_KEYS, and no fewer
    than LEAST_KEYS."""
    def most(cols):
        return MOST_KEYS if cols >= 1 << 18 else MOST_KEYS_OF_SHORT_ROWS
    return [(rows, cols) for cols in COLS for rows in ROWS
            if LEAST_KEYS <= rows * cols <= most(cols)]


def measure(options):
    """Runs bench_select shape by shape (so that k fits cols) into one file."""
    parts = Path(options.json).with_suffix(".parts")
    parts.mkdir(parents=True, exist_ok=True)
    paths = []
    wanted = [shape for shape in shapes()
              if options.min_cols <= shape[1] <= options.max_cols]
    columns = sorted({cols for _, cols in wanted})
    for cols in columns:
        rows = [r for r, c in wanted if c == cols]
        # k up to cols itself: there, sorting the row is the selection. A
        # third: from there on `sort` has no use for a first pass.
        ks = sorted({k for k in KS if k < cols and not
                     (cols >= 1 << 18 and k in KS_OF_SHORT_ROWS)} |
                    {min(cols, max(KS)), min(cols // 3, max(KS))})
        part = parts / f"{cols}.json"
        command = [
            options.bench, "--out", str(part), "--commit", options.commit,
            "--rivals", "none", "--algorithm", ",".join(options.algorithms),
            "--slow-ms", str(options.slow_ms),
            "--total-ms", str(options.total_ms),
            "--dtypes", "float32,float16",
            "--shapes", ",".join(f"{r}x{cols}" for r in rows),
            "--ks", ",".join(map(str, ks))]
        print(" ".join(command), flush=True)
        if subprocess.run(command).returncode != 0:
            raise RuntimeError(f"{options.bench} failed on {cols} columns")
        paths.append(str(part))
    if merge.main([options.json, *paths]) != 0:
        raise RuntimeError("the parts do not fit together")


def winners(rows):
    """{keyBytes: {(rows, cols, k): algorithm}} of the fastest of each cell. Of
    those that are as fast but for NOISE, the first of ALGORITHMS, so that
    neighbours agree. Left out are, for all columns, those of SORT_ALL, which
    sort the row as `sort` does, and would speak for smaller k; `bits` for more
    than one key, as other orders than the measured one cost it up to twice the
    time; and cells that a larger k takes far less time than: something else
    was in the way."""
    times = {}
    for row in rows:
        if not row.get("forced") or row["order"] != "random" or not row["ms"]:
            continue
        if row["k"] >= row["cols"] and row["algorithm"] in SORT_ALL:
            continue
        if row["k"] > 1 and row["algorithm"] == "bits":
            continue
        key_bytes = 4 if row["dtype"] == "float32" else 2
        cell = row["rows"], row["cols"], row["k"]
        times.setdefault(key_bytes, {}).setdefault(cell, {})[
            row["algorithm"]] = row["ms"]

    def was_held_up(cells, cell):
        """Whether the next k of the shape takes an algorithm far less. k = 1
        has no other to stand in for it."""
        after = min((c for c in cells
                     if c[:2] == cell[:2] and c[2] > cell[2] > 1),
                    default=cell)
        return any(ms > HELD_UP * cells[after].get(name, ms)
                   for name, ms in cells[cell].items())

    def fastest(measured):
        limit = min(measured.values()) * NOISE
        return min((name for name, ms in measured.items() if ms <= limit),
                   key=ALGORITHMS.index)
    return {size: {cell: fastest(measured) for cell, measured in cells.items()
                   if not was_held_up(cells, cell)}
            for size, cells in times.items()}


def bounds(sizes):
    """{size: the largest number that goes by it, None for any} of sizes."""
    sizes = sorted(sizes)
    result = {a: math.isqrt(a * b) for a, b in zip(sizes, sizes[1:])}
    result[sizes[-1]] = None
    return result


def by_runs(items):
    """[(bound, value)] with neighbours of the same value made one."""
    result = []
    for bound, value in items:
        if result and result[-1][1] == value:
            result[-1] = bound, value
        else:
            result.append((bound, value))
    return result


def k_steps(cells, rows, cols):
    """[(maxK, algorithm)] of one shape."""
    ks = sorted(k for r, c, k in cells if (r, c) == (rows, cols))
    limits = bounds(ks)
    if len(ks) > 1 and ks[0] == 1:
        limits[1] = 1  # its kernels keep one key and are no others'
    return tuple(by_runs((limits[k], cells[rows, cols, k]) for k in ks))


def table_rows(cells, last_limit=None):
    """[(maxRows, maxCols, maxK, algorithm)] of one size of keys, for columns up
    to last_limit."""
    measured = {(r, c) for r, c, _ in cells}
    col_limits = bounds({c for _, c in measured})
    col_limits[max(col_limits)] = last_limit
    by_cols = []
    for cols, col_limit in col_limits.items():
        rows_here = sorted(r for r, c in measured if c == cols)
        row_limits = bounds(rows_here)
        steps = tuple(by_runs(
            (row_limits[r], k_steps(cells, r, cols)) for r in rows_here))
        by_cols.append((col_limit, steps))
    return [(max_rows, max_cols, max_k, name)
            for max_cols, row_steps in by_runs(by_cols)
            for max_rows, steps in row_steps
            for max_k, name in steps]


def limit_text(limit, what):
    """A bound as C++: a number, or kAny<what>."""
    return f"kAny{what}" if limit is None else str(limit)


def enumerator(name):
    """radix_select to RadixSelect."""
    return "".join(word.capitalize() for word in name.split("_"))


def longer_stamps(text, begin):
    """What a table's text says of where its rows for more than `begin` columns
    come from, as comments for a table that keeps them. Rows that it kept itself
    have stamps of their own."""
    stamps = {}
    for name, limit, value in re.findall(
            r"^// (gpu|commit|date)(?: of rows for more than (\d+) columns)?: "
            r"(.+)$", text, re.M):
        stamps.setdefault(int(limit or 0), []).append((name, value))
    first = max((limit for limit in stamps if limit <= begin), default=0)
    return [f"// {name} of rows for more than {max(limit, begin)} columns: "
            f"{value}"
            for limit in sorted(stamps) if limit >= first
            for name, value in stamps[limit]]


def longer_rows(text, cols, serve=None):
    """Of a table's text: how many columns rows for up to `cols` serve (as many
    as there, or `serve`), its rows for more by size of keys, and comments that
    say where these come from. Rows of bits are for one key alone (see
    winners); a comment names those that were for more."""
    rows = re.findall(
        r"^(BITS_SELECT_ROW\(\d+, (\d), \w+, (\w+), .*\))$", text, re.M)
    ends = [int(end) for _, _, end in rows
            if end.isdigit() and int(end) >= cols]
    if not ends:
        raise ValueError(f"--longer has no rows that end at {cols} columns or "
                         "behind")
    begin = serve or min(ends)

    def stays(end):
        return not end.isdigit() or int(end) > begin
    kept = {}
    changes = [line for line, end in re.findall(
        r"^(// not measured: .*, (\w+) columns: .*)$", text, re.M)
        if stays(end)]
    for line, size, end in rows:
        if stays(end):
            only = re.sub(r"\w+, Bits\)", "1, Bits)", line)
            if only != line:
                _, _, most, _, k, _ = re.findall(r"\w+", line)[1:]
                changes.append(
                    f"// not measured: keys of {size} bytes, up to {most} rows, "
                    f"{end} columns: Bits for k = 1 alone, before up to {k}")
            if only not in kept.setdefault(int(size), []):
                kept[int(size)].append(only)
    return begin, kept, longer_stamps(text, begin) + changes


def table_text(data, longer=None, serve=None):
    """The whole file; longer: the text of the table that serves rows of more
    columns than were measured, or than `serve`."""
    meta = data["meta"]
    found = winners(data["rows"])
    if not found:
        raise ValueError("no rows of forced algorithms on random keys")
    names = sorted({row["algorithm"] for row in data["rows"]
                    if row.get("forced")})
    count = sum(len(cells) for cells in found.values())
    begin, kept, origin = None, {}, []
    if longer:
        begin, kept, origin = longer_rows(
            longer, max(c for cells in found.values() for _, c, _ in cells),
            serve)
        for key_bytes in sorted(set(kept) - set(found)):
            raise ValueError(f"--longer has rows of keys of {key_bytes} bytes, "
                             "of which none were measured")
    lines = [
        "// Written by benchs/tune_select.py; not to be edited.",
        f"// gpu: {meta['gpu']}",
        f"// cuda: {meta['cuda']}",
        f"// driver: {meta['driver']}",
        f"// commit: {meta['commit']}",
        f"// date: {meta['date']}",
        f"// cells: {count}; algorithms: {', '.join(names)}",
        *origin,
        "// BITS_SELECT_ROW(",
        "//     computeCapability, keyBytes, maxRows, maxCols, maxK, algorithm)",
    ]
    for key_bytes in sorted(found, reverse=True):
        for max_rows, max_cols, max_k, name in table_rows(
                found[key_bytes], begin):
            lines.append(
                f"BITS_SELECT_ROW({meta['compute_capability']}, {key_bytes}, "
                f"{limit_text(max_rows, 'Rows')}, "
                f"{limit_text(max_cols, 'Cols')}, "
                f"{limit_text(max_k, 'K')}, {enumerator(name)})")
        lines += kept.get(key_bytes, [])
    return "\n".join(lines) + "\n"


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bench", help="bench_select, to measure with")
    source.add_argument("--from", dest="json_from", metavar="FILE",
                        help="measured before (merge.py joins parts)")
    parser.add_argument("--json", default="tune_select.json",
                        help="with --bench: where the measurements go")
    parser.add_argument("--commit", default="unknown", help="for the stamp")
    parser.add_argument("--algorithms", default=ALGORITHMS,
                        type=lambda text: tuple(text.split(",")))
    parser.add_argument("--slow-ms", type=float, default=25,
                        help="give up on an algorithm that takes longer")
    parser.add_argument("--total-ms", type=float, default=15,
                        help="time for the repeats of one measurement")
    parser.add_argument("--min-cols", type=int, default=1,
                        help="measure no shorter rows")
    parser.add_argument("--max-cols", type=int, default=max(COLS),
                        help="measure no longer rows")
    parser.add_argument("--longer", metavar="TABLE",
                        help="SelectTable.inc whose rows for longer ones stay")
    parser.add_argument("--serve-cols", type=int,
                        help="columns that the longest measured rows stand for")
    parser.add_argument("--out", required=True, help="SelectTable.inc")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    try:
        if options.bench:
            measure(options)
        longer = Path(options.longer).read_text() if options.longer else None
        text = table_text(load(options.json_from or options.json), longer,
                          options.serve_cols)
    except (RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    Path(options.out).write_text(text)
    print(f"{options.out}: {text.count('BITS_SELECT_ROW') - 1} rows")
    return 0


if __name__ == "__main__":
    end_with(main)
