"""The exact k-NN graph of a collection on many machines."""

import os
import time
import zipfile
from pathlib import Path

import numpy as np

from ..arrays import neighbours, whole_number
from ..contrib.knn_graph import new_graph, open_graph, without_self
from ..contrib.progress import bar
from . import checkpoints
from .batches import Batch
from .flat import BATCH, DistributedFlat
from .jobs import Deadline, checked_timeout
from .specs import check_not_read


def knn_graph(
    index, k, path=None, batch=BATCH, resume=True, checkpoint=60.0, timeout=None,
    progress=True,
):
    """The k nearest vectors of every vector of an index, itself left out.

    The queries are read where they are held; workers exchange them, merge, and
    this process receives the graph.

    Parameters
    ----------
    index : DistributedFlat
        The collection
    k : int
        Neighbours of a vector, 1 or more
    path : str or path, optional
        File to write, in the form of faiss_bits.contrib.knn_graph, which
        open_graph() there reads; not one of the vectors' files. Without it the
        result is in memory
    batch : int, optional
        Vectors that are searched for at a time
    resume : bool, optional
        Goes on with a file that an earlier call of the same job has left
        unfinished (`path` and `path`.checkpoint), whatever the workers were;
        ValueError where the checkpoint is of another job. False: from the start
    checkpoint : float, optional
        Seconds between checkpoints, at which the file is written to the disk;
        0: after every batch
    timeout : float, optional
        Seconds that the call may take; the checkpoint stays when they are over
    progress : bool, optional
        Shows a bar (with tqdm)

    Returns
    -------
    D, I : numpy.ndarray
        Shape (ntotal, k), float32 and int64: a row for each vector, in the
        order of the shards. With `path` the memory map of open_graph() instead

    Notes
    -----
    Rows are rows of the collection, ids those of the index; where no shard says
    otherwise they are the same numbers. The vectors' files must be what they
    were when a job goes on.
    """
    if type(index) is not DistributedFlat:
        raise TypeError(
            f"index is a {type(index).__name__}, expected a DistributedFlat"
        )
    k, batch = neighbours(k), whole_number(batch, "batch", 1)
    deadline = Deadline(checked_timeout(timeout), "knn_graph")
    n, done = index.ntotal, 0
    if path is None:
        D, I, note = np.empty((n, k), "f4"), np.empty((n, k), "i8"), None
    else:
        note = Path(os.fspath(path) + ".checkpoint")
        for file in (path, *checkpoints.files(note)):
            check_not_read(file, index._shards)
        job = checkpoints.identity(index, k=k)
        graph, done = _opened(path, note, job, n, k, resume)
        D, I = graph["distance"], graph["id"]
        if n and done == 0:
            checkpoints.save(note, job, {"rows": 0})
    shown, last = bar("knn_graph", n, "vector", progress), time.monotonic()
    shown.update(done)
    try:
        batches = (
            _batch(index, begin, min(begin + batch, n), k)
            for begin in range(done, n, batch)
        )
        for d, i in index._runner.run(batches, deadline):
            end = done + len(d)
            D[done:end], I[done:end] = _others(index, d, i, done)
            shown.update(end - done)
            done = end
            if note and time.monotonic() - last >= checkpoint and done < n:
                graph.flush()
                checkpoints.save(note, job, {"rows": done})
                last = time.monotonic()
    finally:
        shown.close()
    if note is None:
        return D, I
    graph.flush()
    note.unlink(missing_ok=True)
    return open_graph(path)


def _opened(path, note, job, n, k, resume):
    """(graph, rows that it has): the file of an earlier call, or a new one."""
    found = checkpoints.load(note, job, "rows") if resume else None
    if found is not None:
        graph = _graph_in(path)
        if graph is None or graph.shape != (n,) or graph["id"].shape != (n, k):
            raise ValueError(f"{path}: is not the graph that {note} is about")
        return graph, int(found[0]["rows"])
    return new_graph(path, n, k), 0


def _graph_in(path):
    """The map of a graph's file, or None where it is another one."""
    try:
        graph = np.load(path, mmap_mode="r+")
    except (ValueError, EOFError, zipfile.BadZipFile):
        return None
    fields = getattr(getattr(graph, "dtype", None), "names", None)
    return graph if fields == ("id", "distance") else None


def _batch(index, begin, end, k):
    """A search for rows of the collection, by whoever has them."""

    def slices(bounds):
        return [(begin + a, begin + b) for a, b in zip(bounds, bounds[1:])]

    def options(group):
        return {"k": k + 1, "table": group.table}

    return Batch("search", end - begin, slices, options, index._neighbours)


def _others(index, D, I, row):
    """Results without the vectors of the rows row, row + 1, ... themselves."""
    parts = []
    for shard in index._shards:
        begin, end = max(row, shard.first_row), min(row + len(D), shard.end_row)
        if begin < end:
            cut = slice(begin - row, end - row)
            first = shard.first_id + begin - shard.first_row
            parts.append(without_self(D[cut], I[cut], first))
    return tuple(np.concatenate(part) for part in zip(*parts))
