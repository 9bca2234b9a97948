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
from .errors import JobAbortedError
from .host_clusters import Clusters
from .host_ranges import Ranges
from .merge import merge_neighbours, slice_bounds
from .parts import Part
from .worker_jobs import Counts, Job


class Host(Ranges, Clusters):
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

    async def close(self):
        """Frees the vectors, when what is computed is done."""
        for job in list(self._jobs.values()):
            job.fail(JobAbortedError(f"the index was closed (job {job.number})"))
        await self._compute(self._part.drop)
        self._pool.shutdown(wait=False)

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

    # ---- rows -----------------------------------------------------------------

    async def _rows(self, job, begin, end, table):
        """Vectors of rows begin .. end - 1, from whoever has them. `table` has
        (first row, end row, shard, rank) of the shards, by rows."""
        if begin == end:  # a batch of fewer rows than there are workers
            return np.empty((0, self._part.index.d), np.float32)
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
