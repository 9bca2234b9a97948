"""Random cells of bench_sweep_cpu.py: what is searched, and how."""

import math
import random

import numpy as np

#: {field: (least, most)}, drawn so that every power of two is as likely.
RANGES = {"n": (16, 300_000), "d": (1, 1024), "q": (1, 4000), "k": (1, 2000),
          "nlist": (1, 1024), "hits": (1, 3000)}
#: How often each is drawn. "flat" finds the k nearest, "range" what is within a
#: radius; "selected" means with an IDSelector, "other" by another metric than
#: L2 and inner product.
KINDS = {"flat": 40, "flat selected": 14, "flat range": 12, "flat other": 6,
         "ivf": 16, "ivf selected": 8, "ivf range": 4}
SELECTORS = ("range", "batch", "bitmap")
SHARES = (0.01, 0.5, 0.99)
OTHERS = ("L1", "Linf", "Lp3", "Canberra", "BrayCurtis", "JensenShannon")
DATA = ("uniform", "normal", "clustered_sorted", "integers", "sift_like")

#: Bounds of a cell, of which FAISS takes a second or less: components stored,
#: places of its result, multiplications, and what its selectors are asked.
MOST_COMPONENTS = 1.2e7
MOST_PLACES = 2e6
MOST_WORK = 6e9
MOST_PAIRS = 1.5e8


def _size(rng, least, most):
    """A whole number from least to most, of any order of magnitude."""
    value = int(math.exp(rng.uniform(math.log(least), math.log(most + 1))))
    return min(most, max(least, value))


def _draw(rng):
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    index, _, call = kind.partition(" ")
    cell = {"index": index,
            "call": "range_search" if call == "range" else "search"}
    cell |= {name: _size(rng, *RANGES[name]) for name in ("n", "d", "q")}
    cell["metric"] = rng.choice(("L2", "IP"))
    cell["data"] = rng.choice(DATA)
    if call == "other":
        cell["metric"] = rng.choice(OTHERS)
        if cell["metric"] == "JensenShannon":
            cell["data"] = "uniform"  # it is a metric of what is not negative
    if index == "ivf":
        cell["nlist"] = _size(rng, 1, min(RANGES["nlist"][1], cell["n"]))
        cell["nprobe"] = _size(rng, 1, cell["nlist"])
    if call == "range":
        most = min(RANGES["hits"][1], cell["n"])
        cell["hits"] = _size(rng, RANGES["hits"][0], most)
    else:
        cell["k"] = _size(rng, 1, min(RANGES["k"][1], cell["n"]))
    if call == "selected":
        cell |= {"selector": rng.choice(SELECTORS),
                 "allowed": rng.choice(SHARES)}
    return cell


def fits(cell):
    """Whether a cell keeps to the bounds."""
    pairs = cell["n"] * cell["q"]
    work = pairs * cell["d"]
    if "nlist" in cell:
        pairs *= min(1, 4 * cell["nprobe"] / cell["nlist"])
        work = (pairs + cell["q"] * cell["nlist"]) * cell["d"]
    if "selector" in cell:
        pairs, work = 3 * pairs, 6 * work
    if cell["metric"] in OTHERS:
        work *= 40 if cell["metric"] in ("Lp3", "JensenShannon") else 8
    places = cell["q"] * cell.get("k", cell.get("hits"))
    return (cell["n"] * cell["d"] <= MOST_COMPONENTS and work <= MOST_WORK
            and pairs <= MOST_PAIRS and places <= MOST_PLACES
            and cell["n"] * cell["d"] * cell.get("nlist", 1) <= 1e10)


def random_cells(count, seed):
    """`count` cells within the bounds, the same for the same seed. Each is a
    dict of index, call, n, d, q, metric, data, k or hits, of inverted lists
    nlist and nprobe, of filtered searches selector and allowed, and the seed of
    its vectors."""
    rng = random.Random(seed)
    cells = []
    while len(cells) < count:
        cell = _draw(rng)
        if fits(cell):
            cells.append(cell | {"data_seed": rng.getrandbits(31)})
    return cells


def vectors_of(cell):
    """Vectors [n, d] and queries [q, d] of a cell, float32."""
    rng = np.random.default_rng(cell["data_seed"])
    n, d, q = cell["n"], cell["d"], cell["q"]
    kind = cell["data"]
    if kind == "normal":
        both = rng.standard_normal((n + q, d), np.float32)
    elif kind == "clustered_sorted":
        centers = rng.standard_normal((max(1, min(64, n // 8)), d), np.float32)
        of = np.concatenate([np.sort(rng.integers(len(centers), size=n)),
                             rng.integers(len(centers), size=q)])
        both = centers[of]
        both += 0.1 * rng.standard_normal((n + q, d), np.float32)
    elif kind == "integers":  # distances tie everywhere
        both = rng.integers(0, 4, (n + q, d)).astype(np.float32)
    elif kind == "sift_like":
        both = rng.gamma(0.6, 40, (n + q, d)).clip(0, 218).round()
        both = both.astype(np.float32)
    else:
        both = rng.random((n + q, d), np.float32)
    return both[:n].copy(), both[n:].copy()


def selected_ids(cell):
    """The ids that a cell's selector selects, ascending; None without one."""
    if "selector" not in cell:
        return None
    rng = np.random.default_rng(cell["data_seed"] + 1)
    count = max(1, int(cell["n"] * cell["allowed"]))
    if cell["selector"] == "range":
        first = int(rng.integers(cell["n"] - count + 1))
        return np.arange(first, first + count)
    return np.sort(rng.permutation(cell["n"])[:count])


def centroids_of(cell, vectors):
    """The centroids of a cell's lists: beside some of its vectors, so that no
    two are equally near and both libraries search the same lists."""
    rng = np.random.default_rng(cell["data_seed"] + 2)
    some = vectors[rng.permutation(cell["n"])[:cell["nlist"]]]
    return some + rng.random(some.shape, np.float32) / 4
