#!/usr/bin/env python3
"""Draws docs/threshold_method.png: two rows of keys, what the sample of the
threshold method sees of them, the limit that follows, and what survives it.

    docs/threshold_method.py

A simulation with the formulas of kernels/select/threshold (ThresholdPlan.cpp,
RowSample.cuh), for k = 1000 of 2^15 keys and a sample of 64 runs.
"""

import math
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

COLS, K, RUN, RUNS = 1 << 15, 1000, 32, 64
LEAST_DISPERSION, STEPS = 1.5, 6


def rare_sum(mean, size):
    """What a sum of Poisson many equal numbers hardly ever reaches."""
    return math.ceil(mean + 3.43 * math.sqrt(size * mean) + 2 * size)


def places(random):
    """First columns of the runs: one in each of as many equal pieces."""
    piece = COLS // RUNS
    inside = random.integers(0, piece // RUN, RUNS)
    return np.arange(RUNS) * piece + inside * RUN


def limits(keys, starts):
    """(limit for random order, dispersion, limit that is taken)"""
    sample = np.stack([keys[start:start + RUN] for start in starts])
    ordered = np.sort(sample, axis=None)
    expected = K * sample.size / COLS
    least = expected + min(K, RUN) + 1
    rank = max(rare_sum(expected, 1), least)
    first = ordered[math.ceil(rank) - 1]
    hits = (sample <= first).sum(axis=1)
    squares = np.diff(hits) ** 2
    dispersion = 0.5 * (squares.sum() - squares.max()) / hits.sum()
    bounds = [LEAST_DISPERSION * 2**i for i in range(STEPS - 1)]
    alike = min([b for b in bounds if dispersion <= b] + [RUN])
    if alike > LEAST_DISPERSION:
        rank = max(rank, rare_sum(expected, alike))
    return first, dispersion, ordered[math.ceil(rank) - 1]


def draw(axis, name, keys, starts):
    """One row."""
    first, dispersion, limit = limits(keys, starts)
    columns = np.arange(COLS)
    axis.plot(columns, keys, ",", color="#b8c4cc")
    for start in starts:
        axis.plot(columns[start:start + RUN], keys[start:start + RUN], ".",
                  ms=2, color="#e07b39")
    survivors = keys <= limit
    axis.plot(columns[survivors], keys[survivors], ".", ms=2, color="#1b6ca8")
    axis.axhline(first, color="black", lw=0.8, ls=":")
    axis.axhline(limit, color="#1b6ca8", lw=1)
    axis.set_title(
        f"{name}: dispersion {dispersion:.1f}, {survivors.sum()} survivors of "
        f"{COLS}, k = {K}", fontsize=10)
    axis.set_ylabel("key")
    axis.set_xlim(0, COLS)


def main():
    """Writes the figure."""
    random = np.random.default_rng(4)
    starts = places(random)
    figure, axes = plt.subplots(2, 1, figsize=(10, 6.2), sharex=True)
    draw(axes[0], "random order", random.random(COLS), starts)
    walk = np.cumsum(random.standard_normal(COLS))
    draw(axes[1], "random walk", walk, starts)
    axes[1].set_xlabel(
        "column (orange: the sample's runs; dotted: the limit of random order; "
        "blue: the limit taken, and what survives it)", fontsize=9)
    figure.tight_layout()
    out = pathlib.Path(__file__).with_suffix(".png")
    figure.savefig(out, dpi=110)
    print(out)


if __name__ == "__main__":
    main()
