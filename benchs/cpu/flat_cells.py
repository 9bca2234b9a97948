"""The cells of bench_flat_cpu.py: what is searched, and who takes part.

Parties are names that stand for one or several methods: "ours" the choice of the
cost model, "plain" the same in plain mode, "before" ours of the commit of --before,
"variants" each forced, "faiss" both builds of FAISS, "gemm" Algorithm 2.1 of the
paper, "scale" numpy and scikit-learn.
"""

from typing import NamedTuple

#: Groups of cells, in the order in which they are measured.
GROUPS = ("paper", "large", "few", "variants", "metrics", "histograms",
          "sizes", "price", "before")

#: Metrics whose distances are always canonical.
HISTOGRAMS = ("Canberra", "BrayCurtis", "JensenShannon", "Jaccard")

MILLION = 1_000_000
#: Matrices of distances above this are not measured with numpy and the like.
MOST_DISTANCES = 2**28


class Cell(NamedTuple):
    """One problem: q queries against n vectors of dimension d."""

    n: int
    d: int
    q: int
    k: int
    metric: str = "L2"
    dtype: str = "float32"

    @property
    def data(self):
        """What cells that share their vectors share."""
        return self.n, self.d, self.metric, self.dtype

    @property
    def gflop(self):
        """10^9 operations of the products alone: 2 n d q."""
        return 2e-9 * self.n * self.d * self.q

    def __str__(self):
        return (f"n={self.n} d={self.d} q={self.q} k={self.k} {self.metric} "
                f"{self.dtype}")


def _paper():
    """m = n = 8192, the sizes of Table 5 and figure 4; k = 1 tells what the
    heap of the others costs."""
    for d in (16, 64, 256, 512, 1024):
        for k in (1, 16, 128, 512, 2048):
            yield Cell(8192, d, 8192, k), {"ours", "faiss", "gemm", "scale",
                                           "variants"}


def _large():
    for n in (100_000, MILLION):
        for d in (16, 64, 128, 768):
            for q in (1, 10, 1000):
                for k in (1, 10, 100, 1000):
                    parties = {"ours", "faiss"}
                    if n < MILLION and d == 128 and q * n <= MOST_DISTANCES:
                        parties |= {"gemm", "scale"}
                    yield Cell(n, d, q, k), parties


def _few():
    """Little work, in which many threads only just have a share."""
    for q in (1, 5, 64):
        for k in (1, 10, 100):
            yield Cell(400_000, 3, q, k), {"ours", "faiss"}
    for k in (1, 10, 100):
        yield Cell(100_000, 16, 64, k), {"ours", "faiss"}


def _variants():
    """Where the forced variants are measured beside the choice: figure 5, and
    the large cells save the longest, where q is large enough either way."""
    for d in (16, 64, 256, 1024):
        for k in (4, 32, 64, 256, 1024, 4096):
            yield Cell(8192, d, 8192, k), {"ours", "variants"}
    for cell, _ in _paper():
        yield cell, {"ours", "variants"}
    for cell, _ in _large():
        if cell.n < MILLION or cell.q <= 10:
            yield cell, {"ours", "variants"}


def _metrics():
    for metric in ("L2", "IP", "cosine", "L1", "Linf", "Lp3"):
        for d in (16, 128):
            for q in (1, 100):
                # FAISS has no cosine.
                rivals = set() if metric == "cosine" else {"faiss"}
                yield Cell(100_000, d, q, 10, metric), {"ours"} | rivals
    for d in (64, 256):
        for k in (16, 512):
            yield (Cell(8192, d, 8192, k, "L2", "float64"),
                   {"ours", "gemm", "scale"})


def _histograms():
    """FAISS 1.7.3 has no Jaccard."""
    for metric in HISTOGRAMS:
        for d in (16, 128):
            for q in (1, 100):
                rivals = set() if metric == "Jaccard" else {"faiss"}
                yield Cell(20_000, d, q, 10, metric), {"ours"} | rivals


def _sizes():
    """Figure 6."""
    for size in (2048, 4096, 8192):
        for d in (4, 8, 16, 32, 64, 128, 256, 384, 512, 768, 1024):
            for k in (16, 128, 512, 2048):
                yield Cell(size, d, size, k), {"ours", "gemm"}


def _price():
    """What canonical distances and their proof cost."""
    for d in (16, 64, 128, 256, 768):
        for k in (1, 16, 128, 512, 2048):
            yield Cell(8192, d, 8192, k), {"ours", "plain"}
    for d in (16, 64, 128, 768):
        for q in (1, 10, 1000):
            for k in (1, 10, 100, 1000):
                yield Cell(100_000, d, q, k), {"ours", "plain"}
    for d in (16, 64, 128, 256):
        for q in (1, 16, 64):
            yield Cell(8192, d, q, 1024), {"ours", "plain"}


def _before():
    """All cells of float32 with the metrics of a commit before certified
    searches."""
    for group in GROUPS:
        if group != "before":
            for cell, _ in _MAKERS[group]():
                if cell.dtype == "float32" and cell.metric not in HISTOGRAMS:
                    yield cell, {"ours", "before"}


_MAKERS = {"paper": _paper, "large": _large, "few": _few,
           "variants": _variants, "metrics": _metrics,
           "histograms": _histograms, "sizes": _sizes, "price": _price,
           "before": _before}


def cells_of(groups):
    """{cell: parties} of some groups. A cell of several groups stands once,
    with the parties of all, in the place of the first; cells that share their
    vectors stand together within a group."""
    cells = {}
    for group in GROUPS:
        if group in groups:
            for cell, parties in _MAKERS[group]():
                cells.setdefault(cell, set()).update(parties)
    return cells


def keep(cells, **wanted):
    """The cells whose fields are in the lists; an empty list keeps all."""
    return {cell: parties for cell, parties in cells.items()
            if all(not values or getattr(cell, field) in values
                   for field, values in wanted.items())}


def of_parties(cells, parties):
    """The cells in which some of these take part, without the others; an empty
    list keeps all."""
    left = {cell: there & set(parties) if parties else there
            for cell, there in cells.items()}
    return {cell: there for cell, there in left.items() if there}


def bytes_needed(cell, parties):
    """Most memory that the workers hold together for a cell, roughly: vectors
    in each worker, twice while an index is filled, and matrices of
    distances."""
    size = 8 if cell.dtype == "float64" else 4
    vectors = size * cell.n * cell.d
    holders = 1 + len(parties & {"before", "faiss", "scale"})
    matrix = min(size * cell.q * cell.n, 2**30)
    return (holders + 1) * vectors + matrix * len(parties & {"gemm", "scale"})
