"""What runs on a worker: an actor that holds a part of the collection, searches
it, and exchanges slices of queries and of results with the others."""

import asyncio
import collections
import time
from concurrent.futures import ThreadPoolExecutor

import faiss
import numpy as np

from ..contrib.vector_files import file_shape
from . import calibration_steps, transport
from .clustering_step import step_sums, sum_of_shards, training_sample, trained
from .errors import JobAbortedError
from .merge import (
    cut_range,
    empty_pairs,
    merge_neighbours,
    merge_ranges,
    slice_bounds,
)
from .parts import Part


class Counts:
    """Bytes of arrays in messages that were sent, by what they carry."""

    def __init__(self):
        self.bytes = collections.Counter()
        self.messages = collections.Counter()
        self.largest = 0
        self.held = self.most_held = 0

    def sent(self, what, *arrays):
        size = sum(a.nbytes for a in arrays if a is not None)
        self.bytes[what] += size
        self.messages[what] += 1
        self.largest = max(self.largest, size)

    def hold(self, size):
        self.held += size
        self.most_held = max(self.most_held, self.held)


class Job:
    """One batch under way. Others wait for its queries and results here."""

    def __init__(self, job):
        loop = asyncio.get_running_loop()
        self.number = job
        self.inputs, self.outputs, self.aborted = (
            loop.create_future() for _ in range(3)
        )
        self.merged = None
        self.waiting = None  # requests of others that are to come
        self.held = 0

    def fail(self, error):
        for future in (self.inputs, self.outputs, self.aborted):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody need ask


