#!/usr/bin/env python3
"""The figure of ivf_rivals.json, for plot.py, and what is fastest at a recall:

    benchs/plot_ivf.py benchs/results/h200/ivf_rivals.json

prints, for each data set, index and number of queries, the least time of each
method with that recall or more, and the best rival's over ours.
"""

import sys

from program import end_with
from result_file import load

STYLES = {  # label, colour, mark
    "faiss_bits": ("faiss_bits", "#1b6ca8", "o"),
    "faiss": ("FAISS 1.7.3", "#8a8a8a", "s"),
    "faiss_115": ("FAISS 1.15", "#e07b39", "s"),
    "faiss_cuvs": ("FAISS 1.15 with cuVS", "#8e5ea2", "v"),
    "cuvs": ("cuVS", "#2a9d5c", "^"),
    "flashlib": ("FlashLib", "#c0392b", "D"),
}
INDEXES = ("ivf_flat", "ivf_sq8", "ivf_pq")
#: The least share of missed neighbours that is drawn; so is none.
LEAST_MISSED = 1e-3
TICKS = {0.5: "0.5", 0.4: "0.6", 0.3: "0.7", 0.2: "0.8", 0.1: "0.9", 0.05: "0.95", 0.02: "0.98",
         0.01: "0.99", 0.001: "≥ 0.999"}
LEVELS = (0.8, 0.9, 0.95, 0.99)


def is_race(rows):
    """Whether rows of the bench ivf are those of ivf_rivals.py, whose recall
    is that among all vectors."""
    return rows[0]["bench"] == "ivf" and any("repeats" in row for row in rows)


def kind_of(index):
    """"ivf_pq" for product codes of any number of parts."""
    return "ivf_pq" if index.startswith("ivf_pq") else index


def panels(rows):
    """{(data, kind of index, "many" or "one"): (title, {method: [(nprobe,
    recall, ms)]})}: most queries a call of a data set, and one."""
    found = {}
    most = {}
    for row in rows:
        most[row["data"]] = max(row["q"], most.get(row["data"], 0))
    for row in rows:
        if row.get("ms") is None or row["q"] not in (1, most[row["data"]]):
            continue
        key = (row["data"], kind_of(row["index"]),
               "one" if row["q"] == 1 else "many")
        if key[1] != "ivf_flat" and key[2] == "one":
            continue
        title = f"{row['data']} {row['n']} x {row['d']}\n{row['index']}, " \
            f"nlist {row['nlist']}, q = {row['q']}"
        series = found.setdefault(key, (title, {}))[1]
        series.setdefault(row["method"], []).append(
            (row["nprobe"], row["recall"], row["ms"]))
    return {key: (title, {m: sorted(p) for m, p in series.items()})
            for key, (title, series) in found.items()}


def ticks_between(left, right):
    """Those of TICKS between two missed shares whose texts do not touch."""
    apart = (left / right) ** 0.08
    ticks = []
    for missed in sorted(TICKS):
        if right <= missed <= left and (
                not ticks or missed > ticks[-1] * apart):
            ticks.append(missed)
    return ticks


def draw_panel(axis, title, series):
    """Time by recall, one line a method, nprobe growing along it."""
    for method in sorted(series, key=list(STYLES).index):
        label, color, mark = STYLES[method]
        ours = method == "faiss_bits"
        missed = [max(1 - recall, LEAST_MISSED)
                  for _, recall, _ in series[method]]
        axis.plot(missed, [ms for _, _, ms in series[method]], f"{mark}-",
                  ms=4, color=color, lw=2.2 if ours else 1.2,
                  zorder=3 if ours else 2, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    drawn = [x for line in axis.lines for x in line.get_xdata()]
    left, right = 1.2 * max(drawn), min(drawn) / 1.2
    axis.set_xlim(left, right)
    ticks = ticks_between(left, right)
    axis.set_xticks(ticks, [TICKS[missed] for missed in ticks], fontsize=7)
    axis.minorticks_off()
    axis.set_title(title, fontsize=9)
    axis.set_xlabel("recall of 10", fontsize=8)
    axis.set_ylabel("ms a call", fontsize=8)
    axis.grid(alpha=0.3)


def draw_ivf(rows):
    """Figure of a file of ivf_rivals.py: a line of panels a data set."""
    import matplotlib.pyplot as plt

    found = panels(rows)
    data = list(dict.fromkeys(key[0] for key in found))
    columns = [(index, count) for index in INDEXES for count in ("many", "one")
               if any(key[1:] == (index, count) for key in found)]
    figure, axes = plt.subplots(
        len(data), len(columns), squeeze=False,
        figsize=(3.9 * len(columns), 3 * len(data)))
    for line, name in zip(axes, data):
        for axis, column in zip(line, columns):
            if (name, *column) in found:
                draw_panel(axis, *found[name, *column])
            else:
                axis.set_visible(False)
    return figure


def at_recall(rows, level):
    """{(data, index, q): {method: least ms}} of rows of that recall."""
    best = {}
    for row in rows:
        if row.get("ms") is not None and row["recall"] >= level:
            times = best.setdefault((row["data"], row["index"], row["q"]), {})
            times[row["method"]] = min(
                row["ms"], times.get(row["method"], row["ms"]))
    return best


def main(paths):
    """Returns the exit status."""
    if not paths or paths[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if paths else 2
    for path in paths:
        rows = load(path)["rows"]
        if not rows or not is_race(rows):
            print(f"{path} is not of ivf_rivals.py", file=sys.stderr)
            return 1
        for level in LEVELS:
            for cell, times in at_recall(rows, level).items():
                where = "{} {} q={}".format(*cell)
                each = "  ".join(f"{m} {times[m]:.4g}" for m in STYLES
                                 if m in times)
                rivals = [ms for m, ms in times.items() if m != "faiss_bits"]
                ratio = f"{min(rivals) / times['faiss_bits']:.2f}" \
                    if rivals and "faiss_bits" in times else "-"
                print(f"recall {level} {ratio:>6} {where}: {each}")
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
