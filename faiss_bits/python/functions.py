"""The functions of the package: k-NN without an index, k-selection, cloning."""

import contextlib
import threading

import faiss
import numpy as np

from . import _build_info, torch_interop
from .arrays import as_matrix, check_same_kind, output, pointer, whole_number
from .compiled import swigfaiss_bits
from .torch_interop import is_tensor


def get_num_gpus():
    """Number of GPUs that faiss_bits can use: 0 in a build of the CPU part
    alone, and 0 where there is no driver or no device. Never raises."""
    return swigfaiss_bits.get_num_gpus() if _build_info.HAS_GPU else 0


def backend():
    """What knn() computes on: "gpu", or "cpu" where there is no usable GPU."""
    return "gpu" if get_num_gpus() > 0 else "cpu"


def require_gpu(what):
    """Raises RuntimeError that says what is missing, unless there is a GPU."""
    if not _build_info.HAS_GPU:
        raise RuntimeError(
            f"{what} needs a GPU, but this build of faiss_bits holds the CPU "
            "part only. Build it with a CUDA compiler and a FAISS that has its "
            "GPU part (FAISS_BITS_GPU=ON)"
        )
    if get_num_gpus() == 0:
        raise RuntimeError(
            f"{what} needs a GPU, but none is usable here: "
            f"{swigfaiss_bits.gpu_problem()}"
        )


def best_flat_index(d, metric=faiss.METRIC_L2):
    """The fastest exact index of the CPU part for vectors of dimension d.

    Parameters
    ----------
    d : int
        Dimension of the vectors, 1 or more
    metric : MetricType, optional
        faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT

    Returns
    -------
    index : faiss.Index
        An empty index on the CPU; for now FAISS's own IndexFlat
    """
    return swigfaiss_bits.best_flat_index(whole_number(d, "d"), metric)


def index_cpu_to_gpu(res, device, index, options=None):
    """Copies a CPU index to a GPU, into an index of ours where we have one.

    Parameters
    ----------
    res : faiss.StandardGpuResources
        Resources of the GPU; kept alive by the result
    device : int
        Number of the GPU
    index : faiss.Index
        A faiss.IndexFlat (L2 or inner product) becomes a GpuIndexBitsFlat;
        other indexes become what faiss.index_cpu_to_gpu makes of them
    options : faiss.GpuClonerOptions, optional
        useFloat16 stores the vectors as float16

    Returns
    -------
    index : faiss.GpuIndex
    """
    require_gpu("index_cpu_to_gpu")
    _check_device(device)
    result = swigfaiss_bits.index_cpu_to_gpu(res, device, index, options)
    result.referenced_objects = [res]
    return result


# ---- resources and devices --------------------------------------------------


class _SharedResources:
    """One StandardGpuResources for all calls that bring none, made when it is
    first needed. Resources serve one thread at a time, hence the lock."""

    def __init__(self):
        self._lock = threading.RLock()
        self._resources = None

    @contextlib.contextmanager
    def __call__(self):
        with self._lock:
            if self._resources is None:
                self._resources = faiss.StandardGpuResources()
            yield self._resources


_shared_resources = _SharedResources()


def _resources(res):
    return _shared_resources() if res is None else contextlib.nullcontext(res)


@contextlib.contextmanager
def _current_device(device):
    """Makes `device` the calling thread's CUDA device inside the block."""
    before = swigfaiss_bits.current_device()
    swigfaiss_bits.set_current_device(device)
    try:
        yield
    finally:
        swigfaiss_bits.set_current_device(before)


def _check_device(device):
    if not 0 <= whole_number(device, "device") < get_num_gpus():
        raise ValueError(
            f"device = {device} is outside 0..{get_num_gpus() - 1}"
        )


@contextlib.contextmanager
def _placed(res, tensor, device):
    """Resources to use, with device and stream set for one call."""
    with _resources(res) as resources:
        if tensor is not None and tensor.is_cuda:
            with torch_interop.on_current_stream(resources, tensor.device):
                yield resources
        elif device >= 0:
            with _current_device(device):
                yield resources
        else:
            yield resources


# ---- what the searches share --------------------------------------------------

_MOST_K = 2**31 - 1


def _count(k):
    """k as an int; ValueError where the library could not take it, before
    results of that size are allocated."""
    k = whole_number(k, "k", 1)
    if k > _MOST_K:
        raise ValueError(f"k = {k} is more than {_MOST_K}")
    return k


# ---- k nearest neighbours -----------------------------------------------------


