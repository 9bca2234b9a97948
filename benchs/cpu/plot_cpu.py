#!/usr/bin/env python3
"""Draws a result of bench_flat_cpu.py.

    benchs/cpu/plot_cpu.py benchs/results/cpu/flat.json

Beside the file, as PNG and SVG: flat (speed-up over the faster FAISS), and
figures 4 to 6 of Yu et al. 2015 drawn again (flat_figure_4 ...); and their
Table 5 as flat_table_5.md. What has no rows is left out; missing rows leave
gaps.
"""

import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the backend is chosen)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import table_5  # noqa: E402
from check_cpu import OURS, by_cell, faiss_names, speedup  # noqa: E402
from paper_model import gemm_heap_seconds  # noqa: E402
from result_file import load  # noqa: E402

PAPER_SIZE = 8192
COLORS = {OURS: "#1b6ca8", "gemm_heap": "#c0392b", "buffered": "#1b6ca8",
          "var1": "#2a9d5c", "var5": "#8e5ea2", "var6": "#e07b39",
          "direct": "#8a8a8a"}


def plain(rows, **wanted):
    """Measured rows of float32 and L2 whose fields have these values."""
    wanted = {"metric": "L2", "dtype": "float32", **wanted}
    return [row for row in rows if row["ms"]
            and all(row[field] == value for field, value in wanted.items())]


def race(rows, **wanted):
    return [row for row in plain(rows, **wanted) if not row.get("forced")]


def square(rows, size=PAPER_SIZE):
    """Rows of as many queries as vectors."""
    return [row for row in rows if row["n"] == size and row["q"] == size]


def series(rows, x, y):
    """[(x, y(row))] in the order of x; of repeated ones the last."""
    return sorted({row[x]: y(row) for row in rows}.items())


def gflops(row):
    return row["gflops"]


def predicted(row):
    """GFLOP/s that the cost model expects."""
    return row["gflops"] * row["ms"] / row["predicted_ms"]


def line(axis, points, style, **more):
    if points:
        axis.plot(*zip(*points), style, ms=3.5, **more)


def finish(axis, x, title):
    """What the panels of figures 4 to 6 share."""
    axis.set_xscale("log", base=2)
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)


def peak_line(axis, meta):
    axis.axhline(meta["peak_gflops"], color="black", lw=0.8, ls=":",
                 label="measured FMA peak")


# ---- speed-up over FAISS ----------------------------------------------------


def heat_panels(rows):
    """[(title, {(d, k): speed-up over the faster FAISS})], one for each n and
    q with several k."""
    rivals, panels = faiss_names(rows), {}
    for cell, methods in by_cell(plain(rows)).items():
        at = dict(cell[1:])
        value = speedup(methods, rivals)[1]
        if value is not None:
            panels.setdefault((at["n"], at["q"]), {})[at["d"], at["k"]] = value
    return [(f"n = {n:,}, q = {q:,}", panels[n, q]) for n, q in sorted(panels)
            if len({k for _, k in panels[n, q]}) > 1]


def draw_heat(axis, title, cells):
    ds = sorted({d for d, _ in cells})
    ks = sorted({k for _, k in cells})
    image = [[math.log2(cells[d, k]) if (d, k) in cells else math.nan
              for k in ks] for d in ds]
    axis.imshow(image, cmap="RdBu", vmin=-3, vmax=3, aspect="auto")
    for y, d in enumerate(ds):
        for x, k in enumerate(ks):
            if (d, k) in cells:
                dark = abs(math.log2(cells[d, k])) > 1.5
                axis.text(x, y, f"{cells[d, k]:.1f}", ha="center", va="center",
                          fontsize=8, color="white" if dark else "black")
    axis.set_xticks(range(len(ks)), [str(k) for k in ks])
    axis.set_yticks(range(len(ds)), [str(d) for d in ds])
    axis.set_title(title, fontsize=9)
    axis.set_xlabel("k", fontsize=8)
    axis.set_ylabel("d", fontsize=8)


