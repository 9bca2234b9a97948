"""The functions of the package: k-NN without an index, k-selection, cloning."""

import faiss
import numpy as np

from . import fused
from .arrays import as_matrix, check_same_kind, output, pointer, whole_number
from .compiled import swigfaiss_bits
from .devices import (
    backend,
    check_device,
    get_num_gpus,  # noqa: F401
    placed,
    require_gpu,
)
from .fused import cpu_plan, knn_subset  # noqa: F401
from .torch_interop import is_tensor


def best_flat_index(d, metric=faiss.METRIC_L2):
    """The fastest exact index of the CPU part for vectors of dimension d.

    Parameters
    ----------
    d : int
        Dimension of the vectors, 1 or more
    metric : MetricType, optional
        faiss.METRIC_L2, METRIC_INNER_PRODUCT, METRIC_L1, METRIC_Linf or
        METRIC_Lp (then set the index's metric_arg to p)

    Returns
    -------
    index : IndexFusedFlat
        An empty index on the CPU
    """
    return swigfaiss_bits.best_flat_index(whole_number(d, "d"), metric)


def index_to_fused(index):
    """A copy of an index that searches on the CPU with our flat index.

    Parameters
    ----------
    index : faiss.Index
        A faiss.IndexFlat becomes an IndexFusedFlat, also where it is a
        quantizer or the inner index of another; what faiss.read_index has read,
        for example. Everything else is copied as faiss.clone_index does

    Returns
    -------
    index : faiss.Index
    """
    return swigfaiss_bits.index_to_fused(index)


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
    check_device(device)
    result = swigfaiss_bits.index_cpu_to_gpu(res, device, index, options)
    result.referenced_objects = [res]
    return result


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
    metric_arg=0.0,
    choice=None,
):
    """Finds the k nearest vectors of every query, exactly, without an index.

    With a GPU this is faiss.knn_gpu on our kernels; without one it is faiss.knn
    on our fused CPU kernels. backend() says which.

    Parameters
    ----------
    xq : array_like
        Queries, shape (nq, d), float32 or float16, by row or by column; on the
        CPU float16 is widened to float32, and float64 is taken too. numpy
        arrays, or torch tensors (used in place if they are on a GPU)
    xb : array_like
        Vectors, shape (nb, d), of the same kind and type as xq
    k : int
        Number of neighbours, 1 or more; may exceed nb
    D : array_like, optional
        Array for the distances, shape (nq, k), float32 (float64 for float64)
    I : array_like, optional
        Array for the ids, shape (nq, k), int64 or int32
    metric : MetricType, optional
        faiss.METRIC_L2 (squared distances) or faiss.METRIC_INNER_PRODUCT. On
        the CPU also METRIC_L1, METRIC_Linf, METRIC_Lp, or "cosine" (the largest
        first, as for the inner product; a zero vector has cosine 0 with all)
    device : int, optional
        Number of the GPU; -1 is the thread's current one, or the tensors'
    vectorNorms : array_like, optional
        Squared L2 norms of xb, shape (nb,), float32, if they are known; only
        the GPU makes use of them
    res : faiss.StandardGpuResources, optional
        Resources of the GPU; None uses one object that is made once. A call
        without `res` waits for other threads' calls without `res`
    metric_arg : float, optional
        p of METRIC_Lp, above 0: sum of |difference|^p, without the root
    choice : FusedChoice, optional
        What the CPU kernels are made to use; None: the cost model chooses

    Returns
    -------
    D : array_like
        Distances, best first, shape (nq, k). Where there are fewer than k
        results, the largest number of its type (smallest for similarities)
    I : array_like
        Ids, shape (nq, k); -1 where there are fewer than k results

    Equal distances come lower id first; a vector at a distance of NaN is no
    result. On the GPU work on torch tensors is ordered on torch's current
    stream: nothing waits.
    """
    check_same_kind(xq, "xq", (xb, "xb"), (vectorNorms, "vectorNorms"))
    on_cpu = backend() == "cpu"
    types = fused.TYPES if on_cpu else ("float32", "float16")
    shape = (tuple(np.shape(xq)), tuple(np.shape(xb)))
    queries, queries_by_row = as_matrix(xq, "xq", types)
    vectors, vectors_by_row = as_matrix(xb, "xb", types)
    (nq, d), (nb, d2) = shape
    if d != d2:
        raise ValueError(f"xq has dimension {d}, xb {d2}")
    if queries.dtype != vectors.dtype:
        raise TypeError(f"xq is {queries.dtype}, xb is {vectors.dtype}")
    k = _count(k)
    fused.check_metric(metric, metric_arg)
    if not on_cpu:
        _check_for_gpu(metric, choice)
    device = whole_number(device, "device", -1)
    on_gpu = is_tensor(xq) and xq.is_cuda
    if device >= 0:
        require_gpu(f"device = {device}")
        check_device(device)
        if on_gpu and xq.device.index != device:
            raise ValueError(f"device = {device}, but xq is on {xq.device}")
    if on_gpu or res is not None:
        require_gpu("knn with tensors on a GPU" if on_gpu else "res")
    kind = str(queries.dtype).rpartition(".")[2]
    wide = "float64" if kind == "float64" else "float32"
    D = output(D, "D", queries, (nq, k), (wide,))
    I = output(I, "I", queries, (nq, k), ("int64", "int32"))
    if vectorNorms is not None:
        require_gpu("vectorNorms")
        vectorNorms = output(
            vectorNorms, "vectorNorms", queries, (nb,), ("float32",)
        )
    if on_cpu:
        return fused.knn(xq, xb, k, D, I, metric, metric_arg, choice)

    args = faiss.GpuDistanceParams()
    args.metric, args.k, args.dims = metric, k, d
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
    with placed(res, queries if is_tensor(queries) else None, device) as owner:
        swigfaiss_bits.bfKnnBits(owner, args)
    return D, I


def _check_for_gpu(metric, choice):
    """Raises for what the CPU kernels have and those of the GPU have not."""
    if metric not in (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT):
        raise ValueError(
            f"metric = {metric!r} is neither METRIC_L2 nor "
            "METRIC_INNER_PRODUCT, which is what there is on the GPU"
        )
    if choice is not None:
        raise ValueError(
            f"choice = {choice!r} is for the CPU, but this knn runs on the GPU"
        )


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
    with placed(res, keys if is_tensor(keys) else None, -1) as owner:
        swigfaiss_bits.selectK(owner, params)
    return out_keys, out_ids
