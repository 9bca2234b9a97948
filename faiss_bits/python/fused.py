"""Searches without an index on the CPU, by the fused kernels."""

import math

import faiss
import numpy as np

from .arrays import (
    as_matrix,
    check_columns,
    float32_number,
    id_list,
    int64_number,
    int_number,
    neighbours,
    output,
    pointer,
)
from .backends import JACCARD, is_metric
from .compiled import swigfaiss_bits
from .search_modes import mode_of
from .torch_interop import is_tensor

TYPES = ("float32", "float16", "float64")

_METRICS = {
    faiss.METRIC_L2: swigfaiss_bits.Metric_L2,
    faiss.METRIC_INNER_PRODUCT: swigfaiss_bits.Metric_InnerProduct,
    faiss.METRIC_L1: swigfaiss_bits.Metric_L1,
    faiss.METRIC_Linf: swigfaiss_bits.Metric_Linf,
    faiss.METRIC_Lp: swigfaiss_bits.Metric_Lp,
    faiss.METRIC_Canberra: swigfaiss_bits.Metric_Canberra,
    faiss.METRIC_BrayCurtis: swigfaiss_bits.Metric_BrayCurtis,
    faiss.METRIC_JensenShannon: swigfaiss_bits.Metric_JensenShannon,
    JACCARD: swigfaiss_bits.Metric_Jaccard,
    "cosine": swigfaiss_bits.Metric_Cosine,
}


def check_metric(metric, metric_arg):
    """The kernels' number of a metric and its checked argument."""
    if not is_metric(metric):
        raise ValueError(f"metric = {metric!r} is none that knn() has")
    return _METRICS[metric], check_metric_arg(metric, metric_arg)


def check_metric_arg(metric, metric_arg):
    """The argument of a metric as a float; ValueError where it has none."""
    metric_arg = float32_number(metric_arg, "metric_arg")
    if metric == faiss.METRIC_Lp:
        # What becomes 0 in float32, too.
        if not (np.float32(metric_arg) > 0 and math.isfinite(metric_arg)):
            raise ValueError(
                f"metric_arg = {metric_arg}: the p of METRIC_Lp must be a "
                "number above 0"
            )
    elif metric_arg != 0:
        raise ValueError(
            f"metric_arg = {metric_arg}, but only METRIC_Lp has an argument"
        )
    return metric_arg


def _numpy(x):
    """What is stored behind an array or tensor, as numpy sees it."""
    if not is_tensor(x):
        return x
    if x.is_cuda:
        raise ValueError(f"a tensor is on {x.device}, expected cpu")
    return x.detach().numpy()


def rows_of(x, name):
    """A matrix as C-contiguous float32, or float64 if that is what it is."""
    matrix, by_row = as_matrix(x, name, TYPES)
    matrix = _numpy(matrix)
    if not by_row:
        matrix = matrix.T
    wide = np.float64 if matrix.dtype == np.float64 else np.float32
    return np.ascontiguousarray(matrix, wide)


def _problem(d, is_double, k, metric, metric_arg, choice, mode=None):
    """A problem of the right type, with everything but its arrays."""
    number, argument = check_metric(metric, metric_arg)
    problem = (
        swigfaiss_bits.FusedKnnProblemDouble()
        if is_double
        else swigfaiss_bits.FusedKnnProblemFloat()
    )
    problem.metric, problem.d, problem.k = number, d, k
    if mode is not None:
        problem.mode = mode
    if metric == faiss.METRIC_Lp:
        problem.metricArg = argument
    if choice is not None:
        if not isinstance(choice, swigfaiss_bits.FusedChoice):
            raise TypeError(
                f"choice is a {type(choice).__name__}, expected a FusedChoice"
            )
        problem.choice = choice
    return problem


def problem_of(queries, vectors, metric, metric_arg):
    """A certified problem of checked arrays, but for its k and outputs."""
    problem = _problem(
        queries.shape[1],
        queries.dtype == np.float64,
        1,
        metric,
        metric_arg,
        None,
    )
    problem.queries, problem.numQueries = pointer(queries), len(queries)
    problem.vectors, problem.numVectors = pointer(vectors), len(vectors)
    return problem