def overview(data):
    """Speed-up over the faster FAISS, by d and k."""
    panels = heat_panels(data["rows"])
    if not panels:
        return None
    columns = min(4, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(lines, columns, squeeze=False,
                                figsize=(3.4 * columns, 2.6 * lines))
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    for axis, (title, cells) in zip(axes.flat, panels):
        draw_heat(axis, title, cells)
    return figure


# ---- the paper's figures -----------------------------------------------------


def figure_4(data):
    """GFLOP/s over d, measured and predicted, m = n = 8192."""
    meta = data["meta"]
    rows = square(race(data["rows"]))
    ks = [k for k in (16, 512, 2048)
          if any(r["k"] == k and r["method"] == OURS for r in rows)]
    if not ks:
        return None
    figure, axes = plt.subplots(1, len(ks), squeeze=False,
                                figsize=(4.2 * len(ks), 3.4))
    for axis, k in zip(axes[0], ks):
        here = [row for row in rows if row["k"] == k]
        ours = [row for row in here if row["method"] == OURS]
        gemm = [row for row in here if row["method"] == "gemm_heap"]
        line(axis, series(ours, "d", gflops), "o-", color=COLORS[OURS],
             label="faiss_bits")
        line(axis, series([r for r in ours if r.get("predicted_ms")], "d",
                          predicted), "--",
             color=COLORS[OURS], label="faiss_bits, predicted")
        line(axis, series(gemm, "d", gflops), "o-", color=COLORS["gemm_heap"],
             label="Algorithm 2.1")
        line(axis, series(gemm, "d", lambda row: row["gflops"] * row["ms"]
                          / 1e3 / gemm_heap_seconds(
                              meta, row["q"], row["n"], row["d"], k)), "--",
             color=COLORS["gemm_heap"], label="Algorithm 2.1, predicted")
        peak_line(axis, meta)
        finish(axis, "d", f"m = n = {PAPER_SIZE}, k = {k}")
    axes[0, 0].set_ylabel("GFLOP/s")
    return figure


def crossing(first, second):
    """The x at which the second of two series overtakes the first for good, or
    None: between the last x at which it is behind and the next, in the
    geometric middle."""
    common = sorted(set(dict(first)) & set(dict(second)))
    first, second = dict(first), dict(second)
    ahead = [second[x] > first[x] for x in common]
    if not ahead or not ahead[-1] or all(ahead):
        return None
    last = max(i for i, is_ahead in enumerate(ahead) if not is_ahead)
    return math.sqrt(common[last] * common[last + 1])


def figure_5(data):
    """GFLOP/s of the variants over k, and where var6 overtakes var1."""
    meta = data["meta"]
    rows = [row for row in square(plain(data["rows"])) if row.get("forced")]
    ds = sorted({row["d"] for row in rows})
    if not ds:
        return None
    figure, axes = plt.subplots(1, len(ds), squeeze=False,
                                figsize=(4.0 * len(ds), 3.4))
    for axis, d in zip(axes[0], ds):
        measured, expected = {}, {}
        for variant in ("var1", "var6", "var5", "buffered", "direct"):
            here = [row for row in rows
                    if row["d"] == d and row["variant"] == variant]
            measured[variant] = series(here, "k", gflops)
            expected[variant] = series([r for r in here if r["predicted_ms"]],
                                       "k", predicted)
            line(axis, measured[variant], "o-", color=COLORS[variant],
                 label=variant)
            line(axis, expected[variant], "--", color=COLORS[variant], lw=1)
        for points, color, what in (
                (expected, "#7ab8d9", "threshold, predicted"),
                (measured, "#8e44ad", "threshold, measured")):
            at = crossing(points["var1"], points["var6"])
            if at:
                axis.axvline(at, color=color, ls=":", label=what)
        peak_line(axis, meta)
        finish(axis, "k", f"m = n = {PAPER_SIZE}, d = {d}")
    axes[0, 0].set_ylabel("GFLOP/s (dashed: predicted)")
    return figure


def figure_6(data):
    """GFLOP/s over d: a row of panels a size, a column a k."""
    rows = [row for row in race(data["rows"]) if row["n"] == row["q"]
            and row["method"] in (OURS, "gemm_heap") and row["k"] > 1]
    sizes = sorted({row["n"] for row in rows})
    ks = sorted({row["k"] for row in rows if row["method"] == "gemm_heap"})
    if not ks:
        return None
    figure, axes = plt.subplots(len(sizes), len(ks), squeeze=False,
                                figsize=(3.2 * len(ks), 2.6 * len(sizes)))
    for lines, size in zip(axes, sizes):
        for axis, k in zip(lines, ks):
            for method, label in ((OURS, "faiss_bits"),
                                  ("gemm_heap", "Algorithm 2.1")):
                here = [row for row in rows if row["n"] == size
                        and row["k"] == k and row["method"] == method]
                line(axis, series(here, "d", gflops), "o-",
                     color=COLORS[method], label=label)
            peak_line(axis, data["meta"])
            finish(axis, "d", f"m = n = {size}, k = {k}")
        lines[0].set_ylabel("GFLOP/s", fontsize=8)
    return figure


FIGURES = {
    "": ("exact search, times faster than the faster FAISS", overview),
    "_figure_4": ("Yu et al. 2015, figure 4", figure_4),
    "_figure_5": ("Yu et al. 2015, figure 5", figure_5),
    "_figure_6": ("Yu et al. 2015, figure 6", figure_6),
}


def save(figure, path, title, meta):
    """Writes both files of a figure and returns their paths."""
    seen = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    inches = figure.get_figheight()
    columns = max(1, int(figure.get_figwidth() / 2.2))
    lines = math.ceil(len(seen) / columns)
    if seen:
        figure.legend(seen.values(), seen.keys(), loc="lower center",
                      ncol=min(columns, len(seen)), fontsize=8, frameon=False)
    figure.suptitle(
        f"{title}\n{meta['cpu']}, {meta['threads']} threads, "
        f"{meta['date']}, commit {meta['commit'][:10]}", fontsize=9)
    figure.tight_layout(rect=(0, (0.05 + 0.2 * lines) / inches, 1, 0.99))
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for out in written:
        # No date inside, so that the same data makes the same file.
        extra = {"metadata": {"Date": None}} if out.suffix == ".svg" else {}
        figure.savefig(out, dpi=130, **extra)
    plt.close(figure)
    return written


def draw(path):
    """Draws one file and returns the paths written."""
    path, data = Path(path), load(path)
    rows = [row for row in data["rows"] if row["bench"] == "flat_cpu"]
    data = {"meta": data["meta"], "rows": rows}
    written = []
    for suffix, (title, make) in FIGURES.items():
        figure = make(data)
        if figure is not None:
            written += save(figure, path.with_name(path.stem + suffix), title,
                            data["meta"])
    text = table_5.table(data)
    if text:
        written.append(path.with_name(f"{path.stem}_table_5.md"))
        written[-1].write_text(text)
    return written


def main(paths):
    """Returns the exit status."""
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 2
    for path in paths:
        written = draw(path)
        print(f"{path}: "
              + (", ".join(p.name for p in written) or "no rows to draw"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
