#!/usr/bin/env python3
"""Writes the tables of jobs on several GPUs in docs/design/many_measured.md.

    benchs/many_table.py benchs/results/h200
                         [--docs docs/design/many_measured.md]
                         [--marks "several devices"]
    benchs/many_table.py benchs/results/h200 --short docs/using.md [--of 0123456]

Reads many.json or many_two.json (vectors, of bench_many), many_ivf.json, many_range.json,
many_kmeans.json and many_knn_graph.json of that folder, those that are there,
and replaces what stands between the marks of that name. No figure of this part
is typed by hand.

Of P devices that take t, where one takes t1 for the same: the share of the
ideal is t1 / (P t). Weak: t1 / t, where one device has the vectors of one
(shards) or the queries of one (replicas); t1 is taken in turns with t where the
file has that (share_ms). Shares and "times as fast" are
rounded down. --short: these shares alone, between the marks "several GPUs" of
another page; --of: of many_0123456.json and many_ivf_0123456.json, a later run
of the cells of these shares, where they are.
"""

import argparse
import math
from pathlib import Path

from readme_table import power, replaced
from program import end_with
from result_file import cell_of, load

OURS = "faiss_bits"
#: Searches for neighbours, and what their tables call them.
NEIGHBOURS = {"many.json": "vectors", "many_two.json": "vectors",
              "many_ivf.json": "IVF"}
FILES = (*NEIGHBOURS, "many_range.json", "many_kmeans.json",
         "many_knn_graph.json")
#: What one device's row of a cell has in place of several devices'.
ALONE = {"shards": 1, "devices": 1, "peers": 0}


class Times:
    """Ms by method and cell of one file."""

    def __init__(self, data):
        self.rows = data["rows"]
        self.ms = {(row["method"], cell_of(row)): row["ms"]
                   for row in self.rows}

    def of(self, row, **changed):
        """Of another cell, None if it was not measured."""
        row = row | changed
        return self.ms.get((row["method"], cell_of(row)))

    def several(self, arrays=None):
        """Our rows of more than one device."""
        return [row for row in self.rows if row["method"] == OURS
                and row["devices"] > 1 and arrays in (None, row["arrays"])]

    def strong(self, row):
        """Share of the ideal, None without one device's time."""
        alone = self.of(row, **ALONE)
        return alone and alone / row["devices"] / row["ms"]

    def weak(self, row):
        """Share of the ideal where every device has as much as one."""
        if "share_ms" in row:
            return row["share_ms"] / row["ms"]
        field = "n" if row["kind"] == "shards" else "q"
        share, rest = divmod(row[field], row["devices"])
        alone = None if rest else self.of(row, **ALONE, **{field: share})
        return alone and alone / row["ms"]


def number(value, form):
    return "" if value is None else format(value, form)


def down(value, places):
    """Never more than it is: who reads 0.95 may count on it."""
    if value is None:
        return ""
    unit = 10 ** places
    return f"{math.floor(round(value * unit, 6)) / unit:.{places}f}"


def ratio(theirs, ours):
    return theirs / ours if theirs and ours else None


def line(*columns):
    return "| " + " | ".join(str(column) for column in columns) + " |"


def head(*columns):
    return [line(*columns), "|" + "---|" * len(columns)]


def neighbour_lines(name, times):
    yield from head(
        name, "n", "q", "k", "GPUs", "one, ms", "several, ms",
        "share of the ideal", "weak", "arrays on the host, ms", "FAISS, ms",
        "times as fast", "FAISS over our parts, ms")
    for row in times.several("device"):
        host = times.of(row, arrays="host")
        faiss = times.of(row, arrays="host", method="faiss")
        over = times.of(row, arrays="host", method="faiss_over_ours")
        yield line(
            row["kind"], power(row["n"]), row["q"], row["k"], row["devices"],
            number(times.of(row, **ALONE), ".3g"), f"{row['ms']:.3g}",
            down(times.strong(row), 2), down(times.weak(row), 2),
            number(host, ".3g"), number(faiss, ".3g"),
            down(ratio(faiss, host), 1), number(over, ".3g"))


def range_lines(times):
    """A line a cell, with both kinds that have several devices."""
    cells = {}
    for row in times.several():
        cell = row["n"], row["q"], row["selectivity"], row["devices"]
        cells.setdefault(cell, {})[row["kind"]] = row
    yield from head("range search, n", "q", "of the vectors", "results",
                    "GPUs", "one, ms", "shards, ms", "share of the ideal",
                    "replicas, ms", "share of the ideal")
    for (n, q, selectivity, devices), kinds in cells.items():
        one = next(iter(kinds.values()))
        columns = []
        for kind in ("shards", "replicas"):
            row = kinds.get(kind)
            columns += ["", ""] if row is None else [
                f"{row['ms']:.3g}", down(times.strong(row), 2)]
        yield line(power(n), q, f"{100 * selectivity:g}%", one["results"],
                   devices, number(times.of(one, **ALONE), ".3g"), *columns)


