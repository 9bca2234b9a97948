"""Training and steps of k-means of a worker."""

import asyncio

import numpy as np

from .clustering_step import step_sums, sum_of_shards, trained, training_sample
from .worker_jobs import Job


class Clusters:
    """The part of Host that clusters: samples from the files, centroids of
    inverted lists, and the sums of a step, in slices of the clusters."""

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
