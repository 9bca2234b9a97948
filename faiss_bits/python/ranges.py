"""Range searches: all vectors that are near enough, without an index.
range_methods.py has those of indexes."""

import sys

import faiss
import numpy as np

from . import fused
from .arrays import (
    address,
    as_matrix,
    check_same_kind,
    dimension_of_both,
    float32_number,
    in_one_type,
    int64_number,
    real_number,
    whole_number,
)
from .backends import check_backend, choose, why_not_gpu
from .compiled import swigfaiss_bits
from .devices import check_device, place_of, resources_of
from .torch_interop import is_tensor, type_name

# Metrics that have a name here, and in some releases of FAISS no number.
OUR_METRICS = {
    "cosine": swigfaiss_bits.Metric_Cosine,
    "jaccard": swigfaiss_bits.Metric_Jaccard,
}


def number(value, name):
    """`value` as a float that is not NaN."""
    value = real_number(value, name)
    if value != value:
        raise ValueError(f"{name} is NaN")
    return value


def limit(max_results):
    """max_results of a call for the library, where 0 is no limit."""
    if max_results is None:
        return 0
    return int64_number(max_results, "max_results", 1)


def tensors_of(call, n, device, dtype="float32", waits=False):
    """(lims, D, I) on a device. call(allocate, address) searches and fills the
    n + 1 limits at the address. With `waits` it runs on a stream of its own: the
    arrays are those that torch has no work for any more."""
    torch = sys.modules["torch"]
    parts = []

    def allocate(size):
        D = torch.empty(size, dtype=getattr(torch, dtype), device=device)
        I = torch.empty(size, dtype=torch.int64, device=device)
        parts.append((D, I))
        if waits:
            torch.cuda.current_stream(device).synchronize()
        return D.data_ptr(), I.data_ptr()

    lims = np.empty(n + 1, np.int64)
    call(allocate, address(lims))
    if not parts:
        allocate(0)
    D, I = (
        parts[0][i] if len(parts) == 1 else torch.cat([part[i] for part in parts])
        for i in (0, 1)
    )
    return torch.from_numpy(lims).to(device), D, I


def arrays_of(call, n, dtype):
    """The same in numpy arrays."""
    parts = [(np.empty(0, dtype), np.empty(0, np.int64))]

    def allocate(size):
        parts[0] = np.empty(size, dtype), np.empty(size, np.int64)
        return tuple(map(address, parts[0]))

    lims = np.empty(n + 1, np.int64)
    call(allocate, address(lims))
    return (lims, *parts[0])


def of_result(result, n):
    """Copies of what a faiss.RangeSearchResult of n queries holds."""
    lims = faiss.rev_swig_ptr(result.lims, n + 1).astype(np.int64)
    total = int(lims[-1])
    D = faiss.rev_swig_ptr(result.distances, total).copy()
    I = faiss.rev_swig_ptr(result.labels, total).copy()
    return lims, D, I


def range_search(
    xq,
    xb,
    radius,
    metric=faiss.METRIC_L2,
    metric_arg=0.0,
    device=-1,
    res=None,
    max_results=None,
    backend="auto",
):
    """Finds all vectors that are nearer than a radius to each query, exactly,
    without an index.

    Parameters
    ----------
    xq : array_like
        Queries, shape (nq, d), float32, float16 (widened to float32 on the CPU)
        or float64 (on the CPU). numpy arrays, or torch tensors. Tensors on a GPU
        are used in place and searched there
    xb : array_like
        Vectors, shape (nb, d), of the same kind as xq. Where the types differ,
        both are searched in the wider one, and whole numbers as float32
    radius : float
        Vectors at a distance below it are found, and for similarities those
        above it, as by FAISS; L2 distances are squared. Not NaN
    metric, metric_arg, device, res, backend
        As for knn()
    max_results : int, optional
        The most results of all queries together; more are an error that tells
        their number. None: any number

    Returns
    -------
    lims : array_like
        Where the results of each query begin, shape (nq + 1,), int64: those of
        query i are lims[i] to lims[i + 1] - 1
    D : array_like
        Distances, shape (lims[-1],), float32 (float64 where xq or xb is)
    I : array_like
        Ids, shape (lims[-1],), int64, ascending for each query

    Raises
    ------
    RuntimeError
        More than max_results; an argument asks for a GPU and none is usable; or
        memory is short
    ValueError, TypeError
        An argument is wrong, or is none that the wanted backend takes

    Notes
    -----
    A vector at a distance of NaN is no result. Distances are canonical: the same
    bits on every machine. Results of tensors on a GPU stay there; the call waits
    for the GPU, since the size of its results is not known before.
    """
    check_backend(backend)
    check_same_kind(xq, "xq", (xb, "xb"))
    xq, xb = in_one_type(xq, xb)
    queries, queries_by_row = as_matrix(xq, "xq", fused.TYPES)
    vectors, vectors_by_row = as_matrix(xb, "xb", fused.TYPES)
    d, nq, nb = dimension_of_both(xq, xb), xq.shape[0], xb.shape[0]
    if queries.dtype != vectors.dtype:
        raise TypeError(f"xq is {queries.dtype}, xb is {vectors.dtype}")
    radius = number(radius, "radius")
    if type_name(queries.dtype) != "float64":
        radius = float32_number(radius, "radius")
    most = limit(max_results)
    metric_arg = fused.check_metric_arg(metric, metric_arg)
    device = whole_number(device, "device", -1)
    on_gpu = is_tensor(xq) and xq.is_cuda
    wants_gpu = (
        f"xq on cuda:{xq.get_device()}"
        if on_gpu
        else f"device = {device}"
        if device >= 0
        else None
        if res is None
        else "res"
    )
    why_not = why_not_gpu(metric, type_name(queries.dtype), nb)
    if choose(backend, wants_gpu, why_not) == "cpu":
        return _on_cpu(xq, xb, radius, metric, metric_arg, most)
    if device >= 0:
        check_device(device)
        if on_gpu and xq.device.index != device:
            raise ValueError(f"device = {device}, but xq is on {xq.device}")
    if not queries_by_row:
        queries = queries.t().contiguous() if is_tensor(xq) else queries.T.copy()
    ours = OUR_METRICS.get(metric, -1)
    result = None if on_gpu else faiss.RangeSearchResult(nq)
    device, stream = place_of(queries, device)

    def call(allocate, lims):
        with resources_of(res) as owner:
            swigfaiss_bits.rangeOnStream(
                owner,
                device,
                stream,
                nq,
                nb,
                d,
                address(queries),
                address(vectors),
                vectors_by_row,
                type_name(queries.dtype) == "float16",
                metric if ours < 0 else 0,
                metric_arg,
                ours,
                radius,
                most,
                result,
                allocate,
                lims,
            )

    if on_gpu:
        return tensors_of(call, nq, xq.device)
    call(None, 0)
    return like(xq, of_result(result, nq))


