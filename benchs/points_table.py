#!/usr/bin/env python3
"""Range searches of 3-D points as a table, from a result file of bench_range.py.

    benchs/points_table.py benchs/results/h200/range_points.json [README.md ...]

prints it, or writes it between the marks of the files named:
`<!-- points: begin (...) -->` and `<!-- points: end -->`. Where the first mark names
a result file, it is for that one alone. The fastest of a row is
bold, and each rival's time is followed by how many times as long as
`GpuIndexBitsFlat` it takes.
"""

import argparse
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from program import end_with  # noqa: E402
from result_file import load  # noqa: E402

#: (method, index) of the columns, and their titles.
COLUMNS = {
    ("faiss_bits", "flat"): "`GpuIndexBitsFlat`",
    ("faiss_bits", "brute_force"): "without boxes",
    ("faiss_bits", "list_of_clusters"): "List of Clusters",
    ("faiss_bits", "sss"): "SSS",
    ("cuml", "flat"): "cuML, ball cover, no distances",
    ("open3d", "flat"): "Open3D, hash table, not sorted",
    ("torch", "flat"): "torch",
}
MARKS = re.compile(
    r"(<!-- points: begin [^\n]*-->\n).*?(\n<!-- points: end -->)", re.DOTALL)


def number(value):
    """Three digits."""
    return f"{float(f'{value:.3g}'):g}"


def table(data, d=3, metric="l2"):
    """The lines of the table."""
    times, made = {}, {}
    for row in data["rows"]:
        column = row["method"], row["index"]
        if row["d"] == d and row["metric"] == metric and column in COLUMNS:
            cell = row["n"], row["q"], row["selectivity"]
            times.setdefault(cell, {})[column] = row["ms"]
            if "build_ms" in row:
                made.setdefault(row["n"], {}).setdefault(column, []).append(
                    row["build_ms"])
    columns = [c for c in COLUMNS if any(c in cell for cell in times.values())]
    ours = ("faiss_bits", "flat")
    lines = [
        "| n | queries | in range | "
        + " | ".join(COLUMNS[column] for column in columns) + " |",
        "|---" * (3 + len(columns)) + "|",
    ]
    for (n, q, share), cell in sorted(times.items()):
        texts = []
        for column in columns:
            if column not in cell:
                texts.append("-")
                continue
            text = f"{number(cell[column])} ms"
            if column != ours and ours in cell:
                text += f", {number(cell[column] / cell[ours])}"
            best = cell[column] == min(cell.values())
            texts.append(f"**{text}**" if best else text)
        lines.append(
            f"| {n:,} | {q:,} | {100 * share:g}% | " + " | ".join(texts) + " |")
    for n, cell in sorted(made.items()):
        parts = (f"{COLUMNS[column]} {number(statistics.median(ms))}" for column, ms in cell.items())
        lines.append(f"\nMade before, ms (the median of the cells), {n:,} points: " + "; ".join(parts) + ".")
    meta = data["meta"]
    lines.append(
        f"\n{meta['gpu']}, uniform points, L2, results on the device, one run "
        f"({meta['date']}, commit {meta['commit'][:10]}).")
    return "\n".join(lines)


def main(arguments=None):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    text = table(load(options.results))
    if not options.files:
        print(text)
    for file in options.files:
        before, found = file.read_text(), []

        def written(match):
            if ".json" in match[1] and Path(options.results).as_posix() not in match[1]:
                return match[0]
            found.append(match)
            return match[1] + "\n" + text + "\n" + match[2]

        after = MARKS.sub(written, before)
        if not found:
            print(f"{file} has no marks of points for {options.results}", file=sys.stderr)
            return 1
        file.write_text(after)
    return 0


if __name__ == "__main__":
    end_with(main)