def job_lines(name, times):
    for row in times.several():
        faiss = times.of(row, method="faiss")
        yield line(
            name, row["arrays"], row["devices"],
            number(times.of(row, **ALONE), ".4g"), f"{row['ms']:.4g}",
            down(times.strong(row), 2), number(faiss, ".4g"),
            down(ratio(faiss, row["ms"]), 1))


def content(folder):
    """The text between the marks."""
    files = {name: load(folder / name) for name in FILES
             if (folder / name).exists()}
    if not files:
        raise FileNotFoundError(f"{folder} has none of {', '.join(FILES)}")
    gpus = sorted({data["meta"]["gpu"] for data in files.values()})
    of_commit = {}
    for name, data in files.items():
        of_commit.setdefault(data["meta"]["commit"][:10], []).append(
            f"`{name}`")
    lines = [
        f"{' and '.join(gpus)}: " + "; ".join(
            f"{', '.join(names)} (commit {commit})"
            for commit, names in of_commit.items()) + "."]
    times = {name: Times(data) for name, data in files.items()}
    for name, title in NEIGHBOURS.items():
        if name in times:
            lines += ["", *neighbour_lines(title, times[name])]
    if "many_range.json" in times:
        lines += ["", *range_lines(times["many_range.json"])]
    jobs = [line for name, file in (("k-means", "many_kmeans.json"),
                                    ("k-NN graph", "many_knn_graph.json"))
            if file in times for line in job_lines(name, times[file])]
    if jobs:
        lines += ["", *head(
            "job", "arrays", "GPUs", "one, ms", "several, ms",
            "share of the ideal", "FAISS on several, ms", "times as fast"),
            *jobs]
    return "\n".join(lines)


#: Vectors of a GPU, or of all, that the short table has.
FEW, MANY = 1 << 20, 1 << 23
QUERIES = 10240


def short_lines(name, times):
    """Shares of the ideal of searches of many queries, a column for each k."""
    ks = sorted({row["k"] for row in times.rows})
    yield from head(name, "GPUs", *(f"k = {k}" for k in ks))

    def shares(title, share, wanted):
        rows = [row for row in times.several("device") if wanted(row)]
        for devices in sorted({row["devices"] for row in rows}):
            of_k = {row["k"]: share(row) for row in rows
                    if row["devices"] == devices}
            if any(of_k.values()):
                yield line(title, devices,
                           *(down(of_k.get(k), 2) for k in ks))

    for n in (FEW, MANY):
        yield from shares(
            f"shards of {power(n)} each", times.weak,
            lambda row: row["kind"] == "shards" and row["q"] == QUERIES
            and row["n"] == n * row["devices"])
    yield from shares(
        f"shards of {power(MANY)} in all", times.strong,
        lambda row: row["kind"] == "shards" and row["q"] == QUERIES
        and row["n"] == MANY)
    yield from shares(
        f"replicas of {power(FEW)}, as many queries each", times.weak,
        lambda row: row["kind"] == "replicas"
        and row["q"] == QUERIES * row["devices"])
    ratios = [ratio(times.of(row, method="faiss"), row["ms"])
              for row in times.several("host")]
    ratios = sorted(filter(None, ratios))
    if ratios:
        yield line(f"times as fast as FAISS's own, {len(ratios)} cells", "",
                   f"{down(ratios[0], 1)} to {down(ratios[-1], 1)}",
                   *[""] * (len(ks) - 1))


def short_content(folder, of=None):
    """What several GPUs give, of the results of that folder."""
    lines = []
    for name, title in NEIGHBOURS.items():
        later = name.replace(".json", f"_{of}.json")
        name = later if of and (folder / later).exists() else name
        if (folder / name).exists():
            data = load(folder / name)
            lines += ["", f"{data['meta']['gpu']}, `{folder.name}/{name}`, "
                      f"commit {data['meta']['commit'][:10]}:", "",
                      *short_lines(title, Times(data))]
    if not lines:
        raise FileNotFoundError(
            f"{folder} has none of {', '.join(NEIGHBOURS)}")
    return "\n".join(lines[1:])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", type=Path,
                        default=Path("docs/design/many_measured.md"))
    parser.add_argument("--marks", default="several devices")
    parser.add_argument("--short", type=Path, metavar="PAGE")
    parser.add_argument("--of", metavar="COMMIT")
    options = parser.parse_args(arguments)
    if options.short:
        text = options.short.read_text()
        options.short.write_text(replaced(
            text, "several GPUs", short_content(options.folder, options.of)))
        return
    text = options.docs.read_text()
    options.docs.write_text(
        replaced(text, options.marks, content(options.folder)))


if __name__ == "__main__":
    end_with(main)
