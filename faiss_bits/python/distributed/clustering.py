"""k-means over a collection on many machines."""

import collections
import zlib

import numpy as np

from ..arrays import float32_array, whole_number
from ..contrib.progress import bar
from . import checkpoints
from .batches import Batch
from .clustering_step import sample_pieces
from .errors import JobAbortedError, WorkerLostError
from .flat import BATCH, DistributedFlat
from .groups import ATTEMPTS
from .jobs import Deadline, checked_timeout
from .specs import check_not_read

Clusters = collections.namedtuple("Clusters", "centroids obj counts nsplit")
Clusters.__doc__ = """What kmeans() found.

centroids  [k, d] float32
obj        [niter] float64: the sum of the squared distances before every update
counts     [k] int64: sizes of the clusters in the last iteration
nsplit     [niter] int64: clusters that were split, as others were empty
"""

# A cluster is split into two that differ by so much, as FAISS does.
_EPS = 1 / 1024


def kmeans(
    index, k, niter=25, seed=1234, init_centroids=None, path=None, resume=True,
    timeout=None, progress=True,
):
    """Clusters the vectors of an index by k-means (Lloyd, squared L2), all of
    them in every iteration, where they are held.

    Parameters
    ----------
    index : DistributedFlat
        The collection, of any metric
    k : int
        Number of clusters, from 1 to the number of vectors
    niter : int, optional
        Iterations, 1 or more
    seed : int, optional
        Decides which vectors the first centroids are, and what is split
    init_centroids : array_like, optional
        The first centroids, shape (k, d), float32
    path : str or path, optional
        Checkpoint, written after every iteration (.npz with the centroids). It
        stays when the call is done. Not one of the vectors' files
    resume : bool, optional
        Goes on from the checkpoint in `path`, if there is one, also with another
        niter; ValueError where it is of another job. False: from the start
    timeout : float, optional
        Seconds that the call may take
    progress : bool, optional
        Shows a bar (with tqdm)

    Returns
    -------
    clusters : Clusters
        A named tuple of centroids, obj, counts and nsplit

    Notes
    -----
    Sums are of float64, in an order that the shards and the vectors decide: the
    same bits whatever the workers are, and whether the job was interrupted. Each
    worker holds 8 k d bytes of sums for each of its shards. NaN among the
    vectors is an error.
    """
    if type(index) is not DistributedFlat:
        raise TypeError(
            f"index is a {type(index).__name__}, expected a DistributedFlat"
        )
    k, niter = whole_number(k, "k", 1), whole_number(niter, "niter", 1)
    seed = whole_number(seed, "seed", 0)
    if k > index.ntotal:
        raise ValueError(f"k = {k}, but there are {index.ntotal} vectors")
    deadline = Deadline(checked_timeout(timeout), "kmeans")
    first = None
    if init_centroids is not None:
        first = _checked(init_centroids, k, index.d)
    job = checkpoints.identity(
        index, k=k, seed=seed,
        init_centroids=first if first is None else zlib.crc32(first.tobytes()),
    )
    if path is not None:
        for file in checkpoints.files(path):
            check_not_read(file, index._shards)
    found = None
    if path is not None and resume:
        found = checkpoints.load(
            path, job, "iterations", ("centroids", "counts", "obj", "nsplit")
        )
    if found is not None:
        done, arrays = found[0]["iterations"], found[1]
        centroids, counts = arrays["centroids"], arrays["counts"]
        obj, nsplit = list(arrays["obj"]), list(arrays["nsplit"])
    else:
        done, obj, nsplit, counts = 0, [], [], np.zeros(k, np.int64)
        centroids = first
        if first is None:
            centroids = _first(index, (index.ntotal, k, seed), deadline)
    shown = bar("kmeans", niter, "iteration", progress)
    shown.update(min(done, niter))
    try:
        for done in range(done + 1, niter + 1):
            centroids, counts, objective = _step(index, centroids, deadline)
            nsplit.append(_split_clusters(centroids, counts, seed))
            obj.append(objective)
            shown.update(1)
            if path is not None:
                checkpoints.save(
                    path, job, {"iterations": done}, centroids=centroids,
                    counts=counts, obj=np.array(obj), nsplit=np.array(nsplit),
                )
    finally:
        shown.close()
    return Clusters(
        centroids, np.array(obj), counts, np.array(nsplit, np.int64)
    )


def _checked(centroids, k, d):
    x = float32_array(centroids, "init_centroids")
    if x.shape != (k, d):
        raise ValueError(
            f"init_centroids has shape {x.shape}, expected ({k}, {d})"
        )
    return x


def _first(index, rows, deadline):
    """Vectors of sampled rows, from the files."""
    for attempt in range(ATTEMPTS):
        group, generation, handles = index._runner.whole_group(deadline)
        calls = [
            (handles[group.rank_of(shard)], ("sample", shard, rows, first, last))
            for shard, first, last in sample_pieces(index._shards, rows, BATCH)
        ]
        try:
            # One by one: the client takes no more than a batch at a time.
            parts = [group.results([call], deadline)[0] for call in calls]
            return np.concatenate(parts)
        except (WorkerLostError, JobAbortedError):
            group.lost(generation)
            if attempt == ATTEMPTS - 1:
                raise


def _step(index, centroids, deadline):
    """(centroids, counts, objective) of an iteration."""

    def slices(bounds):
        parts = [centroids[a:b] for a, b in zip(bounds, bounds[1:])]
        index._count("inputs", *parts)
        return parts

    def options(group):
        return {"shards": group.shards}

    def finish(send, number, results):
        for new, counts, _ in results:
            index._count("results", new, counts)
        by_shard = sorted(
            pair for *_, objectives in results for pair in objectives
        )
        return (
            np.concatenate([result[0] for result in results]),
            np.concatenate([result[1] for result in results]),
            float(np.sum([value for _, value in by_shard])),
        )

    batch = Batch("cluster", len(centroids), slices, options, finish)
    return next(iter(list(index._runner.run([batch], deadline))))


def _split_clusters(centroids, counts, seed):
    """Empty clusters get a half of one that is chosen by its size, as in FAISS;
    both arrays are changed. Returns how many were split."""
    empty = np.flatnonzero(counts == 0)
    random = np.random.default_rng(seed)
    sizes = counts.copy()
    for cluster in empty:
        chances = np.maximum(sizes - 1, 0).astype(np.float64)
        if chances.sum() == 0:
            chances = (sizes > 0).astype(np.float64)
        source = int(random.choice(len(sizes), p=chances / chances.sum()))
        signs = np.where(np.arange(centroids.shape[1]) % 2 == 0, 1, -1)
        middle = centroids[source].copy()
        centroids[cluster] = middle * (1 + signs * _EPS)
        centroids[source] = middle * (1 - signs * _EPS)
        sizes[cluster] = sizes[source] // 2
        sizes[source] -= sizes[cluster]
    return len(empty)