def _run(problem, queries, nq, query_ids, vectors, n, vector_ids, D, I):
    """Searches and fills D and I, arrays or tensors of the right size."""
    problem.queries, problem.numQueries = pointer(queries), nq
    problem.vectors, problem.numVectors = pointer(vectors), n
    if query_ids is not None:
        problem.queryIds = pointer(query_ids)
    if vector_ids is not None:
        problem.vectorIds = pointer(vector_ids)
    distances, ids = _numpy(D), _numpy(I)
    found = ids if ids.dtype == np.int64 else np.empty(ids.shape, np.int64)
    problem.outDistances, problem.outIds = pointer(distances), pointer(found)
    swigfaiss_bits.bfKnnFused(problem)
    if found is not ids:
        ids[...] = found


def knn(xq, xb, k, D, I, metric, metric_arg, choice, mode):
    """knn() of functions.py, of arguments that it has checked."""
    queries, vectors = rows_of(xq, "xq"), rows_of(xb, "xb")
    is_double = queries.dtype == np.float64
    d = queries.shape[1]
    problem = _problem(d, is_double, k, metric, metric_arg, choice, mode)
    _run(
        problem, queries, len(queries), None, vectors, len(vectors), None, D, I
    )
    return D, I


def knn_subset(
    x,
    query_ids,
    reference_ids,
    k,
    metric=faiss.METRIC_L2,
    metric_arg=0.0,
    D=None,
    I=None,
    choice=None,
    search_mode="certified",
):
    """Finds, for some rows of a matrix, the k nearest among some of its rows.

    The step of all-nearest-neighbour solvers; nothing is gathered before. It
    runs on the CPU, with or without a GPU.

    Parameters
    ----------
    x : array_like
        Vectors, shape (n, d), numpy or torch on the CPU; float32 or float64,
        used in place if they lie by row, or float16 (widened at every call)
    query_ids : array_like or None
        Rows to search for, shape (nq,), whole numbers in any order, repeats
        allowed; None: all
    reference_ids : array_like or None
        Rows to search in, each once; None: all
    k : int
        Number of neighbours, 1 or more
    metric, metric_arg, choice, search_mode
        As for knn() on the CPU
    D : array_like, optional
        Array for the distances, shape (nq, k), float32 (float64 for float64)
    I : array_like, optional
        Array for the ids, shape (nq, k), int64 or int32

    Returns
    -------
    D : array_like
        Distances, best first, shape (nq, k)
    I : array_like
        Rows of x; -1 where there are fewer than k. A row that is in both lists
        finds itself

    Raises
    ------
    ValueError, TypeError
        An argument is wrong, an id is outside 0..n - 1, or x is on a GPU
    """
    vectors = rows_of(x, "x")
    check_columns(vectors, "x")
    n, d = vectors.shape
    queries, nq = id_list(query_ids, "query_ids", n)
    references, nr = id_list(reference_ids, "reference_ids", n)
    k = neighbours(k)
    is_double = vectors.dtype == np.float64
    mode = mode_of(search_mode)
    problem = _problem(d, is_double, k, metric, metric_arg, choice, mode)
    D = output(D, "D", x, (nq, k), ("float64" if is_double else "float32",))
    I = output(I, "I", x, (nq, k), ("int64", "int32"))
    _run(problem, vectors, nq, queries, vectors, nr, references, D, I)
    return D, I


def cpu_plan(
    nq,
    nb,
    d,
    k,
    metric=faiss.METRIC_L2,
    metric_arg=0.0,
    dtype="float32",
    choice=None,
):
    """What a search of this size does on the CPU, as a line of text.

    Parameters
    ----------
    nq, nb, d, k : int
        Numbers of queries, vectors, dimensions and neighbours
    metric, metric_arg, choice
        As for knn() on the CPU
    dtype : str, optional
        Type of the arithmetic, "float32" or "float64"

    Returns
    -------
    plan : str
        Variant, blocks, instruction set, threads, and what the cost model
        predicts; its constants are measured at the first call

    Raises
    ------
    ValueError, TypeError
        An argument is wrong
    """
    try:
        kind = np.dtype(dtype).name
    except TypeError:
        kind = None
    if kind not in ("float32", "float64"):
        raise ValueError(f"dtype = {dtype!r} is not float32 or float64")
    problem = _problem(
        int_number(d, "d", 1),
        kind == "float64",
        neighbours(k),
        metric,
        metric_arg,
        choice,
    )
    problem.numQueries = int64_number(nq, "nq", 0)
    problem.numVectors = int64_number(nb, "nb", 0)
    return swigfaiss_bits.fusedPlanText(problem)