def knn(
    xq,
    xb,
    k,
    D=None,
    I=None,
    metric=faiss.METRIC_L2,
    device=-1,
    vectorNorms=None,
    res=None,
):
    """Finds the k nearest vectors of every query, exactly, without an index.

    With a GPU this is faiss.knn_gpu on our kernels; without one it is
    faiss.knn on the CPU (float16 is widened first). backend() says which.

    Parameters
    ----------
    xq : array_like
        Queries, shape (nq, d), float32 or float16, by row or by column.
        numpy arrays, or torch tensors (used in place if they are on a GPU)
    xb : array_like
        Vectors, shape (nb, d), of the same kind and type as xq
    k : int
        Number of neighbours, 1 or more; may exceed nb
    D : array_like, optional
        Array for the distances, shape (nq, k), float32
    I : array_like, optional
        Array for the ids, shape (nq, k), int64 or int32
    metric : MetricType, optional
        faiss.METRIC_L2 (squared distances) or faiss.METRIC_INNER_PRODUCT
    device : int, optional
        Number of the GPU; -1 is the thread's current one, or the tensors'
    vectorNorms : array_like, optional
        Squared L2 norms of xb, shape (nb,), float32, if they are known; only
        the GPU makes use of them
    res : faiss.StandardGpuResources, optional
        Resources of the GPU; None uses one object that is made once. A call
        without `res` waits for other threads' calls without `res`

    Returns
    -------
    D : array_like
        Distances, best first, shape (nq, k). Where there are fewer than k
        vectors, the largest float32 (smallest for the inner product)
    I : array_like
        Ids, shape (nq, k); -1 where there are fewer than k vectors

    On the GPU equal distances come lower id first, NaN comes last, and work on
    torch tensors is ordered on torch's current stream: nothing waits.
    """
    check_same_kind(xq, "xq", (xb, "xb"), (vectorNorms, "vectorNorms"))
    types = ("float32", "float16")
    shape = (tuple(np.shape(xq)), tuple(np.shape(xb)))
    queries, queries_by_row = as_matrix(xq, "xq", types)
    vectors, vectors_by_row = as_matrix(xb, "xb", types)
    (nq, d), (nb, d2) = shape
    if d != d2:
        raise ValueError(f"xq has dimension {d}, xb {d2}")
    if queries.dtype != vectors.dtype:
        raise TypeError(f"xq is {queries.dtype}, xb {vectors.dtype}")
    k = _count(k)
    if metric not in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
        raise ValueError(
            f"metric = {metric} is neither METRIC_L2 nor METRIC_INNER_PRODUCT"
        )
    device = whole_number(device, "device", -1)
    on_gpu = is_tensor(xq) and xq.is_cuda
    if device >= 0:
        require_gpu(f"device = {device}")
        _check_device(device)
        if on_gpu and xq.device.index != device:
            raise ValueError(f"device = {device}, but xq is on {xq.device}")
    if on_gpu or res is not None:
        require_gpu("knn with tensors on a GPU" if on_gpu else "res")
    D = output(D, "D", queries, (nq, k), ("float32",))
    I = output(I, "I", queries, (nq, k), ("int64", "int32"))
    if vectorNorms is not None:
        require_gpu("vectorNorms")
        vectorNorms = output(
            vectorNorms, "vectorNorms", queries, (nb,), ("float32",)
        )
    if backend() == "cpu":
        return _knn_cpu(xq, xb, k, D, I, metric)

    args = faiss.GpuDistanceParams()
    args.metric, args.k, args.dims = metric, k, d
    kind = str(queries.dtype).rpartition(".")[2]
    data_type = (
        faiss.DistanceDataType_F32
        if kind == "float32"
        else faiss.DistanceDataType_F16
    )
    args.vectors, args.vectorType = pointer(vectors), data_type
    args.vectorsRowMajor, args.numVectors = vectors_by_row, nb
    args.queries, args.queryType = pointer(queries), data_type
    args.queriesRowMajor, args.numQueries = queries_by_row, nq
    if vectorNorms is not None:
        args.vectorNorms = pointer(vectorNorms)
    args.outDistances, args.outIndices = pointer(D), pointer(I)
    args.outIndicesType = (
        faiss.IndicesDataType_I64
        if str(I.dtype).endswith("int64")
        else faiss.IndicesDataType_I32
    )
    with _placed(res, queries if is_tensor(queries) else None, device) as owner:
        swigfaiss_bits.bfKnnBits(owner, args)
    return D, I


