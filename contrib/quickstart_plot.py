"""The picture of the quickstart: neighbours, and times beside FAISS's."""

import matplotlib

matplotlib.use("Agg")

import numpy as np  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

from faiss_bits.contrib.datasets import FASHION_MNIST_LABELS  # noqa: E402

_OURS, _THEIRS = "#1f5fa8", "#b9bec6"
_SHOWN = 10  # neighbours a query


def draw(rows, drawn, path):
    """Writes the picture to `path` (a .png).

    rows   what quickstart.run() returned, at least one
    drawn  (FashionMnist, metric name, D, I), or None: times alone
    """
    bars_height = 1.1 + 0.55 * len(rows)
    if drawn is None:
        figure, axes = plt.subplots(figsize=(9, bars_height), layout="constrained")
        _draw_rates(axes, rows)
    else:
        heights = (10.6, 0.55, bars_height)
        figure = plt.figure(figsize=(11, sum(heights)), layout="constrained")
        top, middle, bottom = figure.subfigures(3, 1, height_ratios=heights)
        _draw_neighbours(top, *drawn)
        _draw_legend(middle)
        _draw_rates(bottom.subplots(), rows)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_neighbours(figure, images, metric, D, I):
    """One query of every class that has been searched for, with its nearest
    images. Frames have the colour of the class; the name of the class stands
    below a neighbour where it is not the query's."""
    shown = min(_SHOWN, I.shape[1])
    labels = images.test_labels[: len(I)]
    queries = [
        int(np.flatnonzero(labels == label)[0]) for label in np.unique(labels)
    ]
    colours = plt.get_cmap("tab10").colors
    axes = figure.subplots(len(queries), shown + 1, squeeze=False)
    side = int(round(images.train.shape[1] ** 0.5))
    for line, query in zip(axes, queries):
        own = int(labels[query])
        _show(line[0], images.test[query], side, colours[own], 4)
        line[0].set_ylabel(
            FASHION_MNIST_LABELS[own],
            rotation=0,
            ha="right",
            va="center",
            fontsize=11,
            color=colours[own],
            fontweight="bold",
        )
        for place, cell in enumerate(line[1:]):
            found = int(I[query, place])
            if found < 0:
                cell.axis("off")
                continue
            label = int(images.train_labels[found])
            _show(cell, images.train[found], side, colours[label], 2)
            cell.set_xlabel(  # empty ones keep the rows equally high
                " " if label == own else FASHION_MNIST_LABELS[label],
                fontsize=8,
                color=colours[label],
                labelpad=2,
            )
    axes[0][0].set_title("query", fontsize=11)
    for place in range(shown):
        axes[0][place + 1].set_title(str(place + 1), fontsize=11)
    kind = "squared L2 distance" if metric == "L2" else "inner product"
    figure.suptitle(
        f"Fashion-MNIST: a query of every class and its {shown} nearest of "
        f"{len(images.train):,} images by {kind}",
        fontsize=13,
    )


def _draw_legend(figure):
    colours = plt.get_cmap("tab10").colors
    figure.legend(
        handles=[
            Patch(color=colour, label=name)
            for colour, name in zip(colours, FASHION_MNIST_LABELS)
        ],
        loc="center",
        ncol=10,
        fontsize=8.5,
        frameon=False,
        handlelength=1,
        columnspacing=1.2,
        title="frame: class of the image",
        title_fontsize=9,
    )


def _show(axes, pixels, side, colour, width):
    axes.imshow(pixels.reshape(side, side), cmap="gray_r", vmin=0, vmax=255)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(colour)
        spine.set_linewidth(width)


def _draw_rates(axes, rows):
    """Queries a second, ours above FAISS's, for every row of the table."""
    places = np.arange(len(rows))[::-1].astype(float)
    ours = [row["queries_per_second"] for row in rows]
    theirs = [row["faiss_queries_per_second"] for row in rows]
    for offset, rates, colour, name in (
        (0.19, ours, _OURS, "faiss_bits"),
        (-0.19, theirs, _THEIRS, "FAISS"),
    ):
        axes.barh(places + offset, rates, 0.36, color=colour, label=name)
        for place, rate in zip(places + offset, rates):
            axes.annotate(
                f"{rate:,.0f}",
                (rate, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
    axes.set_yticks(
        places,
        [
            f"{r['data']} {r['metric']}\n{r['n']:,} x {r['d']}, k = {r['k']}"
            for r in rows
        ],
        fontsize=9,
    )
    axes.set_xlim(0, 1.12 * max(ours + theirs))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    where = "GPU" if rows[0]["backend"] == "gpu" else "CPU"
    title = f"queries per second on this machine's {where} (more is better)"
    if where == "CPU":
        title += (
            f"\n{rows[0]['index']} and {rows[0]['faiss_index']}, "
            f"{rows[0]['threads']} threads each"
        )
    axes.set_title(title, fontsize=11)
    axes.legend(
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        fontsize=9,
    )
