#!/usr/bin/env python3
"""Draw the papers' figures from a result of bench_queues.

    benchs/plot_papers.py benchs/results/h200/papers.json

Writes papers_hanak_5.2.png, .svg and so on beside the file, one pair a figure
that has rows. Missing rows leave gaps.
"""

import json
import math
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from program import end_with  # noqa: E402

# The same data makes the same file: without it, names inside are random.
plt.rcParams["svg.hashsalt"] = "papers"

#: Figures of two panels that are measured under two names.
TOGETHER = {"tang_9a": "tang_9", "tang_9b": "tang_9"}
QUEUES = {"insertion": "Insertion Queue", "heap": "Heap Queue",
          "merge_aligned": "Merge Queue (aligned)", "merge": "Merge Queue"}
LABELS = {
    "bitonic_shared": "shared memory",
    "bitonic_shuffles": "+ shuffles",
    "bitonic_registers": "in registers",
    "bitonic_buffered": "buffered",
    "bits": "bits",
    "faiss_warp": "FAISS WarpSelect",
    "faiss_block": "FAISS BlockSelect",
    "merge_aligned+buf+full+sort": "buffered Merge Queue",
    "sample_select": "Sample Select, one stage",
    "sample_select_two_stage": "Sample Select, two stages",
    "radix_select": "Radix Select",
    "bits_global": "bits, list in global memory",
    "sort": "CUB sort",
}


def power(number):
    """1048576 as 2^20; 1 and other numbers as they are."""
    exponent = int(number).bit_length() - 1
    is_power = exponent > 0 and number == 2**exponent
    return f"$2^{{{exponent}}}$" if is_power else str(number)


def rate(row):
    """10^9 keys a second."""
    return row["rows"] * row["cols"] / row["ms"] / 1e6


def lines(rows, name, x, y):
    """{name(row): [(x, y)] by x}."""
    series = {}
    for row in rows:
        series.setdefault(name(row), []).append((row[x], y(row)))
    return {key: sorted(points) for key, points in series.items()}


def speedups(rows, base, x, name, cell):
    """{name(row): [(x, time of the base over the row's)]}.

    base(row) is true for rows to compare with, one for each cell(row); rows
    whose base is missing are left out.
    """
    times = {cell(row): row["ms"] for row in rows if base(row)}
    compared = [row for row in rows if not base(row) and cell(row) in times]
    return lines(compared, name, x, lambda row: times[cell(row)] / row["ms"])


def distinct(values):
    """Each value once, in the order of their first places."""
    return list(dict.fromkeys(values))


def plot(axis, series, label=lambda name: LABELS.get(name, name), among=None):
    """Draws {name: points} with a logarithmic x.

    The place of a name in `among` is its colour: panels that share a list
    share colours, also where a panel lacks some of the names.
    """
    among = list(series) if among is None else among
    for name in series:
        xs, ys = zip(*series[name])
        axis.plot(xs, ys, "o-", ms=3.5, color=f"C{among.index(name)}",
                  label=label(name))
    axis.set_xscale("log", base=2)
    axis.grid(alpha=0.3)


def panels(count):
    """A figure and its axes in a row."""
    figure, axes = plt.subplots(1, count, figsize=(4.4 * count, 3.6),
                                squeeze=False)
    return figure, list(axes[0])


def shapes(rows):
    """Shapes of the rows, by columns."""
    return sorted({(row["rows"], row["cols"]) for row in rows},
                  key=lambda shape: shape[1])


def by_k(row):
    return row["k"]


def method(row):
    return row["method"]


# ---- Hanak 2023 ------------------------------------------------------------

def draw_steps(rows):
    """5.2: steps of the sort against shared memory alone."""
    figure, (axis,) = panels(1)
    plot(axis, speedups(rows, lambda r: r["method"] == "bitonic_shared", "k",
                        method, by_k))
    axis.set(xlabel="k", ylabel="speed-up over shared memory")
    return figure


def draw_buffer(rows):
    """5.3: the buffer against sorting everything."""
    figure, (axis,) = panels(1)
    plot(axis, speedups(rows, lambda r: r["method"] == "bitonic_registers",
                        "k", method, by_k))
    axis.set(xlabel="k", ylabel="speed-up over no buffer")
    return figure


def draw_reads(rows):
    """5.4: reads a thread and prefetching against one read."""
    figure, axes = panels(2)
    for axis, prefetch in zip(axes, (0, 1)):
        def name(row):
            return row["reads"] if row["prefetch"] == prefetch else None
        series = speedups(
            rows, lambda r: r["reads"] == 1 and not r["prefetch"], "k", name,
            by_k)
        series.pop(None, None)
        plot(axis, series, lambda reads: f"{reads} read" + "s" * (reads > 1),
             distinct(row["reads"] for row in rows))
        axis.set(xlabel="k", ylabel="speed-up over one read a thread",
                 title="with prefetch" if prefetch else "without prefetch")
        axis.legend(fontsize=8)
    return figure


