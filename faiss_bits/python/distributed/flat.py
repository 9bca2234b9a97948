"""DistributedFlat: exact search of vectors on many machines."""

import collections
import threading

import faiss
import numpy as np

from ..arrays import float32_array, float32_number, neighbours, whole_number
from ..backends import is_metric
from ..fused import check_metric_arg
from ..ranges import number
from .batches import Batch, Runner
from .errors import WorkerLostError
from .groups import Group
from .jobs import Deadline, checked_timeout
from .merge import BYTES_OF_RESULT, empty_pairs, joined_ranges
from .parts import DEVICES
from .specs import checked_specs, placed, resolved
from .transport import DaskTransport

BATCH = 8192
# A message of results of a range search may always have so many bytes.
_LEAST_PIECE = 1 << 16


class DistributedFlat:
    """Exact search of vectors that many workers hold between them.

    Each worker of a Dask cluster reads its shards and holds them in an index of
    ours: on its GPU (GpuIndexBitsFlat), or on its CPU (IndexFusedFlat). Results
    are those of one index with all vectors, bit by bit, whatever the shards, the
    workers and their kind (docs/exact.md, docs/distributed.md).

    Parameters
    ----------
    client : dask.distributed.Client
        Of the cluster; not an asynchronous one
    specs : list of ShardSpec
        The shards, in the order of the rows of the collection. Each goes to one
        worker, the largest first, to the one that has the fewest rows
    metric : MetricType, optional
        One of GpuIndexBitsFlat and IndexFusedFlat
    replicas : int, optional
        Copies of the collection, each on workers of its own; batches of queries
        go to them in turn
    metric_arg : float, optional
        The p of METRIC_Lp
    workers : list of str, optional
        Addresses of the workers to use; None: all that the cluster has. Those
        that are left over take the place of lost ones
    device : str, optional
        "auto": a worker's GPU if it sees one, else its CPU; "cpu"; "gpu"
    threads : int, optional
        Threads of a worker's CPU; 0: as many as Dask gave the worker
    progress : bool, optional
        Shows a bar (with tqdm) while vectors are loaded
    replace_timeout : float, optional
        Seconds to wait for a worker that takes the place of a lost one
    timeout : float, optional
        Seconds that loading may take; None: any

    Attributes
    ----------
    d, ntotal : int
        Dimension and number of the vectors
    metric_type : int
        The metric

    Notes
    -----
    A worker that is lost is replaced by one that has no shards of this index,
    and reads the shards again; what was under way is repeated. Where no worker
    comes, or the time is over, the call raises: WorkerLostError,
    SearchTimeoutError (a TimeoutError). No call returns a part of its results.
    Calls of several threads may run at the same time. close(), or the end of a
    `with` block, frees the workers.
    """

    def __init__(
        self, client, specs, metric=faiss.METRIC_L2, replicas=1, *,
        metric_arg=0.0, workers=None, device="auto", threads=0, progress=True,
        replace_timeout=60.0, timeout=None,
    ):
        self._groups = []
        if isinstance(metric, str) or not is_metric(metric):
            raise ValueError(f"metric = {metric!r} is none that an index has")
        if device not in DEVICES:
            raise ValueError(
                f"device = {device!r} is none of {', '.join(map(repr, DEVICES))}"
            )
        specs = checked_specs(specs)
        self.metric_type = metric
        self.metric_arg = check_metric_arg(metric, metric_arg)
        self.replicas = whole_number(replicas, "replicas", 1)
        self._wait = checked_timeout(replace_timeout) or 0.0
        deadline = Deadline(checked_timeout(timeout), "loading")
        self._options = {
            "metric": metric,
            "metric_arg": self.metric_arg,
            "device": device,
            "threads": whole_number(threads, "threads", 0),
        }
        self._traffic = collections.Counter()
        self._lock = threading.Lock()
        self._transport = DaskTransport(client)
        self._workers = None if workers is None else list(workers)
        self._known = set(self._transport.workers())
        try:
            self._start(specs, deadline, progress)
        except BaseException:
            self.close()
            raise
        self._runner = Runner(self._transport, self._groups, self._repair)

    # ---- its workers ----------------------------------------------------------

    def _start(self, specs, deadline, progress):
        missing = set(self._workers or ()) - self._known
        if missing:
            raise ValueError(f"workers has {missing.pop()!r}, which is not there")
        free = self._spare()
        each = min(len(free) // self.replicas, len(specs))
        if each == 0:
            raise ValueError(
                f"replicas = {self.replicas}, but there are {len(free)} workers"
            )
        shapes = self._shapes(specs, free, deadline)
        self._shards, self.d = resolved(specs, shapes)
        self.ntotal = sum(shard.size for shard in self._shards)
        parts = placed(self._shards, each)
        for i in range(self.replicas):
            group = Group(
                self._transport, parts, self._options, self.d, "loading"
            )
            self._groups.append(group)
            group.start(free[i * each : (i + 1) * each])
        self._prepare(deadline)
        for group in self._groups:
            group.fill(self._spare, deadline, self._wait, progress)

    def _shapes(self, specs, workers, deadline):
        """(n, d) of every spec's file: the first worker that is not lost looks at
        them."""
        files = [(spec.path, spec.column) for spec in specs]
        for worker in workers:
            deadline.left()
            first = Group(self._transport, [[]], self._options, 0, "shapes")
            try:
                first.start([worker])
                ask = [(first.handles[0], ("shapes", files))]
                return first.results(ask, deadline)[0]
            except WorkerLostError as error:
                lost = error
            finally:
                first.stop()
        raise lost

    def _prepare(self, deadline):
        """What comes before the vectors are loaded."""

    def _spare(self):
        """Workers without a host of this index."""
        used = {address for group in self._groups for address in group.addresses()}
        return [
            address
            for address in self._transport.workers()
            if address not in used and self._may_use(address)
        ]

    def _may_use(self, address):
        if self._workers is None or address in self._workers:
            return True
        # Workers that came later, in place of those that were named.
        return address not in self._known

    def _repair(self, group, generation, deadline):
        if not self._groups:
            raise RuntimeError("the index is closed")
        group.repair(generation, self._spare, deadline, self._wait)

    def close(self):
        """Frees the workers. The index cannot be used any more."""
        for group in self._groups:
            group.stop()
        self._groups.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- searches -------------------------------------------------------------

    def search(self, xq, k, batch=BATCH, timeout=None):
        """Finds the k nearest vectors of every query.

        Parameters
        ----------
        xq : array_like
            Queries, shape (nq, d), float32
        k : int
            Number of neighbours, 1 or more, also above the number of vectors
        batch : int, optional
            Queries at a time. No message is larger than a batch of queries
            (4 d bytes each) or of results (12 k bytes each); it never changes
            the result
        timeout : float, optional
            Seconds that the call may take, repairs included; None: any

        Returns
        -------
        D : numpy.ndarray
            Distances, shape (nq, k), best first
        I : numpy.ndarray
            Ids, int64; -1 where there are fewer than k vectors
        """
        return self._search(xq, neighbours(k), batch, timeout, {})

    def _search(self, xq, k, batch, timeout, options):
        deadline = Deadline(checked_timeout(timeout), "search")
        xq, batch = self._queries(xq), whole_number(batch, "batch", 1)
        D = np.empty((len(xq), k), np.float32)
        I = np.empty((len(xq), k), np.int64)
        row = 0
        for d, i in self._run("search", xq, batch, {"k": k, **options},
                              self._neighbours, deadline):
            D[row : row + len(d)], I[row : row + len(d)] = d, i
            row += len(d)
        return D, I

    def range_search(self, xq, radius, batch=BATCH, timeout=None):
        """Finds all vectors with distance < radius (inner product > radius).

        Parameters
        ----------
        xq : array_like
            Queries, shape (nq, d), float32
        radius : float
            The limit; not NaN
        batch, timeout
            As for search(). A message of results has up to 4 d bytes for each
            query of a batch, or 64 KiB

        Returns
        -------
        lims : numpy.ndarray
            int64, shape (nq + 1,): results of query i are at lims[i] ..
            lims[i + 1] - 1
        D, I : numpy.ndarray
            Distances and ids of all results, of a query by ascending id
        """
        return self._range_search(xq, radius, batch, timeout, {})

    def _range_search(self, xq, radius, batch, timeout, options):
        deadline = Deadline(checked_timeout(timeout), "range_search")
        xq, batch = self._queries(xq), whole_number(batch, "batch", 1)
        piece = max(_LEAST_PIECE, 4 * self.d * batch) // BYTES_OF_RESULT
        radius = float32_number(number(radius, "radius"), "radius")
        options = {"radius": radius, "piece": piece, **options}
        parts = self._run("range", xq, batch, options, self._ranges(piece), deadline)
        return joined_ranges(parts)

    def _queries(self, xq):
        xq = float32_array(xq, "xq")
        if xq.ndim != 2 or xq.shape[1] != self.d:
            raise ValueError(f"xq has shape {xq.shape}, expected (any, {self.d})")
        return xq

    def _run(self, what, x, size, options, finish, deadline):
        """Results of the batches of x, in their order."""
        if not self._groups:
            raise RuntimeError("the index is closed")

        def batch_of(rows):
            def slices(bounds):
                parts = [rows[a:b] for a, b in zip(bounds, bounds[1:])]
                self._count("inputs", *parts)
                return parts

            return Batch(what, len(rows), slices, options, finish)

        batches = (batch_of(x[i : i + size]) for i in range(0, len(x), size))
        return self._runner.run(batches, deadline)

    def _neighbours(self, send, number, results):
        for result in results:
            self._count("results", *result)
        return tuple(np.concatenate(part) for part in zip(*results))

    def _ranges(self, piece):
        def of_rank(send, number, rank, lims):
            self._count("results", lims)
            parts, total = [empty_pairs()], int(lims[-1])
            for first in range(0, total, piece):
                last = min(first + piece, total)
                parts.append(send(rank, "merged_piece", number, first, last))
                self._count("results", *parts[-1])
            if len(lims) > 1:
                send(rank, "merged_done", number)
            return (lims, *map(np.concatenate, zip(*parts)))

        def finish(send, number, results):
            return joined_ranges(
                of_rank(send, number, rank, lims)
                for rank, lims in enumerate(results)
            )

        return finish

    def _count(self, what, *arrays):
        with self._lock:
            self._traffic[what] += sum(a.nbytes for a in arrays)

    def stats(self):
        """What went over the network, and what workers hold. Waits for a copy that
        is being made whole.

        Returns
        -------
        stats : dict
            client: bytes of the queries ("inputs") that the client sent, and of
            the results that it received; workers: for every host a dict of its
            worker, device, shards, vectors, vector_bytes, sent and messages (by
            what they carried), largest_message, and most_job_bytes, the most
            bytes that arrays of batches took at a time
        """
        workers = []
        for group in self._groups:
            group.settle()
            handles = [handle for handle in group.handles if handle is not None]
            for handle, stats in zip(handles, group.call("stats", handles=handles)):
                workers.append({"worker": handle.worker, **stats})
        with self._lock:
            return {"client": dict(self._traffic), "workers": workers}
