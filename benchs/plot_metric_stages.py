#!/usr/bin/env python3
"""Draw figure 5 and Table II of Barrientos et al. 2012 from results of
bench_metric_stages.

    benchs/plot_metric_stages.py benchs/results/h200/metric_stages.json

Writes metric_stages_figure_5.png, metric_stages_table_2.png and the same as SVG
beside the file. Prints tables for docs/papers.md.
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from plot_metric_space import (  # noqa: E402
    distinct,
    panels,
    percent,
    save_figures,
)
from result_file import load  # noqa: E402

plt.rcParams["svg.hashsalt"] = "metric_stages"

STAGES = {"1": "#1b6ca8", "1.5": "#4a9c5d", "2": "#e07b39"}


def cell(row):
    return tuple(row[name] for name in ("data", "n", "q", "selectivity"))


def one_device(rows):
    """{cell: row} of one device."""
    return {cell(row): row for row in rows if row["stages"] == "one device"}


def places(row):
    """How many shards, and where."""
    shards, devices = row["shards"], row["devices"]
    if shards == 1:
        return "1 GPU"
    return f"{shards} shards on {devices} GPU" + "s" * (devices > 1)


def figure_5(rows):
    """Speed-ups over one device, at 1% of growing collections."""
    base = one_device(rows)
    rows = [row for row in rows
            if row["selectivity"] == 0.01 and row["stages"] in STAGES]
    names = distinct((row["data"], places(row)) for row in rows)
    if not names:
        return None
    figure, axes = panels(len(names))
    for axis, (data, where) in zip(axes, names):
        for stages, color in STAGES.items():
            points = sorted(
                (row["n"], base[cell(row)]["ms"] / row["ms"]) for row in rows
                if (row["data"], places(row), row["stages"])
                == (data, where, stages))
            if points:
                axis.plot(*zip(*points), "o-", color=color,
                          label=f"{stages}-stage")
        axis.axhline(1, color="#8a8a8a", lw=0.8)
        axis.set_xscale("log")
        axis.set_xlabel("n")
        axis.set_title(f"{data}, {where}", fontsize=10)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("speed-up over one GPU")
    axes[0].legend(fontsize=8)
    return figure


def series(row):
    """What a row is called in Table II."""
    if row["where"] == "cpu":
        return f"{row['threads']} threads of the CPU"
    if row["stages"] == "one device":
        return "1 GPU"
    return f"{row['stages']}-stage, {places(row)}"


def table_2(rows):
    """Times at 1% of growing collections."""
    rows = [row for row in rows if row["selectivity"] == 0.01]
    names = distinct(row["data"] for row in rows)
    if not names:
        return None
    figure, axes = panels(len(names), 4)
    for axis, name in zip(axes, names):
        some = [row for row in rows if row["data"] == name]
        for label in distinct(map(series, some)):
            points = sorted((row["n"], row["ms"]) for row in some
                            if series(row) == label)
            axis.plot(*zip(*points), "o-", ms=3.5, label=label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("n")
        axis.set_title(f"{name}, {some[0]['q']} queries, 1%")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ms")
    axes[0].legend(fontsize=7)
    return figure


def table(rows):
    """Lines of a table in Markdown: times, and distances computed."""
    columns = distinct(map(series, rows))
    yield "| data | queries | in range | " + " | ".join(columns) + " |"
    yield "|---" * (3 + len(columns)) + "|"
    for key in distinct(map(cell, rows)):
        some = {series(row): row for row in rows if cell(row) == key}
        first = next(iter(some.values()))
        cells = [f"{some[one]['ms']:.3g} ms, "
                 f"{100 * some[one]['evaluations']:.3g}%"
                 if one in some else "-" for one in columns]
        yield (f"| {key[0]}, {key[1]:,} x {first['d']} | {key[2]:,} "
               f"| {percent(first)} | " + " | ".join(cells) + " |")


FIGURES = {"figure_5": figure_5, "table_2": table_2}


def main(path):
    rows = load(path)["rows"]
    save_figures(rows, FIGURES, pathlib.Path(path).with_suffix(""))
    for line in table(rows):
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
