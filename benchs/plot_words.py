#!/usr/bin/env python3
"""Figures 3 (a) and 4 of Barrientos et al. 2012 on words.json: the share of
distances that a method computes, and how many times as fast as sequential brute
force it is, on one core, on several and on a GPU.

    benchs/plot_words.py benchs/results/h200/words.json    # words.png, words.svg

prints the same as a table. Rates are of queries a second, as methods may have had
different numbers of queries.
"""

import sys
from pathlib import Path

from program import end_with
from result_file import load

METHODS = {  # label, colour
    "brute_force": ("brute force", "#8a8a8a"),
    "list_of_clusters": ("List of Clusters", "#e07b39"),
    "sss": ("SSS", "#8e5ea2"),
    "trie": ("pruned trie (ours)", "#1b6ca8"),
}
DICTIONARY = "spanish"  # as in the paper


def platform_of(row):
    if row["device"] == "gpu":
        return "GPU"
    return "sequential" if row["threads"] == 1 else f"{row['threads']} threads"


def speed_ups(rows):
    """{(platform, method, r): times as fast as sequential brute force at r}."""
    rate = {
        (platform_of(row), row["method"], row["r"]): row["queries"] / row["ms"]
        for row in rows
        if row["dictionary"] == DICTIONARY and row["method"] in METHODS
    }
    return {
        key: value / rate["sequential", "brute_force", key[2]]
        for key, value in rate.items()
        if ("sequential", "brute_force", key[2]) in rate
    }


def evaluations(rows):
    """{(method, r): share of all distances}, of the rows that counted them."""
    return {
        (row["method"], row["r"]): row["evaluations"]
        for row in rows
        if row["dictionary"] == DICTIONARY and "evaluations" in row
        and row["method"] != "trie"
    }


def platforms_of(found):
    names = sorted({key[0] for key in found}, key=lambda name: (
        name == "GPU", name != "sequential", name))
    return names


def table(rows):
    """The speed-ups as lines of text."""
    found, lines = speed_ups(rows), []
    radii = sorted({key[2] for key in found})
    lines.append("times as fast as sequential brute force, r = "
                 + ", ".join(map(str, radii)))
    for platform in platforms_of(found):
        for method, (label, _) in METHODS.items():
            values = [found.get((platform, method, r)) for r in radii]
            text = "  ".join("      -" if v is None else f"{v:7.1f}" for v in values)
            lines.append(f"{platform:>12}  {label:<20} {text}")
    return "\n".join(lines)


def draw(data, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "words"
    rows = data["rows"]
    found, share = speed_ups(rows), evaluations(rows)
    radii = sorted({key[2] for key in found})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.5), gridspec_kw={"width_ratios": (1, 2.6)})
    for i, method in enumerate(("brute_force", "list_of_clusters", "sss")):
        label, colour = METHODS[method]
        values = [share.get((method, r), 0) for r in radii]
        left.bar([r + 0.26 * (i - 1) for r in radii], values, 0.24,
                 color=colour, label=label)
    left.set_yscale("log")
    left.set_xticks(radii, [f"r = {r}" for r in radii])
    left.set_title("distances computed, share of all", fontsize=10)
    left.set_ylim(top=12)
    left.legend(fontsize=8, loc="upper left", ncol=3, columnspacing=0.8)

    places, labels, at = [], [], 0
    for platform in platforms_of(found):
        for r in radii:
            for i, (method, (label, colour)) in enumerate(METHODS.items()):
                value = found.get((platform, method, r))
                if value is not None:
                    right.bar(at + 0.2 * (i - 1.5), value, 0.19, color=colour,
                              label=label if not at else None)
            places.append(at)
            labels.append(f"r = {r}\n{platform}")
            at += 1
        at += 0.4
    right.set_yscale("log")
    right.set_xticks(places, labels, fontsize=8)
    right.axhline(1, color="#444444", linewidth=0.6)
    right.set_title(
        f"times as fast as sequential brute force ({data['meta']['gpu']}; "
        f"{data['meta']['cpu']})", fontsize=10)
    right.legend(fontsize=8)
    figure.tight_layout()
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=130,
                       metadata={"Date": None} if suffix == ".svg" else None)
    plt.close(figure)


def main(paths):
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in map(Path, paths):
        data = load(path)
        print(table(data["rows"]))
        draw(data, path)
        print(path.with_suffix(".png"))
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
