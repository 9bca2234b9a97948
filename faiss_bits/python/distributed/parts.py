"""The part of a collection that one worker holds: an index of ours over the rows
of its shards, on the worker's GPU or its CPU. Ids here are global."""

import faiss
import numpy as np

from .. import classes
from ..backends import JACCARD, why_not_gpu
from ..contrib.vector_files import row_blocks
from ..devices import get_num_gpus, require_gpu
from .specs import Shard

#: Rows that are read at a time: how often progress moves.
BLOCK = 1 << 16
DEVICES = ("auto", "cpu", "gpu")


def chosen_device(asked, metric):
    """ "gpu" or "cpu" for this process; an exception where "gpu" is asked for
    in vain."""
    if asked == "gpu":
        require_gpu("device = 'gpu'")
        problem = why_not_gpu(metric, "float32")
        if problem:
            raise problem
        return "gpu"
    no_gpu = asked == "cpu" or get_num_gpus() == 0 or why_not_gpu(metric, "float32")
    return "cpu" if no_gpu else "gpu"


def flat_index(d, metric, metric_arg, device, resources, n):
    """An empty flat index with room for n vectors."""
    if device == "cpu":
        index = classes.IndexFusedFlat(d, metric, metric_arg)
        index.codes.resize(n * index.code_size)  # and keeps the memory
        index.codes.resize(0)
        return index
    config = classes.GpuIndexBitsFlatConfig()
    index = classes.GpuIndexBitsFlat(resources, d, metric, config)
    index.metric_arg = metric_arg
    index.reserve(n)
    return index


class Part:
    """Vectors of some shards. One thread calls at a time.

    options  metric, metric_arg, device ("auto", "cpu" or "gpu")
    """

    def __init__(self, options):
        self.metric = options["metric"]
        self.metric_arg = options["metric_arg"]
        self.device = chosen_device(options["device"], self.metric)
        self.largest = self.metric in (faiss.METRIC_INNER_PRODUCT, JACCARD)
        self.resources = (
            faiss.StandardGpuResources() if self.device == "gpu" else None
        )
        self.shards, self.index, self.loaded = [], None, 0
        self.centroids = self.quantizer = None
        self._starts = np.zeros(1, np.int64)

    def build(self, shards, d, centroids=None, lists=None):
        """Reads the rows of the shards, which come in the order of their ids.
        With `centroids` [nlist, d] into inverted lists of them."""
        self.shards, self.loaded, self.centroids = shards, 0, centroids
        self.index = None
        self._starts = np.cumsum([0, *(shard.size for shard in shards)])
        n = int(self._starts[-1])
        if centroids is None:
            self.index = self._flat(d, n)
        else:
            self.index = self._inverted_lists(d, n, centroids)
        for shard in shards:
            first = shard.first_id
            blocks = row_blocks(
                shard.path, shard.begin, shard.end, BLOCK, shard.column
            )
            for x in blocks:
                self._check_shape(shard, x, d)
                if centroids is None:
                    self.index.add(x)
                else:
                    ids = np.arange(first, first + len(x))
                    self.index.add_with_ids(x, ids)
                first += len(x)
                self.loaded += len(x)

    def make_up(self, n, d, first_row):
        """Takes n random vectors in place of shards, to measure with."""
        x = np.random.default_rng(first_row).random((n, d), np.float32)
        self.shards = [Shard(0, "", 0, n, first_row, first_row, None)]
        self._starts = np.array([0, n])
        self.index, self.loaded = self._flat(d, n), n
        self.index.add(x)

    def drop(self):
        """Frees all memory; it holds no shards then."""
        self.shards, self.index, self.quantizer, self.resources = [], None, None, None

    def _flat(self, d, n):
        return flat_index(
            d, self.metric, self.metric_arg, self.device, self.resources, n
        )

    def _inverted_lists(self, d, n, centroids):
        self.quantizer = self._flat(d, len(centroids))
        self.quantizer.add(centroids)
        nlist = len(centroids)
        if self.device == "cpu":
            index = classes.IndexFusedIVFFlat(
                self.quantizer, d, nlist, self.metric
            )
            index.is_trained = True
            return index
        # FAISS's lists on a GPU get centroids by copying an index.
        coarse = faiss.IndexFlat(d, self.metric)
        coarse.add(centroids)
        plain = faiss.IndexIVFFlat(coarse, d, nlist, self.metric)
        plain.is_trained = True
        index = classes.GpuIndexBitsIVFFlat(self.resources, plain)
        index.reserveMemory(n)
        return index

    @staticmethod
    def _check_shape(shard, x, d):
        if x.shape[1] != d:
            raise ValueError(
                f"{shard}: dimension {x.shape[1]}, which was {d} before"
            )

    # ---- searches -------------------------------------------------------------

    def coarse(self, x, nprobe):
        """The lists of queries, int32 [q, nprobe]."""
        return self.quantizer.search(x, nprobe)[1].astype(np.int32)

    def search(self, x, k, lists=None):
        """(D, I) of the k best here."""
        if lists is not None:
            params = faiss.SearchParametersIVF(nprobe=lists.shape[1])
            if self.device == "gpu":  # which finds the same lists again
                return self.index.search(x, k, params=params)
            return self.index.search_preassigned(
                x, k, lists.astype(np.int64), params=params
            )
        D, I = self.index.search(x, k)
        return D, self._global(I)

    def range_search(self, x, radius, nprobe=0):
        """(lims, D, I) of all within the radius here."""
        if nprobe:
            params = faiss.SearchParametersIVF(nprobe=nprobe)
            lims, D, I = self.index.range_search(x, radius, params=params)
        else:
            lims, D, I = self.index.range_search(x, radius)
            I = self._global(I)
        return lims.astype(np.int64), D, I

    def _global(self, I):
        """Ids of places in the index; -1 stays."""
        if not self.shards:
            return I
        shard = np.searchsorted(self._starts, I, side="right") - 1
        shard = np.clip(shard, 0, len(self.shards) - 1)
        offsets = np.array([s.first_id for s in self.shards]) - self._starts[:-1]
        return np.where(I < 0, -1, I + offsets[shard])

    def has(self, numbers):
        """Whether all vectors of the shards of these numbers are here."""
        there = [shard.number for shard in self.shards]
        whole = self.index is not None and self.loaded == self._starts[-1]
        return whole and there == list(numbers)

    # ---- its vectors ----------------------------------------------------------

    def rows(self, shard, begin, end):
        """Vectors of rows begin .. end - 1 of the collection, which are in one
        shard that is here."""
        place = [s.number for s in self.shards].index(shard)
        first = int(self._starts[place]) + begin - self.shards[place].first_row
        return self.index.reconstruct_n(first, end - begin)

    @property
    def nbytes(self):
        """Bytes of what it keeps of vectors: their components, ids and
        centroids; none of FAISS's or CUDA's own."""
        n, d = int(self._starts[-1]), self.index.d
        if self.centroids is None:
            return 4 * d * n
        return (4 * d + 8) * n + 4 * d * len(self.centroids)