class Host:
    """The actor. Its methods are coroutines on the worker's event loop; one
    thread of its own computes."""

    def __init__(self, options):
        self._port = transport.port()
        threads = options["threads"] or self._port.threads
        self._pool = ThreadPoolExecutor(
            1,
            thread_name_prefix="faiss_bits",
            initializer=faiss.omp_set_num_threads,
            initargs=(threads,),
        )
        self._part = Part(options)
        self._peers, self._rank, self._generation = [], 0, None
        self._jobs, self._over = {}, collections.deque(maxlen=4096)
        self._counts = Counts()
        self._loading = False

    async def _compute(self, function, *args):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, function, *args)

    # ---- what it holds --------------------------------------------------------

    async def shapes(self, files):
        """(n, d) of every (path, column)."""
        return await self._compute(
            lambda: [file_shape(path, column) for path, column in files]
        )

    async def build(self, shards, d):
        """Reads and adds all vectors. Centroids, if there are any, came before."""
        self._loading = True
        try:
            await self._compute(self._part.build, shards, d, self._part.centroids)
        finally:
            self._loading = False
        return self._part.device

    async def state(self, shards):
        """Whether it has the shards of these numbers: "ready", "loading" or
        "empty"."""
        if self._loading:
            return "loading"
        return "ready" if self._part.has(shards) else "empty"

    async def progress(self):
        return self._part.loaded

    async def join(self, generation, rank, places):
        """The others of the group, in their order, itself among them."""
        for job in list(self._jobs.values()):
            job.fail(JobAbortedError(f"the workers changed (job {job.number})"))
        self._jobs.clear()
        self._generation, self._rank, self._peers = generation, rank, places
        return True

    async def stats(self):
        counts = self._counts
        return {
            "device": self._part.device,
            "shards": [shard.number for shard in self._part.shards],
            "vectors": sum(shard.size for shard in self._part.shards),
            "vector_bytes": self._part.nbytes if self._part.index else 0,
            "sent": dict(counts.bytes),
            "messages": dict(counts.messages),
            "largest_message": counts.largest,
            "most_job_bytes": counts.most_held,
        }

    async def measure(self, what, *args):
        """Seconds that a step takes here, of calibration.py."""
        return await self._compute(getattr(calibration_steps, what), self._part, *args)

    async def make_up(self, n, d, first_row):
        await self._compute(self._part.make_up, n, d, first_row)

    async def echo(self, x):
        return x

    async def exchange(self, size, rounds):
        """Seconds a round of asking every other worker for `size` bytes."""
        job = Job(None)
        others = [r for r in range(len(self._peers)) if r != self._rank]
        begin = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(
                *(self._from_peer(job, rank, "bytes_of", size) for rank in others)
            )
        return (time.perf_counter() - begin) / rounds

    async def bytes_of(self, size):
        return np.random.default_rng(0).integers(0, 256, size, np.uint8)

    # ---- jobs -----------------------------------------------------------------

    def _job(self, number):
        if number in self._over:
            raise JobAbortedError(f"job {number} is over")
        if number not in self._jobs:
            self._jobs[number] = Job(number)
        return self._jobs[number]

    def _finish(self, job):
        self._jobs.pop(job.number, None)
        self._over.append(job.number)
        self._counts.hold(-job.held)
        job.held = 0

    async def abort(self, number):
        """The job failed elsewhere: nobody waits for it any more."""
        job = self._jobs.get(number)
        if job is not None:
            job.fail(JobAbortedError(f"job {number} was aborted"))
            self._finish(job)
        elif number not in self._over:
            self._over.append(number)

    def _hold(self, job, *arrays):
        size = sum(a.nbytes for a in arrays if a is not None)
        job.held += size
        self._counts.hold(size)

    def _served(self, job):
        """A request of another worker was answered."""
        if job.waiting is not None:
            job.waiting -= 1
            if job.waiting == 0 and job.merged is None:
                self._finish(job)

    async def _from_peer(self, job, rank, name, *args):
        """A method of another worker's host, for as long as the job lives."""
        call = asyncio.ensure_future(
            self._port.call(self._peers[rank], name, *args)
        )
        await asyncio.wait(
            {call, job.aborted}, return_when=asyncio.FIRST_COMPLETED
        )
        if not call.done():
            call.cancel()
            job.aborted.result()  # raises
        return call.result()

    async def _from_all(self, job, own, wanted, name, *args):
        """Parts of every rank in `wanted`, in order: `own` is this one's."""

        async def of(rank):
            if rank == self._rank:
                return own
            return await self._from_peer(job, rank, name, job.number, *args)

        return await asyncio.gather(*map(of, wanted))

    async def run(self, number, generation, what, source, n, options):
        """This worker's part in a job, from start to end: its slice of the
        merged results.

        what     "search", "range" or "cluster"
        source   this worker's slice of the input: an array, or (begin, end),
                 rows of the collection
        n        rows of the whole input
        """
        if generation != self._generation:
            raise JobAbortedError(
                f"job {number} is of generation {generation}, here is "
                f"{self._generation}"
            )
        job = self._job(number)
        others = len(self._peers) - 1
        bounds = slice_bounds(n, len(self._peers))
        filled = [r for r in range(others + 1) if bounds[r] < bounds[r + 1]]
        mine = self._rank in filled
        # Each other worker asks for this one's inputs, and its results.
        job.waiting = others * mine + len(filled) - mine + 1
        steps = {
            "search": self._search, "range": self._range, "cluster": self._cluster
        }
        try:
            own = await self._own_input(job, source, options)
            job.inputs.set_result(own)
            self._hold(job, *own)
            inputs = await self._from_all(job, own, filled, "inputs_of")
            result = await steps[what](job, inputs, bounds, filled, options)
        except BaseException as error:
            told = error if isinstance(error, Exception) else JobAbortedError(
                f"job {number} was cancelled"
            )
            job.fail(told)
            self._finish(job)
            raise
        self._served(job)
        return result

    async def inputs_of(self, number):
        """This worker's slice of the input, for another."""
        job = self._job(number)
        own = await asyncio.shield(job.inputs)
        self._counts.sent("inputs", *own)
        self._served(job)
        return own

    async def outputs_of(self, number, begin, end):
        """Results of this worker's part for queries begin .. end - 1."""
        job = self._job(number)
        D, I = await asyncio.shield(job.outputs)
        D, I = D[begin:end], I[begin:end]
        self._counts.sent("outputs", D, I)
        self._served(job)
        return D, I

    async def _own_input(self, job, source, options):
        """(queries, their lists or None)."""
        if isinstance(source, tuple):
            source = await self._rows(job, *source, options["table"])
        lists = None
        if options.get("nprobe") and "radius" not in options:
            lists = await self._compute(
                self._part.coarse, source, options["nprobe"]
            )
        return source, lists

    @staticmethod
    def _whole(inputs):
        x = np.concatenate([part[0] for part in inputs])
        if inputs[0][1] is None:
            return x, None
        return x, np.concatenate([part[1] for part in inputs])

    # ---- neighbours -----------------------------------------------------------

    async def _search(self, job, inputs, bounds, filled, options):
        x, lists = self._whole(inputs)
        k = options["k"]
        D, I = await self._compute(self._part.search, x, k, lists)
        self._hold(job, x, lists, D, I)
        job.outputs.set_result((D, I))
        begin, end = bounds[self._rank], bounds[self._rank + 1]
        if begin == end:
            return D[:0], I[:0]
        parts = await self._from_all(
            job, (D[begin:end], I[begin:end]), range(len(self._peers)),
            "outputs_of", begin, end,
        )
        for rank, part in enumerate(parts):
            if rank != self._rank:
                self._hold(job, *part)
        D, I = await self._compute(
            merge_neighbours, parts, k, self._part.largest
        )
        self._hold(job, D, I)
        self._counts.sent("results", D, I)
        return D, I

    # ---- ranges ---------------------------------------------------------------

    async def _range(self, job, inputs, bounds, filled, options):
        x, _ = self._whole(inputs)
        result = await self._compute(
            self._part.range_search, x, options["radius"], options.get("nprobe", 0)
        )
        self._hold(job, x, *result)
        job.outputs.set_result(result)
        begin, end = bounds[self._rank], bounds[self._rank + 1]
        if begin == end:
            return np.zeros(1, np.int64)
        own = cut_range(result, begin, end)
        parts = await self._from_all(job, None, range(len(self._peers)),
                                     "range_of", begin, end)
        piece = options["piece"]

        async def whole(rank):
            if rank == self._rank:
                return own
            lims = parts[rank]
            return (lims, *await self._pieces(
                lims[-1], piece,
                lambda *cut: self._from_peer(
                    job, rank, "range_piece", job.number, begin, end, *cut
                ),
            ))

        ranges = await asyncio.gather(*map(whole, range(len(self._peers))))
        # The others are done with this worker's when they say so.
        await asyncio.gather(*(
            self._from_peer(job, rank, "range_done", job.number)
            for rank in range(len(self._peers)) if rank != self._rank
        ))
        lims, D, I = await self._compute(merge_ranges, ranges)
        self._hold(job, lims, D, I)
        job.merged = (D, I)
        self._counts.sent("results", lims)
        return lims

    @staticmethod
    async def _pieces(total, piece, call):
        """(D, I) of `total` results that come up to `piece` at a time."""
        parts = [empty_pairs()]
        for first in range(0, int(total), piece):
            parts.append(await call(first, min(first + piece, int(total))))
        return tuple(map(np.concatenate, zip(*parts)))

    async def range_of(self, number, begin, end):
        """How many results queries begin .. end - 1 have here: lims."""
        job = self._job(number)
        lims = (await asyncio.shield(job.outputs))[0]
        lims = lims[begin : end + 1] - lims[begin]
        self._counts.sent("outputs", lims)
        return lims

    async def range_piece(self, number, begin, end, first, last):
        """Results first .. last - 1 of queries begin .. end - 1."""
        job = self._job(number)
        _, D, I = cut_range(await asyncio.shield(job.outputs), begin, end)
        self._counts.sent("outputs", D[first:last], I[first:last])
        return D[first:last], I[first:last]

    async def range_done(self, number):
        self._served(self._job(number))
        return True

    async def merged_piece(self, number, first, last):
        """Merged results of this worker's slice, for the client."""
        D, I = self._job(number).merged
        self._counts.sent("results", D[first:last], I[first:last])
        return D[first:last], I[first:last]

    async def merged_done(self, number):
        """The client has all of them."""
        job = self._jobs.get(number)
        if job is not None:
            job.merged = None
            if job.waiting <= 0:
                self._finish(job)
        return True

    # ---- rows, training and clustering ----------------------------------------

    async def _rows(self, job, begin, end, table):
        """Vectors of rows begin .. end - 1, from whoever has them. `table` has
        (first row, end row, shard, rank) of the shards, by rows."""
        parts = []
        for first, last, shard, rank in table:
            cut = max(begin, first), min(end, last)
            if cut[0] >= cut[1]:
                continue
            if rank == self._rank:
                parts.append(await self._compute(self._part.rows, shard, *cut))
            else:
                parts.append(
                    await self._from_peer(job, rank, "rows_of", shard, *cut)
                )
                self._hold(job, parts[-1])
        return np.concatenate(parts)

    async def rows_of(self, shard, begin, end):
        x = await self._compute(self._part.rows, shard, begin, end)
        self._counts.sent("rows", x)
        return x

    async def sample(self, shards, rows, first, last):
        """Vectors of some rows of the collection that are in `shards`, read from
        the files: numbers first .. last - 1 of `rows` (total, count, seed)."""
        x = await self._compute(training_sample, shards, rows, first, last)
        self._counts.sent("sample", x)
        return x

    async def train(self, pieces, d, options):
        """Centroids of vectors that come from ranks in pieces [(rank, shards,
        rows, first, last)]; they stay here. Returns how many there are."""
        job = Job(None)
        parts = [np.empty((0, d), np.float32)]
        for rank, *piece in pieces:
            if rank == self._rank:
                parts.append(await self.sample(*piece))
            else:
                parts.append(await self._from_peer(job, rank, "sample", *piece))
        x = np.concatenate(parts)
        self._part.centroids = await self._compute(
            trained, x, options, self._part.device == "gpu"
        )
        return len(self._part.centroids)

    async def centroids_of(self, begin, end):
        x = self._part.centroids[begin:end]
        self._counts.sent("centroids", x)
        return x

    async def take_centroids(self, begin, x, n):
        """Rows begin .. of n centroids, of the client."""
        if self._part.centroids is None or len(self._part.centroids) != n:
            self._part.centroids = np.empty((n, x.shape[1]), np.float32)
        self._part.centroids[begin : begin + len(x)] = x
        return True

    async def _cluster(self, job, inputs, bounds, filled, options):
        """A step of k-means: the inputs are the centroids."""
        centroids, _ = self._whole(inputs)
        sums = await self._compute(step_sums, self._part, centroids)
        self._hold(job, centroids, sums.sums, sums.counts)
        job.outputs.set_result((sums.sums, sums.counts))
        begin, end = bounds[self._rank], bounds[self._rank + 1]
        numbers = options["shards"]
        own = sums.sums[:, begin:end], sums.counts[:, begin:end]
        parts = []
        if begin < end:
            parts = await self._from_all(job, own, range(len(self._peers)),
                                         "sums_of", begin, end)
            for part in parts:
                self._hold(job, *part)
        new, counts = await self._compute(
            sum_of_shards, parts, numbers, centroids[begin:end]
        )
        self._counts.sent("results", new, counts)
        shards = [shard.number for shard in self._part.shards]
        return new, counts, list(zip(shards, sums.objectives.tolist()))

    async def sums_of(self, number, begin, end):
        """Sums and counts of clusters begin .. end - 1, a row a shard."""
        job = self._job(number)
        sums, counts = await asyncio.shield(job.outputs)
        sums, counts = sums[:, begin:end], counts[:, begin:end]
        self._counts.sent("outputs", sums, counts)
        self._served(job)
        return sums, counts
