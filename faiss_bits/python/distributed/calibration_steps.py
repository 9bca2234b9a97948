"""What calibrate() measures on a worker: seconds of one call on made-up vectors,
with the worker's own kind of index, the median of some."""

import os
import tempfile
import time

import numpy as np

from ..contrib.vector_files import row_blocks
from .clustering_step import _add_rows
from .merge import merge_neighbours
from .parts import BLOCK, flat_index

_REPEATS = 5


def _median(function):
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def _vectors(n, d, seed):
    return np.random.default_rng(seed).random((n, d), np.float32)


def _index(part, x):
    index = flat_index(
        x.shape[1], part.metric, part.metric_arg, part.device, part.resources, len(x)
    )
    index.add(x)
    return index


def search(part, n, d, q, k):
    """A search of q queries among n vectors."""
    index, queries = _index(part, _vectors(n, d, 1)), _vectors(q, d, 2)
    return _median(lambda: index.search(queries, k))


def assign(part, n, d, k):
    """n vectors to the nearest of k centroids."""
    index, x = _index(part, _vectors(k, d, 1)), _vectors(n, d, 2)
    return _median(lambda: index.search(x, 1))


def sums(part, n, d, k):
    """n vectors taken from an index and added to k sums."""
    x, labels = _vectors(n, d, 2), np.random.default_rng(3).integers(0, k, n)
    total, counts = np.zeros((k, d)), np.zeros(k, np.int64)
    return _median(lambda: _add_rows(total, counts, x.copy(), labels))


def merge(part, q, k, workers):
    """Results of q queries from that many workers."""
    rng = np.random.default_rng(3)
    parts = [
        (np.sort(rng.random((q, k), np.float32), axis=1),
         np.sort(rng.integers(0, 1 << 40, (q, k)), axis=1))
        for _ in range(workers)
    ]
    return _median(lambda: merge_neighbours(parts, k, False))


def read(part, n, d):
    """n vectors from a .npy file into an index."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "x.npy")
    try:
        np.save(path, _vectors(n, d, 4))

        def load():
            index = flat_index(
                d, part.metric, part.metric_arg, part.device, part.resources, n
            )
            for x in row_blocks(path, 0, n, BLOCK):
                index.add(x)

        return _median(load)
    finally:
        os.remove(path)
        os.rmdir(folder)