def draw_rates(rows, x="k", name=method, label=None):
    """Throughput, a panel a shape."""
    figure, axes = panels(len(shapes(rows)))
    among = distinct(map(name, rows))
    for axis, (queries, columns) in zip(axes, shapes(rows)):
        here = [row for row in rows
                if (row["rows"], row["cols"]) == (queries, columns)]
        plot(axis, lines(here, name, x, rate),
             label or (lambda key: LABELS.get(key, key)), among)
        axis.set(xlabel=x, title=f"q = {power(queries)}, "
                                 f"n = {power(columns)}")
        axis.set_ylim(0, 1.06 * max(map(rate, here)))
    axes[0].set_ylabel("$10^9$ distances / s")
    return figure


def draw_thread_queues(rows):
    """5.5: the best size of WarpSelect's thread queue, and FAISS's choice."""
    best = {}
    for row in sorted(rows, key=rate):
        if "thread_queue" in row:
            best[row["k"]] = row
    default = [row for row in rows if "thread_queue" not in row]
    figure = draw_rates(
        [*best.values(), *default],
        name=lambda row: "best size (the numbers)" if "thread_queue" in row
        else "FAISS's choice")
    for k, row in best.items():
        figure.axes[0].annotate(
            row["thread_queue"], (k, rate(row)), xytext=(0, -12), fontsize=8,
            textcoords="offset points", ha="center")
    return figure


def draw_partitions(rows):
    """5.7: one row in parts."""
    return draw_rates(rows, "partitions", by_k, lambda k: f"k = {k}")


def draw_multi_pass(rows):
    """5.10, 5.11: sorted results and unsorted ones."""
    def name(row):
        if row["method"] == "sort" or row["sorted"]:
            return row["method"]
        return row["method"] + ", unsorted"

    def label(key):
        base, _, rest = key.partition(",")
        return LABELS.get(base, base) + ("," + rest if rest else "")
    return draw_rates(rows, "k", name, label)


# ---- Tang 2015 -------------------------------------------------------------

def queue_of(row):
    return row["method"].partition("+")[0]


def options_of(row):
    return row["method"].partition("+")[2]


def draw_improvement(rows, x, title):
    """Time without over time with an optimisation, a panel a queue."""
    names = [q for q in QUEUES if any(queue_of(r) == q for r in rows)]
    figure, axes = panels(len(names))
    among = distinct(map(options_of, rows))
    for axis, queue in zip(axes, names):
        here = [row for row in rows if queue_of(row) == queue]
        series = speedups(here, lambda r: r["method"] == queue, x, options_of,
                          lambda r: r[x])
        plot(axis, series, title, among)
        axis.set(xlabel="k" if x == "k" else "N", title=QUEUES[queue])
    axes[0].set_ylabel("improvement")
    return figure


def buffer_title(options):
    return {"buf": "buffer", "buf+full": "full buffer",
            "buf+full+sort": "full sorted buffer"}.get(options, options)


def group_title(options):
    return options.replace("hp", "G = ")


def draw_both(rows):
    """9: buffer and partition together, over k and over N."""
    figure, axes = panels(2)
    for axis, (name, x) in zip(axes, (("tang_9a", "k"), ("tang_9b", "cols"))):
        here = [row for row in rows if row["figure"] == name]
        series = speedups(here, lambda r: "+" not in r["method"], x, queue_of,
                          lambda r: (queue_of(r), r[x]))
        plot(axis, series, lambda queue: QUEUES[queue],
             distinct(map(queue_of, rows)))
        axis.set(xlabel="k" if x == "k" else "N")
    axes[0].set_ylabel("improvement")
    return figure


def milliseconds(ms):
    """Three digits, and no exponent."""
    return f"{ms:.3g}" if ms < 1000 else f"{ms:.0f}"


def table_cells(rows):
    """(column names, row names, texts) of Table I."""
    columns = sorted({(row["k"], row["cols"]) for row in rows},
                     key=lambda c: (c[1] != 2**15, c[1], c[0]))
    names, times = [], {}
    for row in rows:
        name = row["method"]
        if row.get("threads_per_row") == 0:
            name += " (today)"
        if name not in names:
            names.append(name)
        times[name, (row["k"], row["cols"])] = row["ms"]
    texts = [[milliseconds(times[name, c]) if (name, c) in times else ""
              for c in columns] for name in names]
    return [f"k={k}\nN={power(n)}" for k, n in columns], names, texts


