"""Indexes of other indexes: on the CPU with our kernels, or on a GPU."""

import faiss

from . import classes  # noqa: F401 (of what is returned)
from .arrays import LEAST_INT, int_number
from .class_wrappers import check_index, refuse_lost_options
from .compiled import swigfaiss_bits
from .devices import check_device, require_gpu


def best_flat_index(d, metric=faiss.METRIC_L2):
    """The fastest exact index of the CPU part for vectors of dimension d.

    Parameters
    ----------
    d : int
        Dimension of the vectors, 1 or more
    metric : MetricType, optional
        One of FAISS's that knn() has; of METRIC_Lp set the index's metric_arg to p

    Returns
    -------
    index : IndexFusedFlat
        An empty index on the CPU, whether there is a GPU or not

    Raises
    ------
    RuntimeError
        d or metric is none that the CPU part has; it is named
    ValueError, TypeError
        d or metric is no whole number that C++ has room for
    """
    return swigfaiss_bits.best_flat_index(
        int_number(d, "d", LEAST_INT), int_number(metric, "metric", LEAST_INT)
    )


def index_to_fused(index):
    """A copy of an index that searches on the CPU with our indexes.

    Parameters
    ----------
    index : faiss.Index
        What faiss.read_index has read, for example. A faiss.IndexFlat becomes
        an IndexFusedFlat and an IndexIVFFlat an IndexFusedIVFFlat, also inside
        another index. Everything else is copied as faiss.clone_index does

    Returns
    -------
    index : faiss.Index

    Raises
    ------
    TypeError
        index is none of FAISS's
    RuntimeError
        FAISS cannot copy it
    """
    check_index(index)
    return swigfaiss_bits.index_to_fused(index)


def index_cpu_to_gpu(res, device, index, options=None, useBFloat16=False):
    """Copies a CPU index to a GPU, into an index of ours where we have one.

    Parameters
    ----------
    res : faiss.StandardGpuResources
        Resources of the GPU; kept alive by the result
    device : int
        Number of the GPU
    index : faiss.Index
        A faiss.IndexFlat of a metric that GpuIndexBitsFlat has becomes one, an
        IndexScalarQuantizer of float16 one with useFloat16, and an IndexIVFFlat,
        IndexIVFScalarQuantizer or IndexIVFPQ over a flat one becomes the class of
        ours, also inside an IndexIDMap, IndexPreTransform or IndexRefine (whose
        vectors to refine with stay on the CPU); others become what
        faiss.index_cpu_to_gpu makes of them
    options : faiss.GpuClonerOptions, optional
        useFloat16 stores the vectors as float16
    useBFloat16 : bool, optional
        Stores them as bfloat16, for which FAISS's options have no name; an
        error where the index does not become one of ours

    Returns
    -------
    index : faiss.GpuIndex

    Raises
    ------
    RuntimeError
        There is no GPU, its memory is short, or the index has no form there
    ValueError, TypeError
        An argument is wrong
    """
    refuse_lost_options(
        options, "options", "useBFloat16=True, or a GpuIndexBitsFlatConfig to the class"
    )
    require_gpu("index_cpu_to_gpu")
    check_device(device)
    check_index(index)
    result = swigfaiss_bits.index_cpu_to_gpu(
        res, device, index, options, bool(useBFloat16)
    )
    result.referenced_objects = [res]
    return result
