"""Kmeans: faiss.Kmeans with our exact search behind it, on a GPU or the CPU."""

import sys

import faiss
import numpy as np

from . import classes
from .arrays import check_same_kind, pointer, whole_number
from .compiled import swigfaiss_bits
from .devices import check_device, get_num_gpus, placed, require_gpu
from .kmeans_checks import (
    check_sizes,
    check_weights,
    checked,
    checked_gpu,
    enough_weights,
    vectors,
)
from .search_modes import mode_of
from .torch_interop import is_tensor

_STATS = ("obj", "time", "time_search", "imbalance_factor", "nsplit")
_LEAST = {
    "niter": 0,
    "nredo": 1,
    "max_points_per_centroid": 1,
    "min_points_per_centroid": 0,
}
_USUAL_BLOCK = faiss.ClusteringParameters().decode_block_size


class Kmeans:
    """k-means clustering: faiss.Kmeans, with the whole of it on a GPU.

    On a GPU the vectors stay there for all iterations, the assignment is our
    exact search, and the centroids are updated there: the same bits every run.
    Initial centroids, samples and the clusters that are split where one is
    empty are those of FAISS for the same seed; sums are of float64. On the CPU
    it is FAISS's own clustering with our IndexFusedFlat.

    Parameters
    ----------
    d : int
        Dimension of the vectors
    k : int
        Number of clusters
    gpu : bool or int, optional
        Not given: on a GPU if there is one that takes the options, else on the
        CPU. True, 1 or -1: on a GPU, one; RuntimeError where there is none.
        False: on the CPU. More than one is an error
    device : int, optional
        Number of the GPU, which is then the one that runs; -1: the thread's
        current one, or the tensors'
    res : faiss.StandardGpuResources, optional
        Resources of the GPU, which then runs; as for knn()
    search_mode : str, optional
        Of the assignment: "certified" (exact) or "plain", as for knn()
    most_device_bytes : int, optional
        Most memory of the GPU for a copy of the vectors; beyond it they go
        there block by block in every iteration, with the same result. 0: what
        is free, less 2 GiB. Other numbers are an error with gpu=False
    **kwargs
        Fields of faiss.ClusteringParameters: niter (25), nredo (1), verbose,
        spherical (clusters by inner product, centroids of length 1),
        int_centroids, update_index (retrains the index after an iteration; a
        flat one has nothing to train), frozen_centroids,
        min_points_per_centroid, max_points_per_centroid, seed; in later FAISS
        also check_input_data_for_NaNs, use_faster_subsampling,
        early_stop_threshold. For the CPU alone: decode_block_size,
        init_method, use_super_kmeans. Others are an AttributeError, and
        progressive_dim_steps a ValueError

    Attributes
    ----------
    centroids : array_like
        After train(): shape (k, d), float32, of the kind of its `x`
    obj : numpy.ndarray
        The objective at every iteration
    iteration_stats : list of dict
        obj, time, time_search (seconds since the start), imbalance_factor and
        nsplit of every iteration
    index : faiss.Index
        A flat index of the centroids
    cp : faiss.ClusteringParameters
        The options; those that are set before train() count
    gpu : int
        1 if it runs on a GPU, 0 if not
    """

    def __init__(
        self,
        d,
        k,
        gpu=None,
        device=-1,
        res=None,
        search_mode="certified",
        most_device_bytes=0,
        **kwargs,
    ):
        self.d = whole_number(d, "d", 1)
        self.reset(whole_number(k, "k", 1))
        self._asked_gpu = checked_gpu(gpu)
        self._device = whole_number(device, "device", -1)
        self._res = res
        if mode_of(search_mode) == mode_of("fast"):
            raise ValueError(
                "search_mode = 'fast' is none of 'certified', 'plain'"
            )
        self._search_mode = search_mode
        self._most_device_bytes = whole_number(
            most_device_bytes, "most_device_bytes", 0
        )
        self.cp = faiss.ClusteringParameters()
        for name, value in kwargs.items():
            if name == "progressive_dim_steps":
                raise ValueError(
                    f"progressive_dim_steps = {value} is not supported; "
                    "faiss.Kmeans has it"
                )
            if not hasattr(self.cp, name):
                raise AttributeError(f"Kmeans has no option {name!r}")
            try:
                setattr(self.cp, name, value)
            except (TypeError, OverflowError):
                raise TypeError(
                    f"{name} = {value!r} is none of the values of its kind, such "
                    f"as {getattr(self.cp, name)!r}"
                ) from None
        self.gpu = int(self._runs_on_gpu(None))
        if self._device >= 0:
            check_device(self._device)
        self.index = None

    def reset(self, k=None):
        """Forgets what was trained, for another clustering, perhaps into
        another number of clusters."""
        if k is not None:
            self.k = whole_number(k, "k", 1)
        self.centroids = None
        self.obj = None
        self.iteration_stats = None

    def train(self, x, weights=None, init_centroids=None):
        """Clusters vectors; centroids, obj and iteration_stats have the result.

        Parameters
        ----------
        x : array_like
            Vectors, shape (n, d), n >= k; numpy (made float32, as in FAISS) or
            a contiguous float32 torch tensor, used in place on a GPU
        weights : array_like, optional
            Of each vector, shape (n,), of the same kind as x: 0 or more, and
            one of them above 0
        init_centroids : array_like, optional
            The first of the initial centroids, shape (up to k, d); the rest
            are vectors drawn by `seed`

        Returns
        -------
        objective : float
            Of the last iteration: the sum of the distances

        Raises
        ------
        RuntimeError
            x, weights or init_centroids has NaN or infinities, n < k, an option
            is out of range, memory is short, or there is no GPU for what asks
            for one
        ValueError, TypeError
            An argument is wrong, or is none that the CPU or the GPU takes

        Notes
        -----
        After an error the result of the last train() is still there.
        """
        self._check_options()
        x = vectors(x, "x", self.d)
        n = x.shape[0]
        check_same_kind(x, "x", (weights, "weights"))
        if weights is not None:
            weights = checked(weights, "weights", (n,))
            check_weights(weights)
        if init_centroids is not None:
            init_centroids = self._initial(init_centroids)
        if n < self.k:
            raise RuntimeError(f"n = {n} vectors are fewer than k = {self.k}")
        on_gpu = self._runs_on_gpu(x)
        train = self._train_on_gpu if on_gpu else self._train_on_cpu
        centroids, stats, index = train(x, weights, init_centroids)
        self.gpu, self.index = int(on_gpu), index
        self.centroids = _like(centroids, x)
        self.obj = np.array([s["obj"] for s in stats])
        self.iteration_stats = stats
        return self.obj[-1] if self.obj.size > 0 else 0.0

    def assign(self, x):
        """The nearest centroid of every vector.

        Parameters
        ----------
        x : array_like
            Vectors, shape (n, d), as for train()

        Returns
        -------
        D : array_like
            Distances, shape (n,)
        I : array_like
            Numbers of the centroids, shape (n,)

        Raises
        ------
        RuntimeError
            train() was not called
        ValueError, TypeError
            An argument is wrong
        """
        if self.centroids is None:
            raise RuntimeError("train() comes before assign()")
        x = vectors(x, "x", self.d)
        if not self.gpu:
            D, I = _search(self.index, self.centroids, x)
        else:
            tensor = x if is_tensor(x) else None
            with placed(self._res, tensor, self._device):
                D, I = _search(self.index, self.centroids, x)
        return D.reshape(-1), I.reshape(-1)

    def _runs_on_gpu(self, x):
        """Whether a GPU runs; raises where arguments contradict each other."""
        asks = None
        if is_tensor(x) and x.is_cuda:
            asks = f"x on {x.device}"
            if self._device not in (-1, x.device.index):
                raise ValueError(f"device = {self._device}, but x is on {x.device}")
        elif self._device >= 0:
            asks = f"device = {self._device}"
        elif self._res is not None:
            asks = "res"
        if self._asked_gpu is False:
            # No wish for a GPU: where a call may run on the CPU, that keeps
            # within the limit.
            if not asks and self._most_device_bytes:
                asks = f"most_device_bytes = {self._most_device_bytes}"
            if asks:
                raise ValueError(f"{asks} is for the GPU, but gpu = False")
            return False
        if self._asked_gpu:
            asks = f"gpu = {self._asked_gpu}"
        why_not = self._why_not_gpu()
        if asks:
            require_gpu(asks)
            if why_not:
                raise ValueError(f"{why_not}; {asks} asks for the GPU")
            return True
        return not why_not and get_num_gpus() > 0

    def _why_not_gpu(self):
        """The option that is for the CPU alone, as text, or None."""
        usual = {
            "decode_block_size": _USUAL_BLOCK,
            "init_method": 0,
            "use_super_kmeans": False,
        }
        for name, value in usual.items():
            given = getattr(self.cp, name, value)
            if given != value:
                return f"{name} = {given} is not supported on the GPU"
        return None

    def _check_options(self):
        """Those that FAISS does not survive, or takes in silence."""
        for name, least in _LEAST.items():
            given = getattr(self.cp, name)
            if given < least:
                raise RuntimeError(f"{name} = {given} is below {least}")

    def _initial(self, centroids):
        if is_tensor(centroids):
            centroids = centroids.detach().cpu().numpy()
        centroids = vectors(centroids, "init_centroids", self.d)
        if len(centroids) > self.k:
            raise ValueError(
                f"init_centroids has {len(centroids)} rows, more than "
                f"k = {self.k}"
            )
        if not np.isfinite(centroids).all():
            raise RuntimeError("init_centroids has NaN or infinities")
        return centroids

    def _train_on_gpu(self, x, weights, init_centroids):
        tensor = x if is_tensor(x) else None
        with placed(self._res, tensor, self._device) as res:
            device = swigfaiss_bits.current_device()
            run = swigfaiss_bits.GpuBitsClustering(
                res, self.d, self.k, self.cp, device
            )
            run.search_mode = mode_of(self._search_mode)
            run.most_device_bytes = self._most_device_bytes
            if init_centroids is not None:
                run.set_centroids(
                    len(init_centroids), faiss.swig_ptr(init_centroids)
                )
            run.train(
                x.shape[0],
                pointer(x),
                None if weights is None else pointer(weights),
            )
            centroids = np.empty((self.k, self.d), np.float32)
            run.get_centroids(faiss.swig_ptr(centroids))
            stats = np.empty((run.num_iterations(), len(_STATS)))
            run.get_iteration_stats(faiss.swig_ptr(stats))
            config = classes.GpuIndexBitsFlatConfig()
            config.device = device
            the_class = (
                classes.GpuIndexBitsFlatIP
                if self.cp.spherical
                else classes.GpuIndexBitsFlatL2
            )
            index = the_class(res, self.d, config)
            index.search_mode = self._search_mode
            index.add(centroids)
        rows = [dict(zip(_STATS, row)) for row in stats.tolist()]
        rows = [{**row, "nsplit": int(row["nsplit"])} for row in rows]
        return centroids, rows, index

    def _train_on_cpu(self, x, weights, init_centroids):
        metric = (
            faiss.METRIC_INNER_PRODUCT if self.cp.spherical else faiss.METRIC_L2
        )
        index = classes.IndexFusedFlat(self.d, metric)
        index.search_mode = self._search_mode
        run = faiss.Clustering(self.d, self.k, self.cp)
        if init_centroids is not None:
            faiss.copy_array_to_vector(init_centroids.ravel(), run.centroids)
        if is_tensor(x):
            x = x.numpy()
            weights = None if weights is None else weights.numpy()
        check_sizes(x, weights, self._search_mode == "plain" or self.cp.spherical)
        run.train(x, index, enough_weights(weights, self.k))
        centroids = faiss.vector_to_array(run.centroids)
        stats = [
            run.iteration_stats.at(i) for i in range(run.iteration_stats.size())
        ]
        rows = [{field: getattr(row, field) for field in _STATS} for row in stats]
        return centroids.reshape(self.k, self.d), rows, index


def _like(centroids, x):
    """numpy centroids as what x is, where x is."""
    if not is_tensor(x):
        return centroids
    return sys.modules["torch"].from_numpy(centroids).to(x.device)


def _search(index, centroids, x):
    """As FAISS: the centroids may have been set by hand."""
    index.reset()
    index.add(centroids)
    return index.search(x, 1)