def draw_table(rows):
    """Table I, in milliseconds."""
    columns, names, texts = table_cells(rows)
    figure, axis = plt.subplots(
        figsize=(2.6 + 0.85 * len(columns), 1.3 + 0.27 * len(names)))
    axis.axis("off")
    table = axis.table(cellText=texts, rowLabels=names, colLabels=columns,
                       loc="center", cellLoc="right")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.scale(1, 1.25)
    for (line, _), cell in table.get_celld().items():
        if line == 0:
            cell.set_height(cell.get_height() * 1.8)
    return figure


FIGURES = {
    "hanak_5.2": ("bitonic sort in three steps", draw_steps),
    "hanak_5.3": ("buffering", draw_buffer),
    "hanak_5.4": ("reads a thread and prefetching", draw_reads),
    "hanak_5.5": ("WarpSelect and its thread queue", draw_thread_queues),
    "hanak_5.6": ("single-pass selection", draw_rates),
    "hanak_5.7": ("one row in partitions", draw_partitions),
    "hanak_5.10": ("Sample Select", draw_multi_pass),
    "hanak_5.11": ("multi-pass selection", draw_multi_pass),
    "tang_6": ("Buffered Search",
               lambda rows: draw_improvement(rows, "k", buffer_title)),
    "tang_7": ("Hierarchical Partition over k",
               lambda rows: draw_improvement(rows, "k", group_title)),
    "tang_8": ("Hierarchical Partition over N",
               lambda rows: draw_improvement(rows, "cols", group_title)),
    "tang_9": ("buffer and partition together", draw_both),
    "tang_table_1": ("k-selection, milliseconds for 8192 queries", draw_table),
}


def title_of(name):
    """hanak_5.2 as "Hanak 2023, figure 5.2"."""
    paper, _, number = name.partition("_")
    place = number.replace("table_1", "table I")
    place = place if place.startswith("table") else "figure " + place
    return {"hanak": "Hanak 2023", "tang": "Tang 2015"}[paper] + ", " + place


def add_legend(figure):
    """One legend of all panels under them, in inches so that nothing is cut.

    Returns the share of the figure's height that it takes.
    """
    seen = {}
    for axis in figure.axes:
        if axis.get_legend() is None:
            for handle, label in zip(*axis.get_legend_handles_labels()):
                seen.setdefault(label, handle)
    if not seen:
        return 0
    width, height = figure.get_size_inches()
    column = 0.6 + 0.065 * max(map(len, seen))
    columns = max(1, min(len(seen), int(width / column)))
    taken = 0.1 + 0.17 * math.ceil(len(seen) / columns)
    figure.set_size_inches(width, height + taken)
    figure.legend(seen.values(), seen.keys(), loc="lower center",
                  ncol=columns, fontsize=8, frameon=False)
    return taken / (height + taken)


def save(figure, path, name, meta):
    """Writes both files of one figure and returns their paths."""
    bottom = add_legend(figure)
    figure.suptitle(
        f"{title_of(name)}: {FIGURES[name][0]}\n{meta['gpu']}, CUDA "
        f"{meta['cuda']}, {meta['date']}, commit {meta['commit'][:10]}",
        fontsize=9)
    figure.tight_layout(rect=(0, bottom, 1, 1))
    written = []
    for suffix in (".png", ".svg"):
        out = path.with_name(f"{path.stem}_{name}{suffix}")
        # No date inside, for the same reason as the salt above.
        extra = {"metadata": {"Date": None}} if suffix == ".svg" else {}
        figure.savefig(out, dpi=130, **extra)
        written.append(out)
    plt.close(figure)
    return written


def draw(path):
    """Draws one file and returns the paths written, none if it has no rows."""
    path = pathlib.Path(path)
    data = json.loads(path.read_text())
    figures = {}
    for row in data["rows"]:
        if row["bench"] == "papers" and row["ms"] is not None:
            name = TOGETHER.get(row["figure"], row["figure"])
            figures.setdefault(name, []).append(row)
    unknown = sorted(set(figures) - set(FIGURES))
    if unknown:
        raise SystemExit(f"{path}: no drawing for {', '.join(unknown)}")
    written = []
    for name, rows in figures.items():
        written += save(FIGURES[name][1](rows), path, name, data["meta"])
    return written


def main(paths):
    """Returns the exit status."""
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 2
    for path in paths:
        written = draw(path)
        print(f"{path}: " + (", ".join(p.name for p in written) or "no rows"))
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
