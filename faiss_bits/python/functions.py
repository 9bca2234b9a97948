"""The functions of the package: k-NN without an index and k-selection, and the
names of those of other modules."""

import faiss

from . import fused
from .arrays import (
    TENSOR_KEY_TYPES,
    address,
    are_ready,
    as_floats,
    as_matrix,
    as_rows,
    check_same_kind,
    dimension_of_both,
    in_one_type,
    key_types,
    neighbours,
    output,
    whole_number,
)
from .backends import backend, check_backend, choose, why_not_gpu  # noqa: F401
from .cloners import (  # noqa: F401
    best_flat_index,
    index_cpu_to_gpu,
    index_to_fused,
)
from .compiled import swigfaiss_bits
from .devices import (
    check_device,
    get_num_gpus,  # noqa: F401
    place_of,
    require_gpu,
    resources_of,
)
from .fused import cpu_plan, knn_subset  # noqa: F401
from .many import index_cpu_to_all_gpus, index_cpu_to_gpu_multiple  # noqa: F401
from .plans import (  # noqa: F401
    ID_TYPES,
    KEY_TYPES,
    select_algorithm,
    select_plan,
)
from .ranges import OUR_METRICS, radius_neighbors_graph, range_search  # noqa: F401
from .search_modes import mode_of
from .torch_interop import is_ready, is_tensor, type_name


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
    backend="auto",
    search_mode="certified",
):
    """Finds the k nearest vectors of every query, exactly, without an index.

    On the GPU this is faiss.knn_gpu on our kernels, on the CPU faiss.knn on our
    fused kernels. By default it runs on the GPU if there is one that has a
    kernel for the arguments, else on the CPU, so that whatever works without a
    GPU works with one; faiss_bits.backend(metric, dtype) tells beforehand. The
    GPU has every metric for float32 and float16.

    Parameters
    ----------
    xq : array_like
        Queries, shape (nq, d), float32, float16 (widened to float32 on the
        CPU) or float64 (on the CPU), by row or by column. numpy arrays, or
        torch tensors. Tensors on a GPU are used in place and searched there:
        what the GPU has no kernel for is an error, not a copy to the CPU
    xb : array_like
        Vectors, shape (nb, d), of the same kind as xq. Where the types differ,
        both are searched in the wider one, and whole numbers as float32
    k : int
        Number of neighbours, 1 or more; may exceed nb
    D : array_like, optional
        Array for the distances, shape (nq, k), float32 (float64 where xq or
        xb is float64)
    I : array_like, optional
        Array for the ids, shape (nq, k), int64 or int32
    metric : MetricType, optional
        faiss.METRIC_L2 (squared distances), METRIC_INNER_PRODUCT, METRIC_L1,
        METRIC_Linf, METRIC_Lp, METRIC_Canberra, METRIC_BrayCurtis,
        METRIC_JensenShannon, METRIC_Jaccard ("jaccard" where FAISS has it not) or
        "cosine". The largest first for the inner product, Jaccard and cosine; a
        zero vector has cosine 0 with all finite ones
    device : int, optional
        Number of the GPU, which is then the one that runs; -1: the thread's
        current one, or the tensors'
    vectorNorms : array_like, optional
        Squared L2 norms of xb, shape (nb,), if they are known; for the GPU, which
        then runs. Other numbers than float32 are converted
    res : faiss.StandardGpuResources, optional
        Resources of the GPU, which then runs; None uses one object that is made
        once. A call without `res` waits for other threads' calls without `res`
    metric_arg : float, optional
        p of METRIC_Lp, above 0: sum of |difference|^p, without the root
    choice : FusedChoice, optional
        What the CPU kernels are made to use, which then run; None: the cost
        model chooses
    backend : str, optional
        "auto": as said above. "gpu" or "cpu": there and nowhere else; an
        argument that it cannot take is an error that names it
    search_mode : str, optional
        "certified": canonical distances in every place, the same bits on every
        machine. "plain": those of float32 arithmetic, as FAISS. "fast": on a
        GPU of compute capability 9.0 more than 16 queries by L2 or inner
        product have the distances of 16-bit products, near but not exact;
        other searches are certified

    Returns
    -------
    D : array_like
        Distances, best first, shape (nq, k). Where there are fewer than k
        results, the largest number of its type (smallest for similarities)
    I : array_like
        Ids, shape (nq, k); -1 where there are fewer than k results

    Raises
    ------
    RuntimeError
        An argument asks for a GPU and none is usable; or the vectors do not fit
        into the memory of the GPU (backend="cpu" needs none of it)
    ValueError, TypeError
        An argument is wrong, or is none that the wanted backend takes

    Notes
    -----
    Equal distances come lower id first; a vector at a distance of NaN is no
    result. On the GPU work on torch tensors is ordered on torch's current
    stream: nothing waits.
    """
    check_backend(backend)
    ready = vectorNorms is None and are_ready(xq, xb, fused.TYPES)
    if ready:
        queries, vectors = xq, xb
        queries_by_row = vectors_by_row = True
    else:
        check_same_kind(xq, "xq", (xb, "xb"), (vectorNorms, "vectorNorms"))
        xq, xb = in_one_type(xq, xb)
        queries, queries_by_row = as_matrix(xq, "xq", fused.TYPES)
        vectors, vectors_by_row = as_matrix(xb, "xb", fused.TYPES)
    d, nq, nb = dimension_of_both(xq, xb), xq.shape[0], xb.shape[0]
    if queries.dtype != vectors.dtype:
        raise TypeError(f"xq is {queries.dtype}, xb is {vectors.dtype}")
    k = neighbours(k)
    mode = mode_of(search_mode)
    metric_arg = fused.check_metric_arg(metric, metric_arg)
    device = whole_number(device, "device", -1)
    kind = type_name(queries.dtype)
    why_not = why_not_gpu(metric, kind, nb, choice)
    if ready and why_not is None and backend != "cpu" and get_num_gpus() > 0:
        on_cpu = False
    else:
        gpu_argument = _gpu_argument(xq, device, vectorNorms, res)
        on_cpu = choose(backend, gpu_argument, why_not) == "cpu"
    if on_cpu:
        fused.check_metric(metric, metric_arg)
    if device >= 0:
        check_device(device)
        if is_tensor(xq) and xq.is_cuda and xq.device.index != device:
            raise ValueError(f"device = {device}, but xq is on {xq.device}")
    wide = "float64" if kind == "float64" else "float32"
    D = output(D, "D", queries, (nq, k), (wide,))
    I = output(I, "I", queries, (nq, k), ("int64", "int32"))
    if vectorNorms is not None:
        vectorNorms = as_floats(vectorNorms, "vectorNorms", nb)
    if on_cpu:
        return fused.knn(xq, xb, k, D, I, metric, metric_arg, choice, mode)
    _knn_on_gpu(
        res,
        device,
        (queries, queries_by_row, nq),
        (vectors, vectors_by_row, nb),
        d,
        (metric, metric_arg),
        vectorNorms,
        mode,
        D,
        I,
    )
    return D, I


