"""Range searches of a worker: results of any number, in pieces."""

import asyncio

import numpy as np

from .merge import cut_range, empty_pairs, merge_ranges


class Ranges:
    """The part of Host that searches ranges. Others ask for the counts of their
    queries first, then for pieces of the results, and say when they have all."""

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
