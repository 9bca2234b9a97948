"""The figure of bench_select_sweep, for plot.py."""

import collections

import matplotlib.pyplot as plt

from result_file import cell_of

ALGORITHM_COLORS = {
    "sample_threshold": "#1b6ca8",
    "short_rows": "#2a9d5c",
    "bits": "#e07b39",
}
#: Below, a call is mostly launches, and order tells little.
LEAST_MS = 0.1
ADVERSARIES = ("adversary_best", "adversary_worst")


def races(rows):
    """[(our row, the fastest rival's time over ours)] of cells with both;
    rivals that were wrong take no part."""
    ours, best = {}, {}
    for row in rows:
        cell = cell_of(row)
        if row["method"] == "faiss_bits":
            ours[cell] = row
        elif not row.get("wrong"):
            best[cell] = min(best.get(cell, row["ms"]), row["ms"])
    return [(row, best[cell] / row["ms"]) for cell, row in ours.items()
            if cell in best]


def order_ratios(rows):
    """{order: [our time over that of random keys]} of cells of LEAST_MS and
    more, by the largest ratio."""
    ratios = collections.defaultdict(list)
    for row in rows:
        if row["method"] == "faiss_bits" and row["order"] != "random" \
                and row["random_ms"] >= LEAST_MS:
            ratios[row["order"]].append(row["ms"] / row["random_ms"])
    return dict(sorted(ratios.items(), key=lambda item: max(item[1])))


def draw_races(axis, pairs):
    """Speed-up by our time, one mark a cell; sorts of most of a row hollow."""
    for row, ratio in pairs:
        name = row.get("algorithm", "")
        color = ALGORITHM_COLORS.get(name, "#8a8a8a")
        is_sort = 4 * row["k"] > row["cols"]
        axis.plot(row["ms"], ratio, "o", ms=4, mew=0.8, color=color,
                  mfc="none" if is_sort else color,
                  label=name if name in ALGORITHM_COLORS else "other")
    axis.axhline(1, color="black", lw=0.8, ls=":")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("our time, ms (hollow: k > cols / 4)", fontsize=9)
    axis.set_title("times faster than the fastest rival", fontsize=10)
    axis.grid(alpha=0.3)


def draw_ratios(axis, ratios):
    """One line an order."""
    for y, (order, values) in enumerate(ratios.items()):
        color = "#c0392b" if order in ADVERSARIES else "#1b6ca8"
        axis.plot(values, [y] * len(values), "o", ms=4, alpha=0.5, color=color)
    axis.set_yticks(range(len(ratios)), list(ratios), fontsize=8)
    axis.axvline(1, color="black", lw=0.8, ls=":")
    axis.set_xscale("log")
    axis.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axis.minorticks_off()
    axis.set_xlabel(
        f"cells of {LEAST_MS} ms and more with random keys", fontsize=9)
    axis.set_title("time over that of random keys", fontsize=10)
    axis.grid(alpha=0.3)


def draw_sweep(rows):
    """Figure of a select_sweep file."""
    figure, axes = plt.subplots(1, 2, figsize=(13, 6))
    draw_races(axes[0], races(rows))
    draw_ratios(axes[1], order_ratios(rows))
    return figure
