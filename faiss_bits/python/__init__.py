"""Exact k-nearest-neighbour search for FAISS, on NVIDIA GPUs and on the CPU.

Use it beside ``import faiss``: the index classes are subclasses of FAISS's
flat indexes and go wherever those go.

    import faiss, faiss_bits

    res = faiss.StandardGpuResources()
    index = faiss_bits.GpuIndexBitsFlatL2(res, d)
    index.add(xb)
    D, I = index.search(xq, k)

    index = faiss_bits.IndexFusedFlat(d)   # on the CPU
    index = faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(d), d, nlist)

    D, I = faiss_bits.knn(xq, xb, k)   # no index; on the CPU without a GPU
    lims, D, I = faiss_bits.range_search(xq, xb, radius)

    index = faiss_bits.EditDistanceIndex(words)   # words by their letters
    lims, D, I = index.range_search(["a wrod"], 2)

    kmeans = faiss_bits.Kmeans(d, k)   # faiss.Kmeans, on a GPU if there is one
    kmeans.train(x)

numpy arrays and torch tensors go in, arrays of the same kind come out. The
module imports everywhere; what needs a GPU says so when it is used.

``import faiss_bits.dropin`` is another way in: it puts our k-selection under
the indexes that FAISS has itself (help(faiss_bits.dropin)).
"""

import importlib

from . import _build_info
from ._build_info import __version__

_FUNCTIONS = (
    "backend",
    "best_flat_index",
    "cpu_plan",
    "get_num_gpus",
    "index_cpu_to_all_gpus",
    "index_cpu_to_gpu",
    "index_cpu_to_gpu_multiple",
    "index_to_fused",
    "knn",
    "knn_subset",
    "radius_neighbors_graph",
    "range_search",
    "select_k",
    "select_plan",
)
_CPU_CLASSES = (
    "FusedChoice",
    "IndexFusedFlat",
    "IndexFusedIVFFlat",
    "IndexListOfClusters",
    "IndexSSS",
)
_PYTHON_CLASSES = {"EditDistanceIndex": "words", "Kmeans": "kmeans"}  # and their modules
_GPU_CLASSES = (
    "DeviceSelector",
    "GpuIndexBitsFlat",
    "GpuIndexBitsFlatL2",
    "GpuIndexBitsFlatIP",
    "GpuIndexBitsFlatConfig",
    "GpuIndexBitsIVFFlat",
    "GpuIndexBitsIVFPQ",
    "GpuIndexBitsIVFScalarQuantizer",
    "GpuIndexBitsListOfClusters",
    "GpuIndexBitsManyConfig",
    "GpuIndexBitsMetricSpaceShards",
    "GpuIndexBitsReplicas",
    "GpuIndexBitsSSS",
    "GpuIndexBitsShards",
    "SearchParametersBitsFlat",
    "SearchParametersBitsIVF",
)
_MODULES = (
    "arrays",
    "backends",
    "class_wrappers",
    "classes",
    "cloners",
    "compiled",
    "devices",
    "functions",
    "fused",
    "fused_wrappers",
    "kmeans",
    "metric_wrappers",
    "many",
    "many_wrappers",
    "plans",
    "range_methods",
    "ranges",
    "search_parameters",
    "swigfaiss_bits",
    "torch_interop",
    "torch_methods",
    "words",
)

#: False in a folder that holds the drop-in library and no more.
_IS_WHOLE = _build_info.FAISS_VERSION is not None

__all__ = [
    "__version__",
    *((*_FUNCTIONS, *_CPU_CLASSES, *_PYTHON_CLASSES) if _IS_WHOLE else ()),
    *(_GPU_CLASSES if _IS_WHOLE and _build_info.HAS_GPU else ()),
]


def __getattr__(name):
    """Loads the package, and FAISS with it, when a name is first used, so that
    `import faiss_bits.dropin` comes before FAISS. Raises ImportError if the
    FAISS that is found is not the one that faiss_bits was built for."""
    if name not in (
        *_FUNCTIONS,
        *_CPU_CLASSES,
        *_PYTHON_CLASSES,
        *_GPU_CLASSES,
        *_MODULES,
    ):
        raise AttributeError(f"module 'faiss_bits' has no attribute {name!r}")
    if not _IS_WHOLE:
        raise AttributeError(
            f"faiss_bits.{name}: this build holds the drop-in library only "
            "(faiss_bits.dropin). The whole project has the rest"
        )
    if name in _GPU_CLASSES and not _build_info.HAS_GPU:
        raise AttributeError(
            f"faiss_bits.{name}: this build holds the CPU part only. Build "
            "faiss_bits with a CUDA compiler and a FAISS that has its GPU part "
            "(FAISS_BITS_GPU=ON)"
        )
    # It looks at FAISS; the others take for granted that it did.
    importlib.import_module(".compiled", __name__)
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    module = _PYTHON_CLASSES.get(
        name, "functions" if name in _FUNCTIONS else "classes"
    )
    home = importlib.import_module(f".{module}", __name__)
    value = getattr(home, name)
    globals()[name] = value  # found there from now on
    return value


def __dir__():
    return sorted({*globals(), *__all__})
