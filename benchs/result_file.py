"""Result files of the benches: {"meta": {...}, "rows": [{...}, ...]}."""

import json
import os
from pathlib import Path

#: What makes a cell, by bench; the rest of a row is what was measured.
CELL_FIELDS = {
    "select": ("rows", "cols", "k", "dtype", "order"),
    "select_sweep": ("rows", "cols", "stride", "k", "largest", "dtype",
                     "order"),
    "flat": ("n", "d", "q", "k", "metric", "dtype", "data", "clusters"),
    "flat_sweep": ("n", "d", "q", "k", "metric", "dtype", "data"),
    "filters": ("selector", "allowed", "n", "d", "q", "k", "metric"),
    "flat_cpu": ("n", "d", "q", "k", "metric", "dtype"),
    "cpu_sweep": ("index", "call", "n", "d", "q", "k", "hits", "metric", "data",
                  "nlist", "nprobe", "selector", "allowed"),
    "ivf_cpu": ("data", "n", "d", "nlist", "nprobe", "q", "k", "metric"),
    "ivf": ("index", "data", "n", "d", "nlist", "nprobe", "q", "k"),
    "ivf_sweep": ("cell", "index", "metric", "data", "n", "d", "nlist",
                  "nprobe", "q", "k"),
    "ivf_filters": ("index", "data", "selector", "allowed", "n", "d", "nlist",
                    "nprobe", "q", "k"),
    "metrics": ("n", "d", "q", "k", "metric", "p"),
    "range": ("index", "metric", "n", "d", "q", "selectivity"),
    "many": ("index", "kind", "shards", "devices", "peers", "arrays", "n", "d",
             "q", "k"),
    "many_ivf": ("index", "kind", "shards", "devices", "peers", "arrays", "n",
                 "d", "nlist", "nprobe", "q", "k"),
    "many_range": ("index", "kind", "shards", "devices", "peers", "arrays",
                   "metric", "n", "d", "q", "selectivity"),
    "many_kmeans": ("index", "kind", "shards", "devices", "peers", "arrays",
                    "n", "d", "k", "niter"),
    "many_knn_graph": ("index", "kind", "shards", "devices", "peers", "arrays",
                       "n", "d", "k", "block"),
    "dropin": ("index", "n", "d", "nlist", "nprobe", "q", "k"),
    "calls": ("name", "n", "d", "k"),
    "kmeans": ("n", "d", "k", "niter", "input", "data"),
    "words": ("dictionary", "device", "threads", "queries", "r"),
}

#: Fields that not every row of a bench has: p is of the metric Lp, data of
#: what is not uniform, clusters of clustered data, threads of the CPU, nlist and
#: nprobe of lists (of "dropin" flat indexes, too).
OPTIONAL_FIELDS = ("p", "data", "clusters", "threads", "nlist", "nprobe", "k",
                   "hits", "selector", "allowed")


def load(path):
    """The file as a dict with "meta" and "rows"."""
    return json.loads(Path(path).read_text())


def save(path, data):
    """Replaces the file as a whole, in the form that the benches write."""
    rows = ",\n  ".join(json.dumps(row) for row in data["rows"])
    text = (f'{{"meta": {json.dumps(data["meta"])},\n "rows": [\n  {rows}'
            "\n ]}\n")
    part = Path(f"{path}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(text)
    os.replace(part, path)


#: What was measured; all else of a row of a bench without fields above.
MEASURED = ("bench", "ms", "frac_read")


def cell_of(row):
    """(bench, (field, value), ...) of a row."""
    fields = CELL_FIELDS.get(row["bench"])
    if fields is None:
        fields = sorted(name for name in row if name not in MEASURED)
    return (row["bench"],) + tuple(
        (field, row[field]) for field in fields
        if field in row or field not in OPTIONAL_FIELDS)


def bytes_of(row):
    """Bytes of the keys of a select row."""
    size = 4 if row.get("dtype", "float32") == "float32" else 2
    return row["rows"] * row["cols"] * size


def frac_read(row, meta):
    """Share of the read bandwidth of `meta` that a select row reaches."""
    share = bytes_of(row) / (meta["read_bw_gbps"] * 1e6) / row["ms"]
    return float(f"{share:.5g}")


def frac_io(row, meta):
    """The time to read the keys and to write keys and 64-bit ids of a
    select_sweep row, over its own."""
    size = 4 if row["dtype"] == "float32" else 2
    moved = bytes_of(row) + row["rows"] * row["k"] * (size + 8)
    share = moved / (meta["read_bw_gbps"] * 1e6) / row["ms"]
    return float(f"{share:.5g}")
