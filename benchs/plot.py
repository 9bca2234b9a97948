#!/usr/bin/env python3
"""Draw result files: benchs/plot.py benchs/results/h200/*.json

Writes NAME.png and NAME.svg next to each NAME.json. Select: share of the read
bandwidth by k, one panel a shape and type of keys; then our time on keys in
another order over that on random keys, one panel a shape. Flat: speed-up over
FAISS by d and q, one panel a k, and distances per second by q below. Select
sweep: speed-up over the fastest rival, a mark a cell, and our time in each
order over that of random keys. What ivf_rivals.py wrote: time by recall, one
panel a data set and index. Missing rows leave gaps. Rows of a forced
algorithm are not drawn.
"""

import collections
import json
import math
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

from plot_ivf import draw_ivf, is_race  # noqa: E402
from plot_sweep import draw_sweep  # noqa: E402

from program import end_with

LABELS = {
    "faiss_bits": "faiss_bits",
    "faiss_block": "FAISS BlockSelect",
    "faiss_warp": "FAISS WarpSelect",
    "faiss_flat": "FAISS GpuIndexFlat",
    "raft_auto": "RAFT select_k, auto",
    "raft_radix": "RAFT select_k, radix",
    "raft_warpsort": "RAFT select_k, warpsort",
    "torch_topk": "torch.topk",
    "cub_sort": "CUB sort",
    "cub_topk": "CUB top-k and sort",
}
COLORS = {
    "faiss_bits": "#1b6ca8",
    "faiss_block": "#e07b39",
    "faiss_warp": "#8a8a8a",
    "faiss_flat": "#e07b39",
    "raft_auto": "#2a9d5c",
    "raft_radix": "#7bc47f",
    "raft_warpsort": "#b5c334",
    "torch_topk": "#c0392b",
    "cub_sort": "#8e5ea2",
    "cub_topk": "#d19bd8",
}
#: Orders other than random, each with its mark: the colours are few.
ORDER_STYLES = {
    "ascending": ("#1b6ca8", "^"),
    "descending": ("#e07b39", "v"),
    "equal": ("#8a8a8a", "s"),
    "few": ("#2a9d5c", "D"),
    "half_inf": ("#8e5ea2", "P"),
    "nan": ("#c0392b", "X"),
    "sift": ("#333333", "o"),
}
#: What the other orders are held to (benchs/select_targets.json).
ORDER_LIMIT = 1.25
LEGEND_COLUMNS = 9
#: The slice of a file that is drawn; the rest is in the JSON.
FLAT_SLICE = {"metric": "L2", "dtype": "float32"}


def distinct(rows, field):
    """Sorted values of a field."""
    return sorted({row[field] for row in rows})


def power(number):
    """1048576 as 2^20, other numbers as they are."""
    exponent = int(number).bit_length() - 1
    return f"$2^{{{exponent}}}$" if number >= 1024 and number == 2**exponent \
        else str(number)


def shape_title(rows, cols, dtype):
    """64 x 2^24, and the type of the keys unless it is the usual one."""
    title = f"{power(rows)} x {power(cols)}"
    return title if dtype == "float32" else f"{title}, {dtype}"


def select_panels(rows):
    """[(title, {method: [(k, frac_read)]})] of keys in random order, one a
    shape and type."""
    panels = {}
    for row in rows:
        if row["order"] != "random":
            continue
        key = row["dtype"] != "float32", row["dtype"], row["rows"], row["cols"]
        points = panels.setdefault(key, {}).setdefault(row["method"], [])
        points.append((row["k"], row["frac_read"]))
    return [(shape_title(*key[2:], key[1]),
             {m: sorted(p) for m, p in panels[key].items()})
            for key in sorted(panels)]


def order_panels(rows):
    """[(title, {order: [(k, our time over that of random keys)]})], one a
    shape and type with rows of other orders."""
    def key_of(row):
        return row["dtype"], row["rows"], row["cols"]

    ours = [row for row in rows if row["method"] == "faiss_bits"]
    easy = {(key_of(row), row["k"]): row["ms"] for row in ours
            if row["order"] == "random"}
    panels = {}
    for row in ours:
        base = easy.get((key_of(row), row["k"]))
        if row["order"] != "random" and base:
            series = panels.setdefault(key_of(row), {})
            series.setdefault(row["order"], []).append(
                (row["k"], row["ms"] / base))
    return [(shape_title(*key[1:], key[0]) + ", orders",
             {order: sorted(p) for order, p in panels[key].items()})
            for key in sorted(panels)]


def draw_shares(axis, series):
    """One panel of select_panels; ours on top of the others."""
    for method in sorted(series):
        ks, shares = zip(*series[method])
        ours = method == "faiss_bits"
        axis.plot(ks, shares, "o-", ms=3.5, color=COLORS.get(method),
                  lw=2.2 if ours else 1.2, zorder=3 if ours else 2,
                  label=LABELS.get(method, method))
    axis.set_ylim(0, 1.05)
    axis.set_ylabel("share of read bandwidth", fontsize=8)


def draw_orders(axis, series):
    """One panel of order_panels."""
    for order in sorted(series):
        ks, ratios = zip(*series[order])
        color, mark = ORDER_STYLES.get(order, (None, "o"))
        axis.plot(ks, ratios, f"{mark}-", ms=4.5, lw=1, color=color,
                  label=order)
    axis.axhline(ORDER_LIMIT, color="black", lw=0.8, ls=":")
    most = max(ratio for points in series.values() for _, ratio in points)
    axis.set_ylim(0, max(1.4, 1.1 * most))
    axis.set_ylabel("time over random order", fontsize=8)