def _knn_cpu(xq, xb, k, D, I, metric):
    arrays = [x.numpy() if is_tensor(x) else np.asarray(x) for x in (xq, xb)]
    xq, xb = (x.astype(np.float32, copy=False) for x in arrays)
    distances, ids = faiss.knn(xq, xb, k, metric=metric)
    # Where there is no k-th vector, releases of FAISS differ.
    worst = np.finfo(np.float32).max
    short = slice(len(xb), None)
    distances[:, short] = worst if metric == faiss.METRIC_L2 else -worst
    ids[:, short] = -1
    for out, values in ((D, distances), (I, ids)):
        (out.numpy() if is_tensor(out) else out)[...] = values
    return D, I


# ---- k-selection --------------------------------------------------------------


def _key_types(keys):
    """Types of keys that select_k takes. numpy has no bfloat16 of its own, and
    the types that other packages add to it are not those of FAISS's pointers."""
    if is_tensor(keys):
        return ("float32", "float16", "bfloat16")
    if getattr(getattr(keys, "dtype", None), "name", "") == "bfloat16":
        raise TypeError(
            "keys is a numpy array of bfloat16, which is taken as a torch "
            "tensor only; pass a tensor, or keys.astype(numpy.float32)"
        )
    return ("float32", "float16")


def _select_algorithm(name):
    """The number of an algorithm; ValueError that lists the names."""
    if not isinstance(name, str):
        raise TypeError(f"algorithm is a {type(name).__name__}, expected a name")
    try:
        return swigfaiss_bits.selectAlgorithmOf(name)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def select_k(
    keys, k, largest=False, ids=None, res=None, algorithm="auto", sorted=True
):
    """Selects the k smallest (or largest) keys of every row. Needs a GPU.

    Parameters
    ----------
    keys : array_like
        Keys, shape (rows, cols), float32 or float16; a numpy array, or a
        contiguous torch tensor (used in place if it is on a GPU), which may
        also be bfloat16
    k : int
        Number of keys to select, 1 or more; may exceed cols
    largest : bool, optional
        Select the largest keys instead
    ids : array_like, optional
        Ids of the keys, shape (rows, cols), int64 or int32, for k up to 2048;
        without them the id of a key is its column
    res : faiss.StandardGpuResources, optional
        As for knn()
    algorithm : str, optional
        "auto" (the fastest known for the shape) or the name of an algorithm,
        such as "bits" or "radix_select"; one that cannot take the problem is
        an error that says why
    sorted : bool, optional
        False leaves the k of a row in any order

    Returns
    -------
    keys : array_like
        The selected keys, best first (unless sorted is False), shape (rows, k),
        of the type of `keys`; the largest finite value (smallest for `largest`)
        where a row is short
    ids : array_like
        Their ids, shape (rows, k), of the type of `ids`, else int64; -1 where
        a row is short

    Equal keys come lower id first, NaN comes last.
    """
    require_gpu("select_k")
    check_same_kind(keys, "keys", (ids, "ids"))
    keys, by_row = as_matrix(keys, "keys", _key_types(keys))
    if not by_row:
        if is_tensor(keys):
            raise ValueError("keys is not contiguous; pass keys.contiguous()")
        keys = np.ascontiguousarray(keys.T)
    rows, cols = keys.shape
    k = _count(k)
    id_type = "int64"
    if ids is not None:
        if not is_tensor(ids):
            ids = np.ascontiguousarray(ids)
        id_type = str(ids.dtype).rpartition(".")[2]
        ids = output(ids, "ids", keys, (rows, cols), ("int64", "int32"))
    kind = str(keys.dtype).rpartition(".")[2]
    out_keys = output(None, "keys", keys, (rows, k), (kind,))
    out_ids = output(None, "ids", keys, (rows, k), (id_type,))
    params = swigfaiss_bits.GpuSelectParams()
    params.rows, params.cols, params.k = rows, cols, k
    params.largest = bool(largest)
    params.sorted = bool(sorted)
    params.algorithm = _select_algorithm(algorithm)
    params.keyType = {
        "float32": swigfaiss_bits.DataType_Float32,
        "float16": swigfaiss_bits.DataType_Float16,
        "bfloat16": swigfaiss_bits.DataType_BFloat16,
    }[kind]
    params.idType = (
        swigfaiss_bits.IdType_Int64
        if id_type == "int64"
        else swigfaiss_bits.IdType_Int32
    )
    params.keys = pointer(keys)
    if ids is not None:
        params.ids = pointer(ids)
    params.outKeys, params.outIds = pointer(out_keys), pointer(out_ids)
    with _placed(res, keys if is_tensor(keys) else None, -1) as owner:
        swigfaiss_bits.selectK(owner, params)
    return out_keys, out_ids
