"""DBSCAN (Ester et al. 1996) by exact range searches: on the GPU if there is
one, else by the CPU kernels.

    core, labels = dbscan(x, eps=0.5, min_samples=5)

The labels are those of scikit-learn's sklearn.cluster.dbscan with the Euclidean
metric: clusters by the lowest number of their core points, a border point in the
first cluster that has a core point near it, -1 for noise.
"""

import faiss
import numpy as np

import faiss_bits
from faiss_bits import range_search
from faiss_bits.arrays import check_columns, whole_number
from faiss_bits.backends import choose
from faiss_bits.compiled import swigfaiss_bits
from faiss_bits.contrib.progress import bar
from faiss_bits.devices import check_device
from faiss_bits.ranges import number, squared_radius

__all__ = ["dbscan"]


def dbscan(
    x, eps=0.5, min_samples=5, block=16384, device=-1, progress=False
):
    """Clusters of dense points, and the noise between them.

    Parameters
    ----------
    x : array_like
        Points, shape (n, d), numpy: float32, or float64, which is searched on the
        CPU
    eps : float
        Points at a Euclidean distance of at most it are neighbours (which pairs
        that are, to the last bit: faiss_bits.radius_neighbors_graph); 0 or more
    min_samples : int
        A point with so many neighbours, itself among them, is a core point
    block : int, optional
        Points that are searched for at a time, 1 or more: it decides how much
        memory is taken, how often progress is shown and Ctrl-C is heard, never
        the result
    device : int, optional
        Number of the GPU, which is then the one that runs; -1: the thread's
        current one, and without a GPU the CPU
    progress : bool, optional
        Shows a bar (with tqdm)

    Returns
    -------
    core : numpy.ndarray
        Numbers of the core points, ascending, int64
    labels : numpy.ndarray
        Cluster of every point, shape (n,), int64; -1 is noise

    Notes
    -----
    Cost: a range search of n queries, and a second one where n is more than
    `block`. Memory: the neighbours of `block` points, 12 bytes each.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}, expected two sizes")
    check_columns(x, "x")
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"x is {x.dtype}, expected float32 or float64")
    eps = number(eps, "eps")
    if eps < 0:
        raise ValueError(f"eps = {eps} is negative")
    min_samples = whole_number(min_samples, "min_samples", 1)
    block = whole_number(block, "block", 1)
    device = whole_number(device, "device", -1)
    x = np.ascontiguousarray(x)
    n = len(x)
    search = _searcher(x, squared_radius(eps, x.dtype), device)
    one_block = n <= block
    shown = bar("dbscan", n if one_block else 2 * n, "points", progress)

    counts = np.zeros(n, np.int64)
    found = None
    for first in range(0, n, block):
        lims, ids = found = search(first, min(first + block, n))
        counts[first : first + block] = np.diff(lims)
        shown.update(len(lims) - 1)
    is_core = counts >= min_samples

    # Core points near each other are of one cluster; other points are of the
    # first cluster that reaches them, which depends on the clusters alone.
    component = np.arange(n)
    borders, cores = [], []  # pairs of a border point and a core point near it
    for first in range(0, n, block):
        lims, ids = found if one_block else search(first, min(first + block, n))
        rows = np.repeat(np.arange(first, first + len(lims) - 1), np.diff(lims))
        near = is_core[ids]
        both = near & is_core[rows]
        edge = near & ~is_core[rows]
        borders.append(rows[edge])
        cores.append(ids[edge])
        # The components so far, and the edges of this block.
        ends = (
            np.concatenate((rows[both], np.arange(n))),
            np.concatenate((ids[both], component)),
        )
        joined = coo_matrix((np.ones(len(ends[0]), np.int8), ends), (n, n))
        _, component = connected_components(joined, directed=False)
        component = _first_of_each(component)
        if not one_block:
            shown.update(len(lims) - 1)
    shown.close()

    labels = np.full(n, -1, np.int64)
    core = np.flatnonzero(is_core)
    # A component's number is its first member; those of core points are core.
    _, labels[core] = np.unique(component[core], return_inverse=True)
    if n > 0:
        borders, cores = np.concatenate(borders), np.concatenate(cores)
        reached = np.full(n, n, np.int64)
        np.minimum.at(reached, borders, labels[cores])
        is_border = reached < n
        labels[is_border] = reached[is_border]
    return core, labels


def _first_of_each(component):
    """The components with the number of their first member."""
    _, first, inverse = np.unique(
        component, return_index=True, return_inverse=True
    )
    return first[inverse]


def _searcher(x, radius, device):
    """search(begin, end): (lims, ids) of these points among all."""
    n, d = x.shape
    asks = f"device = {device}" if device >= 0 else None
    why_not = None
    if x.dtype != np.float32:
        why_not = TypeError(f"x is {x.dtype}, which is searched on the CPU")
    on_gpu = choose("auto", asks, why_not) == "gpu"
    if asks:
        check_device(device)
    if not on_gpu or n == 0:

        def on_cpu(begin, end):
            lims, _, ids = range_search(x[begin:end], x, radius, backend="cpu")
            return lims, ids

        return on_cpu
    config = faiss_bits.GpuIndexBitsFlatConfig()
    config.device = device if asks else swigfaiss_bits.current_device()
    index = faiss_bits.GpuIndexBitsFlatL2(faiss.StandardGpuResources(), d, config)
    index.add(x)

    def search(begin, end):
        lims, _, ids = index.range_search(x[begin:end], radius)
        return lims.astype(np.int64), ids

    return search