def draw_select(rows):
    """Figure of a select file."""
    panels = [(draw_shares, *panel) for panel in select_panels(rows)]
    panels += [(draw_orders, *panel) for panel in order_panels(rows)]
    columns = min(4, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.9 * columns, 2.8 * lines), squeeze=False)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    for axis, (draw_panel, title, series) in zip(axes.flat, panels):
        draw_panel(axis, series)
        axis.set_xscale("log", base=2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("k", fontsize=8)
        axis.grid(alpha=0.3)
    return figure


def speedups(rows, k):
    """{(d, q): FAISS's time over ours} for one k; cells with both only."""
    times = {}
    for row in rows:
        if row["k"] == k:
            times.setdefault((row["d"], row["q"]), {})[row["method"]] = row["ms"]
    return {cell: t["faiss_flat"] / t["faiss_bits"] for cell, t in times.items()
            if t.get("faiss_flat") and t.get("faiss_bits")}


def draw_heat(axis, rows, k):
    """Speed-ups of one k, by d and q."""
    cells = speedups(rows, k)
    ds, qs = distinct(rows, "d"), distinct(rows, "q")
    image = [[math.log2(cells[d, q]) if (d, q) in cells else math.nan
              for q in qs] for d in ds]
    axis.imshow(image, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
    for y, d in enumerate(ds):
        for x, q in enumerate(qs):
            if (d, q) in cells:
                dark = abs(math.log2(cells[d, q])) > 1.5
                axis.text(x, y, f"{cells[d, q]:.1f}", ha="center",
                          va="center", fontsize=8,
                          color="white" if dark else "black")
    axis.set_xticks(range(len(qs)), [str(q) for q in qs])
    axis.set_yticks(range(len(ds)), [str(d) for d in ds])
    axis.set_title(f"k = {k}: times faster than FAISS", fontsize=9)
    axis.set_xlabel("queries")


def draw_rate(axis, rows, k):
    """Distances per second of one k by q: one colour a d, FAISS dashed."""
    ds = distinct(rows, "d")
    for row_color, d in zip(plt.cm.viridis([i / max(1, len(ds) - 1) * 0.9
                                            for i in range(len(ds))]), ds):
        for method, style in (("faiss_bits", "o-"), ("faiss_flat", "x--")):
            points = sorted((row["q"], row["gdist_s"]) for row in rows
                            if row["k"] == k and row["d"] == d
                            and row["method"] == method)
            if points:
                qs, rates = zip(*points)
                axis.plot(qs, rates, style, ms=3.5, lw=1, color=row_color,
                          label=f"d = {d}" if method == "faiss_bits" else None)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("queries (dashed: FAISS)")
    axis.grid(alpha=0.3)


def draw_flat(rows):
    """Figure of a flat file."""
    rows = [row for row in rows if "data" not in row] or rows
    # As many vectors as most rows have.
    most = collections.Counter(row["n"] for row in rows).most_common(1)[0][0]
    rows = [row for row in rows if row["n"] == most]
    chosen = [row for row in rows
              if all(row[f] == v for f, v in FLAT_SLICE.items())] or rows
    ks = distinct(chosen, "k")
    figure, axes = plt.subplots(2, len(ks), figsize=(3.4 * len(ks), 6),
                                squeeze=False)
    for heat, rate, k in zip(axes[0], axes[1], ks):
        draw_heat(heat, chosen, k)
        draw_rate(rate, chosen, k)
    axes[0, 0].set_ylabel("d")
    axes[1, 0].set_ylabel("$10^9$ distances / s")
    return figure


def draw(path):
    """Draws one file and returns the paths written, none if it has no rows of
    these benches."""
    path = pathlib.Path(path)
    data = json.loads(path.read_text())
    rows = [row for row in data["rows"]
            if row.get("ms") is not None and not row.get("forced")]
    drawers = {"select": draw_select, "flat": draw_flat,
               "select_sweep": draw_sweep}
    if rows and is_race(rows):
        drawers["ivf"] = draw_ivf
    if not rows or rows[0]["bench"] not in drawers:
        return []
    figure = drawers[rows[0]["bench"]](rows)
    seen = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    inches = figure.get_figheight()
    lines = math.ceil(len(seen) / LEGEND_COLUMNS)
    figure.legend(seen.values(), seen.keys(), loc="lower center",
                  ncol=max(1, min(LEGEND_COLUMNS, len(seen))), fontsize=9,
                  frameon=False)
    meta = data["meta"]
    figure.suptitle(
        f"{rows[0]['bench']} on {meta['gpu']}, CUDA {meta['cuda']}, FAISS "
        f"{meta['faiss']}, {meta['date']}, commit {meta['commit'][:10]}",
        fontsize=10)
    figure.tight_layout(rect=(0, (0.1 + 0.2 * lines) / inches, 1, 0.99))
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for out in written:
        # No date inside, so that the same data makes the same file.
        extra = {"metadata": {"Date": None}} if out.suffix == ".svg" else {}
        figure.savefig(out, dpi=130, **extra)
    plt.close(figure)
    return written


def main(paths):
    """Returns the exit status."""
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 2
    for path in paths:
        written = draw(path)
        print(f"{path}: " + (", ".join(p.name for p in written) or "no rows to draw"))
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
