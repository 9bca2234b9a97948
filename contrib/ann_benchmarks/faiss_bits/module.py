"""Exact search of faiss_bits in ann-benchmarks, on the CPU and on a GPU."""

import faiss
import numpy as np

import faiss_bits
from faiss_bits.devices import require_gpu
from faiss_bits.search_modes import mode_of

from ..base.module import BaseANN

# Their names of metrics. Cosines are inner products with unit vectors.
_METRICS = {
    "euclidean": faiss.METRIC_L2,
    "angular": faiss.METRIC_INNER_PRODUCT,
}
_BLOCK = 65536  # rows that are made unit vectors at a time


class _FaissBits(BaseANN):
    """What the two classes share; they differ in the index.

    Parameters
    ----------
    metric : str
        "euclidean" or "angular". Angular searches compare cosines; a zero
        vector has cosine 0 with every vector
    search_mode : str, optional
        "certified", "plain", or "fast", which is not exact on a GPU; see
        docs/exact.md of faiss_bits
    """

    def __init__(self, metric, search_mode="certified"):
        if metric not in _METRICS:
            raise ValueError(
                f"metric = {metric!r} is none of "
                + ", ".join(map(repr, _METRICS))
            )
        mode_of(search_mode)  # an error now, not after the data set is read
        self._metric = metric
        self._search_mode = search_mode
        self._index = None
        self._labels = None
        self._compared = 0
        self.name = f"{type(self).__name__}({search_mode})"

    def _make_index(self, d, metric):
        """An empty index for vectors of d dimensions."""
        raise NotImplementedError

    def fit(self, X):
        """Stores the vectors X [n, d]."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] < 1:
            raise ValueError(f"X has shape {X.shape}, expected (n, d)")
        index = self._make_index(X.shape[1], _METRICS[self._metric])
        index.search_mode = self._search_mode
        index.add(_unit_rows(X) if self._metric == "angular" else _floats(X))
        self._index, self._labels, self._compared = index, None, 0

    def query(self, q, n):
        """Ids of the n nearest of q [d], nearest first; all, if there are
        fewer than n."""
        return _found(self._search(np.asarray(q)[None], n)[0])

    def batch_query(self, X, n):
        """Finds the n nearest of every row of X [nq, d]."""
        self._labels = self._search(np.asarray(X), n)

    def get_batch_results(self):
        """Ids that the last batch_query() found: an array a query."""
        if self._labels is None:
            raise RuntimeError("get_batch_results() before batch_query()")
        return [_found(row) for row in self._labels]

    def get_additional(self):
        """`dist_comps`: the vectors that queries were compared with."""
        return {"dist_comps": self._compared}

    def done(self):
        """Gives the memory of the index back."""
        self._index = self._labels = None

    def _search(self, x, k):
        if self._index is None:
            raise RuntimeError(f"{self.name}: a query before fit()")
        # Queries stay as they are: their length has no part in the order of
        # cosines, and dividing by it would only round.
        labels = self._index.search(_floats(x), k)[1]
        self._compared += len(x) * self._index.ntotal
        return labels


class FaissBitsCPU(_FaissBits):
    """IndexFusedFlat, on as many threads as OpenMP would use. Parameters as
    of _FaissBits."""

    def _make_index(self, d, metric):
        return faiss_bits.IndexFusedFlat(d, metric)


class FaissBitsGPU(_FaissBits):
    """GpuIndexBitsFlat on GPU 0, whose memory is no part of `index_size`.
    Parameters as of _FaissBits; RuntimeError where there is no GPU."""

    def __init__(self, metric, search_mode="certified"):
        super().__init__(metric, search_mode)
        require_gpu("FaissBitsGPU")
        self._resources = faiss.StandardGpuResources()

    def _make_index(self, d, metric):
        return faiss_bits.GpuIndexBitsFlat(self._resources, d, metric)

    def done(self):
        super().done()
        self._resources = None


def _floats(x):
    """x as float32, row after row; x itself if it is that."""
    return np.ascontiguousarray(x, np.float32)


def _unit_rows(x):
    """The rows of x at length 1, float32; zeros stay zeros. Lengths and
    quotients are float64 and rounded once."""
    out = np.empty(x.shape, np.float32)
    for begin in range(0, len(x), _BLOCK):
        part = x[begin : begin + _BLOCK].astype(np.float64)
        length = np.sqrt(np.einsum("nd,nd->n", part, part))[:, None]
        length[length == 0] = 1
        out[begin : begin + _BLOCK] = part / length
    return out


def _found(labels):
    """A row of labels without the -1 behind the last that was found."""
    return labels[labels >= 0] if labels[-1] < 0 else labels
