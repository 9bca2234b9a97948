"""Where a search without an index runs: on the GPU, or by the CPU kernels."""

import faiss
import numpy as np

from . import devices

_NAMES = ("auto", "gpu", "cpu")
# FAISS's number of a metric, or our name where it has none: Jaccard came with
# 1.7.4.
JACCARD = getattr(faiss, "METRIC_Jaccard", "jaccard")
_METRICS = (
    faiss.METRIC_L2,
    faiss.METRIC_INNER_PRODUCT,
    faiss.METRIC_L1,
    faiss.METRIC_Linf,
    faiss.METRIC_Lp,
    faiss.METRIC_Canberra,
    faiss.METRIC_BrayCurtis,
    faiss.METRIC_JensenShannon,
    JACCARD,
    "cosine",
)
_GPU_TYPES = ("float32", "float16")
_TYPES = (*_GPU_TYPES, "float64")
_MOST_GPU_VECTORS = 2**31 - 1


def backend(metric=faiss.METRIC_L2, dtype="float32"):
    """What knn() computes on, unless an argument of it says otherwise.

    Parameters
    ----------
    metric : MetricType, optional
        The metric of the search, as for knn()
    dtype : str, optional
        Type of the vectors, "float32", "float16" or "float64"

    Returns
    -------
    backend : str
        "gpu" if there is a usable GPU and it has a kernel for this metric and
        type, else "cpu"

    Raises
    ------
    ValueError
        There is no such metric, or no search of this type
    """
    if not is_metric(metric):
        raise ValueError(f"metric = {metric!r} is none that knn() has")
    return choose("auto", None, why_not_gpu(metric, _type_of(dtype)))


def is_metric(metric):
    """Whether GPU and CPU, which have the same ones, have the metric."""
    return isinstance(metric, (str, int, np.integer)) and metric in _METRICS


def _type_of(dtype):
    """The name of the type in which vectors of this type are searched."""
    try:
        kind = np.dtype(dtype)
        name = "float32" if kind.kind in "iu" else kind.name
    except TypeError:
        name = str(dtype).rpartition(".")[2]  # torch's
    if dtype is None or name not in _TYPES:
        raise ValueError(f"dtype = {dtype!r} is none of " + ", ".join(_TYPES))
    return name


def why_not_gpu(metric, dtype, vectors=0, choice=None):
    """The exception that names what no GPU kernel takes; None: it takes all."""
    if not is_metric(metric):
        return ValueError(
            f"metric = {metric!r} has no kernel on the GPU"
        )
    if dtype not in _GPU_TYPES:
        return TypeError(
            f"xq is {dtype}, which has no kernel on the GPU, only "
            f"{' and '.join(_GPU_TYPES)} have"
        )
    if vectors > _MOST_GPU_VECTORS:
        return ValueError(
            f"xb has {vectors} rows, more than {_MOST_GPU_VECTORS} on the GPU"
        )
    if choice is not None:
        return ValueError(f"choice = {choice!r} is for the CPU kernels")
    return None


def check_backend(name):
    if name not in _NAMES:
        raise ValueError(
            f"backend = {name!r} is none of {', '.join(map(repr, _NAMES))}"
        )


def choose(name, gpu_argument, why_not):
    """ "gpu" or "cpu", or an exception that names the argument in the way.

    name          knn()'s `backend`
    gpu_argument  an argument that has a meaning on the GPU alone, as text, or
                  None
    why_not       of why_not_gpu()
    """
    if name == "cpu":
        if gpu_argument:
            raise ValueError(
                f"{gpu_argument} is for the GPU, but backend = 'cpu'"
            )
        return "cpu"
    if name == "gpu" or gpu_argument:
        asked = gpu_argument or "backend = 'gpu'"
        devices.require_gpu(asked)
        if why_not:
            raise type(why_not)(f"{why_not}; {asked} asks for the GPU")
        return "gpu"
    return "cpu" if why_not or devices.get_num_gpus() == 0 else "gpu"