def like(x, arrays):
    """numpy arrays, as tensors if x is one."""
    if not is_tensor(x):
        return arrays
    return tuple(map(sys.modules["torch"].from_numpy, arrays))


def _on_cpu(xq, xb, radius, metric, metric_arg, most):
    queries, vectors = fused.rows_of(xq, "xq"), fused.rows_of(xb, "xb")
    is_double = queries.dtype == np.float64
    problem = fused.problem_of(queries, vectors, metric, metric_arg)
    search = (
        swigfaiss_bits.rangeFusedDouble
        if is_double
        else swigfaiss_bits.rangeFusedFloat
    )
    lims, D, I = arrays_of(
        lambda allocate, lims: search(problem, radius, allocate, lims),
        len(queries),
        queries.dtype,
    )
    if most and lims[-1] > most:
        raise RuntimeError(
            f"max_results = {most}, but {lims[-1]} results are in range"
        )
    return like(xq, (lims, D, I))


# ---- neighbourhoods as scikit-learn has them --------------------------------------


_GRAPH_OPTIONS = ("device", "res", "max_results", "backend")


def radius_neighbors_graph(
    X, radius, xb=None, mode="connectivity", include_self=True, **options
):
    """The graph of all pairs within a radius, as scikit-learn's
    radius_neighbors_graph with the Euclidean metric.

    Parameters
    ----------
    X : array_like
        Points, shape (n, d), numpy; float32 or float64
    radius : float
        Pairs at a Euclidean distance (not squared) of at most it are in the
        graph; 0 or more
    xb : array_like, optional
        Points to look among, shape (nb, d); None: X
    mode : str, optional
        "connectivity": entries are 1. "distance": Euclidean distances
    include_self : bool, optional
        Whether a point is its own neighbour; False is for graphs without xb
    **options
        device, res, max_results and backend of range_search()

    Returns
    -------
    graph : scipy.sparse.csr_matrix
        Shape (n, nb), float64; row i has the neighbours of X[i], by ascending
        number. A distance of 0 is an entry

    Raises
    ------
    ImportError
        SciPy is missing
    RuntimeError
        As range_search()
    ValueError, TypeError
        An argument is wrong

    Notes
    -----
    A pair is in if the canonical squared distance, computed in float64 and for
    float32 points rounded once to float32, is at most the largest number of the
    points' type whose root in float64 is at most `radius`. scikit-learn squares the
    radius and rounds its distances elsewhere, so that it may decide otherwise for
    pairs whose distance is the radius but for roundings.
    """
    import scipy.sparse

    if mode not in ("connectivity", "distance"):
        raise ValueError(f"mode = {mode!r} is neither 'connectivity' nor 'distance'")
    for name in options:
        if name not in _GRAPH_OPTIONS:
            raise TypeError(
                f"{name} is none of the options {', '.join(_GRAPH_OPTIONS)}"
            )
    if xb is not None and not include_self:
        raise ValueError(
            f"include_self = {include_self!r}, but with xb no point is its own "
            "neighbour"
        )
    radius = number(radius, "radius")
    if radius < 0:
        raise ValueError(f"radius = {radius} is negative")
    X = fused.rows_of(X, "X")
    others = X if xb is None else fused.rows_of(xb, "xb")
    lims, D, I = range_search(
        X, others, squared_radius(radius, np.result_type(X, others)), **options
    )
    values = np.sqrt(D, dtype=np.float64) if mode == "distance" else np.ones(len(I))
    if xb is None and not include_self:
        rows = np.repeat(np.arange(len(X)), np.diff(lims))
        keep = I != rows
        I, values = I[keep], values[keep]
        counts = np.bincount(rows[keep], minlength=len(X))
        lims = np.concatenate(([0], np.cumsum(counts)))
    return scipy.sparse.csr_matrix((values, I, lims), (len(X), len(others)))


def squared_radius(radius, dtype):
    """What a strict squared distance of this type is below, exactly where its
    root in float64 is at most `radius`."""
    dtype = np.dtype(dtype).type
    infinity = dtype(np.inf)
    if radius == np.inf:
        return float(infinity)
    with np.errstate(over="ignore", under="ignore"):
        least = dtype(np.float64(radius) * np.float64(radius))
        least = min(least, np.finfo(dtype).max)
        # The product was rounded: some steps of it at most.
        while least > 0 and np.sqrt(np.float64(least)) > radius:
            least = np.nextafter(least, dtype(-1))
        above = np.nextafter(least, infinity)
        while above < infinity and np.sqrt(np.float64(above)) <= radius:
            above = np.nextafter(above, infinity)
    return float(above)