def _knn_on_gpu(res, device, queries, vectors, d, metric, norms, mode, D, I):
    """Fills D and I. Matrices are (array, by row, number of rows), metric is
    (metric, metric_arg)."""
    queries, queries_by_row, nq = queries
    vectors, vectors_by_row, nb = vectors
    metric, metric_arg = metric
    ours = OUR_METRICS.get(metric, -1)
    device, stream = place_of(queries, device)
    with resources_of(res) as owner:
        swigfaiss_bits.knnOnStream(
            owner,
            device,
            stream,
            nq,
            nb,
            d,
            D.shape[1],
            address(queries),
            queries_by_row,
            address(vectors),
            vectors_by_row,
            type_name(queries.dtype) == "float16",
            0 if norms is None else address(norms),
            address(D),
            address(I),
            type_name(I.dtype) == "int64",
            metric if ours < 0 else 0,
            metric_arg,
            ours,
            mode,
        )


def _gpu_argument(xq, device, vectorNorms, res):
    """The argument of knn() that only a GPU has a use for, as text, or None."""
    if is_tensor(xq) and xq.is_cuda:
        # Its device as a number: torch takes its time to print one.
        return f"xq on cuda:{xq.get_device()} (xq.cpu(), xb.cpu() go to the CPU)"
    if device >= 0:
        return f"device = {device}"
    if vectorNorms is not None:
        return "vectorNorms"
    return None if res is None else "res"


# ---- k-selection --------------------------------------------------------------


def select_k(
    keys, k, largest=False, ids=None, res=None, algorithm="auto", sorted=True
):
    """Selects the k smallest (or largest) keys of every row, on a GPU.

    Parameters
    ----------
    keys : array_like
        Keys, shape (rows, cols), float32 or float16; a numpy array, or a torch
        tensor, which may also be bfloat16. Tensors on a GPU are used in place,
        and may have gaps between their rows (a slice of columns)
    k : int
        Number of keys to select, 1 or more; may exceed cols
    largest : bool, optional
        Select the largest keys instead
    ids : array_like, optional
        Ids of the keys, shape (rows, cols), int64 or int32; without them the
        id of a key is its column
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

    Raises
    ------
    RuntimeError
        There is no GPU, its memory is short, or the algorithm cannot take the keys
    ValueError, TypeError
        An argument is wrong; it is named with its value

    Notes
    -----
    Equal keys come lower column first, NaN comes last. There are no kernels of
    it for the CPU: without a GPU it raises RuntimeError.
    """
    require_gpu("select_k")
    if ids is None and is_ready(keys, TENSOR_KEY_TYPES):
        row_stride = keys.shape[1]
    else:
        check_same_kind(keys, "keys", (ids, "ids"))
        keys, row_stride = as_rows(keys, "keys", key_types(keys))
    rows, cols = keys.shape
    k = neighbours(k)
    id_type, id_stride = "int64", 0
    if ids is not None:
        ids, id_stride = as_rows(ids, "ids", ("int64", "int32"))
        if tuple(ids.shape) != (rows, cols):
            raise ValueError(
                f"ids has shape {tuple(ids.shape)}, expected {(rows, cols)}"
            )
        id_type = type_name(ids.dtype)
    kind = type_name(keys.dtype)
    out_keys = output(None, "keys", keys, (rows, k), (kind,))
    out_ids = output(None, "ids", keys, (rows, k), (id_type,))
    algorithm = select_algorithm(algorithm)
    device, stream = place_of(keys, -1)
    with resources_of(res) as owner:
        swigfaiss_bits.selectOnStream(
            owner,
            device,
            stream,
            rows,
            cols,
            k,
            bool(largest),
            bool(sorted),
            algorithm,
            KEY_TYPES[kind],
            address(keys),
            row_stride,
            ID_TYPES[id_type],
            0 if ids is None else address(ids),
            id_stride,
            address(out_keys),
            address(out_ids),
        )
    return out_keys, out_ids
