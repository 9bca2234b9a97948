"""DistributedIVF: inverted lists of vectors on many machines."""

import faiss
import numpy as np

from ..arrays import float32_array, neighbours, whole_number
from .clustering_step import sample_pieces
from .flat import BATCH, DistributedFlat


class DistributedIVF(DistributedFlat):
    """Inverted lists of vectors that many workers hold between them, in an
    IndexFusedIVFFlat each, or a GpuIndexBitsIVFFlat on a GPU.

    All have the same centroids, trained once, on one worker, with a sample of all
    vectors. Each query's lists are found once and searched on every worker, so
    that search() gives the results of one index with these centroids, bit by bit.

    Parameters
    ----------
    client, specs
        As for DistributedFlat
    nlist : int
        Number of lists, 1 or more
    metric : MetricType, optional
        faiss.METRIC_L2 or METRIC_INNER_PRODUCT (centroids of length 1 then, as
        in FAISS)
    nprobe : int, optional
        Lists that a search looks at, 1 or more; the attribute can be set later
    replicas : int, optional
        As for DistributedFlat
    centroids : array_like, optional
        Shape (nlist, d), in place of training
    niter, seed, max_points_per_centroid : int, optional
        Of training, as faiss_bits.Kmeans has them; the sample has up to nlist
        times max_points_per_centroid vectors, in the memory of one worker
    **kwargs
        workers, device, threads, progress, replace_timeout and timeout, as for
        DistributedFlat

    Attributes
    ----------
    nlist, nprobe, d, ntotal, metric_type
        As of FAISS's indexes
    centroids : numpy.ndarray
        Shape (nlist, d), float32

    Notes
    -----
    The sample is the same whatever the shards; on workers of one kind so are the
    centroids. A worker that is lost while they are trained ends the call.
    """

    def __init__(
        self, client, specs, nlist, metric=faiss.METRIC_L2, nprobe=1, replicas=1,
        *, centroids=None, niter=10, seed=1234, max_points_per_centroid=256,
        **kwargs,
    ):
        self.nlist = whole_number(nlist, "nlist", 1)
        self.nprobe = whole_number(nprobe, "nprobe", 1)
        if metric not in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
            raise ValueError(
                f"metric = {metric!r} is neither METRIC_L2 nor METRIC_INNER_PRODUCT"
            )
        if "metric_arg" in kwargs:
            raise TypeError("metric_arg is for METRIC_Lp, which lists do not have")
        self.centroids = centroids
        self._training = {
            "k": self.nlist,
            "niter": whole_number(niter, "niter", 1),
            "seed": whole_number(seed, "seed"),
            "max_points_per_centroid": whole_number(
                max_points_per_centroid, "max_points_per_centroid", 1
            ),
            "spherical": metric == faiss.METRIC_INNER_PRODUCT,
        }
        super().__init__(client, specs, metric, replicas, **kwargs)

    def _prepare(self, deadline):
        if self.centroids is None:
            self.centroids = self._trained(deadline)
        else:
            x = float32_array(self.centroids, "centroids")
            if x.shape != (self.nlist, self.d):
                raise ValueError(
                    f"centroids has shape {x.shape}, expected "
                    f"({self.nlist}, {self.d})"
                )
            self.centroids = x
        for group in self._groups:
            group.centroids = lambda handles, g=group: self._send_centroids(g, handles)

    def _trained(self, deadline):
        """The centroids, by the first worker, which gets the sample."""
        if self.ntotal < self.nlist:
            raise ValueError(
                f"nlist = {self.nlist}, but there are {self.ntotal} vectors"
            )
        group = self._groups[0]
        group.join(deadline)
        most = self.nlist * self._training["max_points_per_centroid"]
        rows = (self.ntotal, min(self.ntotal, most), self._training["seed"])
        pieces = [
            (group.rank_of(shard), shard, rows, first, last)
            for shard, first, last in sample_pieces(self._shards, rows, BATCH)
        ]
        first = group.handles[0]
        train = ("train", pieces, self.d, self._training)
        group.results([(first, train)], deadline)
        centroids = np.empty((self.nlist, self.d), np.float32)
        for begin in range(0, self.nlist, BATCH):
            piece = ("centroids_of", begin, begin + BATCH)
            centroids[begin : begin + BATCH] = group.results(
                [(first, piece)], deadline
            )[0]
        return centroids

    def _send_centroids(self, group, handles):
        for begin in range(0, self.nlist, BATCH):
            x = self.centroids[begin : begin + BATCH]
            group.call("take_centroids", begin, x, self.nlist, handles=handles)

    def search(self, xq, k, batch=BATCH, timeout=None):
        """Finds the k nearest vectors of every query in nprobe lists. Arguments
        and results are those of DistributedFlat.search(); a message of queries
        has 4 nprobe bytes more a query."""
        return self._search(xq, neighbours(k), batch, timeout, self._probes())

    def range_search(self, xq, radius, batch=BATCH, timeout=None):
        """Finds all vectors of nprobe lists with distance < radius (inner product
        > radius). Arguments and results are those of
        DistributedFlat.range_search(); distances are those of the workers' own
        indexes: canonical on a GPU, FAISS's on a CPU."""
        return self._range_search(xq, radius, batch, timeout, self._probes())

    def _probes(self):
        nprobe = whole_number(self.nprobe, "nprobe", 1)
        return {"nprobe": min(nprobe, self.nlist)}
