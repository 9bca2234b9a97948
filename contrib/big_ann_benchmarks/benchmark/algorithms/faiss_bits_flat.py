"""Exact search of faiss_bits in big-ann-benchmarks, on the CPU and on a GPU.
The classes of the tracks (neurips23) are made of these."""

import math

import faiss
import numpy as np

import faiss_bits
from faiss_bits.devices import require_gpu
from faiss_bits.search_modes import mode_of

from benchmark.algorithms.base import BaseANN
from benchmark.datasets import DATASETS

# Their names of metrics.
_METRICS = {
    "euclidean": faiss.METRIC_L2,
    "ip": faiss.METRIC_INNER_PRODUCT,
}
_BLOCK = 1 << 16  # about as many vectors are read at a time, at first


class _FaissBits(BaseANN):
    """What the two classes share; they differ in the index.

    Parameters
    ----------
    metric : str
        "euclidean" or "ip"
    search_mode : str, optional
        "certified", "plain", or "fast", which is not exact on a GPU; see
        docs/exact.md of faiss_bits

    Vectors of 8 bits are stored as float32, which changes no distance.
    """

    def __init__(self, metric, search_mode="certified"):
        if metric not in _METRICS:
            raise ValueError(
                f"metric = {metric!r} is none of "
                + ", ".join(map(repr, _METRICS))
            )
        mode_of(search_mode)  # an error now, not after the data set is read
        self._metric = _METRICS[metric]
        self._search_mode = search_mode
        self._index = None
        self._compared = 0
        self.name = f"{type(self).__name__}({search_mode})"

    def _make_index(self, d, n):
        """An empty index for n vectors of d dimensions."""
        raise NotImplementedError

    def fit(self, dataset):
        """Stores the vectors of a data set, by its name in DATASETS."""
        ds = _dataset_of(dataset)
        if ds.data_type() != "dense":
            raise ValueError(
                f"dataset = {dataset!r} has {ds.data_type()} vectors, and "
                "flat indexes hold dense ones"
            )
        index = self._make_index(ds.d, ds.nb)
        index.search_mode = self._search_mode
        for block in ds.get_dataset_iterator(bs=_block_of(ds.nb)):
            index.add(_floats(block))
        self._index, self._compared = index, 0

    def load_index(self, dataset):
        """False, always: the index is the vectors, so reading a file of it
        would save nothing."""
        return False

    def query(self, X, k):
        """Finds the k nearest of every row of X [nq, d]; get_results() has
        them [nq, k], nearest first, -1 where there are fewer than k."""
        index = self._ready()
        x = _floats(X)
        self.res = index.search(x, k)[1]
        self._compared += len(x) * index.ntotal

    def get_additional(self):
        """`dist_comps`: the vectors that queries were compared with."""
        return {"dist_comps": self._compared}

    def done(self):
        """Gives the memory of the index back."""
        self._index = self.res = None

    def _ready(self):
        if self._index is None:
            raise RuntimeError(f"{self.name}: a query before fit()")
        return self._index


class FaissBitsCPU(_FaissBits):
    """IndexFusedFlat, on as many threads as OpenMP would use. Parameters as
    of _FaissBits."""

    def _make_index(self, d, n):
        return faiss_bits.IndexFusedFlat(d, self._metric)

    def track(self):
        return "T1"

    def range_query(self, X, radius):
        """Finds all vectors nearer than `radius`, a squared distance, or with
        a greater inner product; get_range_results() has them as lims, D, I."""
        index = self._ready()
        x = _floats(X)
        self.res = index.range_search(x, radius)
        self._compared += len(x) * index.ntotal


class FaissBitsGPU(_FaissBits):
    """GpuIndexBitsFlat on GPU 0, whose memory is no part of `index_size`.
    Parameters as of _FaissBits; RuntimeError where there is no GPU."""

    def __init__(self, metric, search_mode="certified"):
        super().__init__(metric, search_mode)
        require_gpu(type(self).__name__)
        self._resources = faiss.StandardGpuResources()

    def _make_index(self, d, n):
        index = faiss_bits.GpuIndexBitsFlat(self._resources, d, self._metric)
        index.reserve(n)
        return index

    def track(self):
        return "T3"

    def range_query(self, X, radius):
        raise NotImplementedError(
            f"range_query() with radius = {radius}: GpuIndexBitsFlat has no "
            "range search, FaissBitsCPU has"
        )

    def done(self):
        super().done()
        self._resources = None


def _dataset_of(name):
    if name not in DATASETS:
        raise ValueError(f"dataset = {name!r} is no name in DATASETS")
    return DATASETS[name]()


def _floats(x):
    """x as float32, row after row; x itself if it is that."""
    return np.ascontiguousarray(x, np.float32)


def _block_of(n):
    """Vectors to add at a time: n halved until it is small. The memory of a
    flat index doubles when it is full, so that it comes out at n, and never
    holds much more than n on the way."""
    halvings = max(0, math.ceil(math.log2(max(n, 1) / _BLOCK)))
    return max(1, -(-n >> halvings))
