"""Python manners of the indexes for metric spaces, on the CPU and on the GPU."""

import os

from .class_wrappers import guard_constructor, wrap_index
from .range_methods import wrap_metric_range_search

# By the end of a class's name: what its options are, and what they mean.
_OPTIONS = {
    "ListOfClusters": (
        "bucketSize=64, seed=1",
        """bucketSize  int, vectors of a cluster beside its center
    seed        int, picks the first center""",
    ),
    "SSS": (
        "alpha=0.66, maxPivots=256",
        """alpha       float above 0: a vector becomes a pivot where it is alpha times
                the greatest distance or more from those before it
    maxPivots   int, no more pivots than these""",
    ),
}
_METRIC = (
    "metric      faiss.METRIC_L2 (squared; default), METRIC_L1 or METRIC_Linf"
)


def wrap_metric_index(the_class):
    """Wraps one of the classes on the CPU; base classes first."""
    wrap_index(the_class)
    _take_paths(the_class)
    name = the_class.__name__
    if name == "IndexMetricSpace":
        return
    options, meaning = _OPTIONS[name.replace("Index", "")]
    the_class.__init__.__doc__ = f"""{name}(d, metric=faiss.METRIC_L2, {options})
        An empty index for vectors of d >= 1 dimensions.

    {_METRIC}
    {meaning}

    Raises RuntimeError naming a bad argument.
    """


def wrap_gpu_metric_index(the_class):
    """Wraps one of the classes on the GPU; base classes first."""
    wrap_index(the_class)
    _take_paths(the_class)
    name = the_class.__name__
    if name == "GpuIndexBitsMetricSpace":
        wrap_metric_range_search(the_class)
        return
    kind = name.replace("GpuIndexBits", "")
    options, meaning = _OPTIONS[kind]
    guard_constructor(
        the_class,
        f"""{name}(res, d, metric=faiss.METRIC_L2, {options}[, config])
        An empty index for vectors of d >= 1 dimensions.
    {name}(res, cpu_index[, config])
        A copy of an Index{kind}.

    res         faiss.StandardGpuResources, or the getResources() of an index
    {_METRIC}
    {meaning}
    config      faiss.GpuIndexConfig: device

    Raises RuntimeError where there is no GPU, or naming a bad argument.
    """,
    )


def _take_paths(the_class):
    """write() and read() take paths of every kind: str, bytes, os.PathLike."""
    for name in ("write", "read"):
        if name in vars(the_class):
            setattr(the_class, name, _with_path(getattr(the_class, name)))


def _path(fname):
    """A path as SWIG takes it: text that is UTF-8, and that C++ reads to its end."""
    path = os.fsdecode(fname)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"fname = {path!r} is not UTF-8") from None
    if "\0" in path:
        raise ValueError(f"fname = {path!r} has a null character")
    return path


def _with_path(method):
    def replacement(self, fname):
        return method(self, _path(fname))

    replacement.__name__ = method.__name__
    replacement.__doc__ = method.__doc__
    return replacement
