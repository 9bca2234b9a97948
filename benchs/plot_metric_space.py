#!/usr/bin/env python3
"""Draw the figures of Barrientos et al. 2012 from a result of bench_metric_space.

    benchs/plot_metric_space.py benchs/results/h200/metric_space.json

Writes metric_space_figure_2.png, .svg and so on beside the file, one pair a
figure that has rows. Prints tables for docs/papers.md, and the cells in
which an index is no faster than brute force by the same mapping. Of a result of
metric_transactions.py: figure 3 c, and a table of it.
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from result_file import load  # noqa: E402

# The same data makes the same file: without it, names inside are random.
plt.rcParams["svg.hashsalt"] = "metric_space"

INDEXES = {
    "brute_force": ("brute force", "#8a8a8a"),
    "list_of_clusters": ("List of Clusters", "#1b6ca8"),
    "sss": ("SSS", "#e07b39"),
}
MAPPINGS = {
    "sequential": "1 thread",
    "openmp": "OpenMP",
    "query_major": "GPU, as the paper",
    "group_major": "GPU, by groups",
}


def of_pivots(row):
    """Whether it is a row of figure 2: a number of pivots was asked for."""
    return row["settings"].startswith("pivots = ")


def largest(rows):
    """The rows of the largest n of each data set and metric, without those of
    figure 2."""
    most = {}
    for row in rows:
        key = (row["data"], row["metric"])
        most[key] = max(row["n"], most.get(key, 0))
    return [row for row in rows
            if row["n"] == most[row["data"], row["metric"]]
            and not of_pivots(row)]


def distinct(values):
    """Each value once, in the order of their first places."""
    return list(dict.fromkeys(values))


def panels(count, height=3.4):
    """A figure and its axes in a row."""
    figure, axes = plt.subplots(1, count, figsize=(4.4 * count, height),
                                squeeze=False)
    return figure, list(axes[0])


def percent(row):
    return f"{100 * row['selectivity']:g}%"


def figure_2(rows):
    """SSS with a growing number of pivots: times and distances."""
    rows = [row for row in rows if of_pivots(row)]
    names = distinct(row["data"] for row in rows)
    if not names:
        return None
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names):
        for mapping, mark in (("group_major", "o-"), ("query_major", "s--")):
            points = sorted((row["references"], row["ms"], row["evaluations"])
                            for row in rows
                            if row["data"] == name
                            and row["mapping"] == mapping)
            pivots, times, shares = zip(*points)
            axis.plot(pivots, [t / max(times) for t in times], mark,
                      color="#e07b39", label=f"time, {MAPPINGS[mapping]}")
            axis.plot(pivots, shares, mark, color="#1b6ca8",
                      label=f"distances / n, {MAPPINGS[mapping]}")
        axis.set_xscale("log", base=2)
        axis.set_title(name)
        axis.set_xlabel("pivots")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    return figure


def figure_3(rows):
    """Distances and times of the most queries, of each data set over the
    greatest."""
    rows = [row for row in largest(rows)
            if row["mapping"] in ("query_major", "group_major")]
    names = distinct(row["data"] for row in rows)
    if not names:
        return None
    figure, axes = plt.subplots(2, len(names), squeeze=False,
                                figsize=(4.4 * len(names), 6))
    for column, name in enumerate(names):
        some = [row for row in rows if row["data"] == name]
        q = max(row["q"] for row in some)
        some = [row for row in some if row["q"] == q]
        levels = distinct(map(percent, some))
        bars = [(index, mapping) for index in INDEXES
                for mapping in ("query_major", "group_major")]
        for line, field in enumerate(("evaluations", "ms")):
            axis = axes[line][column]
            most = max(row[field] for row in some)
            for i, (index, mapping) in enumerate(bars):
                heights = [row[field] / most for row in some
                           if (row["index"], row["mapping"])
                           == (index, mapping)]
                axis.bar([x + (i - 2.5) * 0.13 for x in range(len(heights))],
                         heights, 0.12, color=INDEXES[index][1],
                         alpha=0.5 if mapping == "query_major" else 1,
                         label=f"{INDEXES[index][0]}, {MAPPINGS[mapping]}")
            axis.set_xticks(range(len(levels)), levels)
            axis.set_yscale("linear" if line == 0 else "log")
            axis.set_ylabel(f"{'distances' if line == 0 else 'time'} / most")
        axes[0][column].set_title(f"{name}, {q} queries")
    axes[0][-1].legend(fontsize=6, loc="upper left")
    return figure


def sectors(row):
    """Sectors that the multiprocessors read and write."""
    return row["l2_reads"] + row["l2_writes"]


def figure_3c(rows):
    """What searches read and write, of each data set over the greatest."""
    names = distinct(row["data"] for row in rows)
    figure, axes = panels(len(names), 4)
    bars = [(index, mapping) for index in INDEXES
            for mapping in ("query_major", "group_major")]
    for axis, name in zip(axes, names):
        some = [row for row in rows if row["data"] == name]
        levels = distinct(map(percent, some))
        most = max(map(sectors, some))
        for i, (index, mapping) in enumerate(bars):
            heights = [sectors(row) / most for row in some
                       if (row["index"], row["mapping"]) == (index, mapping)]
            axis.bar([x + (i - 2.5) * 0.13 for x in range(len(heights))],
                     heights, 0.12, color=INDEXES[index][1],
                     alpha=0.5 if mapping == "query_major" else 1,
                     label=f"{INDEXES[index][0]}, {MAPPINGS[mapping]}")
        axis.set_xticks(range(len(levels)), levels)
        axis.set_yscale("log")
        axis.set_title(f"{name}, {some[0]['q']} queries")
    axes[0].set_ylabel("sectors read and written / most")
    axes[-1].legend(fontsize=6)
    return figure


def transactions_table(rows):
    """Lines of a table in Markdown: millions of sectors, and of those of memory."""
    yield ("| data | in range | index | mapping | distances | sectors to and from"
           " L2 | to and from memory |")
    yield "|---" * 7 + "|"
    for row in rows:
        memory = row["memory_reads"] + row["memory_writes"]
        yield (f"| {row['data']}, {row['n']:,} x {row['d']}, {row['q']:,} "
               f"queries | {percent(row)} | {INDEXES[row['index']][0]} "
               f"| {MAPPINGS[row['mapping']]} | {100 * row['evaluations']:.3g}% "
               f"| {sectors(row) / 1e6:.3g} M | {memory / 1e6:.3g} M |")


def figure_4(rows):
    """How many times as fast as sequential brute force."""
    rows = largest(rows)
    base = {(row["data"], row["q"], row["selectivity"]): row["ms"]
            for row in rows
            if (row["index"], row["mapping"]) == ("brute_force", "sequential")}
    names = distinct(name for name, _, _ in base)
    if not names:
        return None
    figure, axes = panels(len(names), 4)
    for axis, name in zip(axes, names):
        some = [row for row in rows
                if row["data"] == name
                and (name, row["q"], row["selectivity"]) in base]
        levels = distinct(map(percent, some))
        bars = [(index, mapping) for mapping in MAPPINGS for index in INDEXES]
        for i, (index, mapping) in enumerate(bars):
            for x, level in enumerate(levels):
                for row in some:
                    if (row["index"], row["mapping"], percent(row)) != (
                            index, mapping, level):
                        continue
                    gain = base[name, row["q"], row["selectivity"]] / row["ms"]
                    axis.bar(i + (x - 1) * 0.27, gain, 0.25,
                             color=INDEXES[index][1], alpha=0.4 + 0.3 * x)
        axis.set_xticks(
            range(len(bars)),
            [f"{INDEXES[index][0]}, {MAPPINGS[mapping]}"
             for index, mapping in bars], rotation=90, fontsize=7)
        axis.set_yscale("log")
        axis.set_title(f"{name}, {', '.join(levels)}")
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("speed-up")
    return figure


def table_2(rows):
    """List of Clusters at 1% of growing collections."""
    rows = [row for row in rows
            if row["index"] == "list_of_clusters" and row["selectivity"] == 0.01
            and not of_pivots(row)]
    names = distinct(row["data"] for row in rows)
    names = [name for name in names
             if len({row["n"] for row in rows if row["data"] == name}) > 1]
    if not names:
        return None
    figure, axes = panels(len(names))
    for axis, name in zip(axes, names):
        some = [row for row in rows if row["data"] == name]
        q = min(row["q"] for row in some)
        for mapping, label in MAPPINGS.items():
            points = sorted((row["n"], row["ms"]) for row in some
                            if row["mapping"] == mapping and row["q"] == q)
            if points:
                axis.plot(*zip(*points), "o-", ms=3.5, label=label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("n")
        axis.set_title(f"{name}, {q} queries, 1%")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ms")
    axes[0].legend(fontsize=7)
    return figure


def lost_cells(rows):
    """Lines on the cells in which an index takes as long as brute force."""
    def cell(row):
        return tuple(row[name] for name in (
            "data", "metric", "n", "q", "selectivity", "mapping"))

    brute = {cell(row): row["ms"] for row in rows
             if row["index"] == "brute_force"}
    for row in rows:
        if row["index"] != "brute_force" and row["ms"] >= brute[cell(row)]:
            yield (f"{row['index']} ({row['settings']}), {row['mapping']}: "
                   f"{row['data']} {row['n']} x {row['d']}, q = {row['q']}, "
                   f"{percent(row)}: {row['ms']:.3g} ms, brute force "
                   f"{brute[cell(row)]:.3g}")


def tables(rows):
    """Lines of two tables in Markdown: the most queries on the GPU, and what ran
    on the CPU too."""
    rows = largest(rows)
    mappings = {"group_major": "by groups", "query_major": "as the paper",
                "sequential": "1 thread", "openmp": "OpenMP"}
    for kinds in (("group_major", "query_major"),
                  ("sequential", "openmp", "query_major", "group_major")):
        columns = [(index, mapping) for mapping in kinds for index in INDEXES]
        yield "| data | queries | in range | " + " | ".join(
            f"{INDEXES[index][0]}, {mappings[mapping]}"
            for index, mapping in columns) + " |"
        yield "|---" * (3 + len(columns)) + "|"
        for name in distinct(row["data"] for row in rows):
            some = [row for row in rows if row["data"] == name
                    and row["metric"] == "L2"]
            qs = [row["q"] for row in some if "sequential" in kinds
                  and row["mapping"] == "sequential"
                  or "sequential" not in kinds]
            if not qs:
                continue
            some = [row for row in some if row["q"] == max(qs)]
            for level in distinct(map(percent, some)):
                cells = []
                for index, mapping in columns:
                    found = [row for row in some
                             if (row["index"], row["mapping"], percent(row))
                             == (index, mapping, level)]
                    share = 100 * found[0]["evaluations"] if found else 0
                    cells.append(
                        f"{found[0]['ms']:.3g} ms"
                        + (f", {share:.3g}%" if index != "brute_force" else "")
                        if found else "-")
                yield (f"| {name}, {some[0]['n']:,} x {some[0]['d']} "
                       f"| {some[0]['q']:,} | {level} | "
                       + " | ".join(cells) + " |")
        yield ""


FIGURES = {"figure_2": figure_2, "figure_3": figure_3, "figure_4": figure_4,
           "table_2": table_2}


def save_figures(rows, figures, stem):
    """Writes the figures that there are rows for."""
    for name, draw in figures.items():
        figure = draw(rows)
        if figure is None:
            continue
        figure.tight_layout()
        for kind in ("png", "svg"):
            figure.savefig(f"{stem}_{name}.{kind}", dpi=150,
                           metadata={"Date": None} if kind == "svg" else None)
        plt.close(figure)


def named_by_dimension(rows):
    """The rows; data of one name and several dimensions are named apart."""
    dims = {}
    for row in rows:
        dims.setdefault(row["data"], set()).add(row["d"])
    return [{**row, "data": f"{row['data']}, d = {row['d']}"}
            if len(dims[row["data"]]) > 1 else row for row in rows]


def main(path):
    rows = named_by_dimension(load(path)["rows"])
    stem = pathlib.Path(path).with_suffix("")
    if rows and "l2_reads" in rows[0]:
        save_figures(rows, {"figure_3c": figure_3c}, stem)
        lines = transactions_table(rows)
    else:
        save_figures(rows, FIGURES, stem)
        lines = (*tables(rows), *lost_cells(rows))
    for line in lines:
        print(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
