"""Exact k-nearest-neighbour search for FAISS on NVIDIA GPUs.

Use it beside ``import faiss``: the index classes are subclasses of FAISS's
GPU flat indexes and go wherever those go.

    import faiss, faiss_bits

    res = faiss.StandardGpuResources()
    index = faiss_bits.GpuIndexBitsFlatL2(res, d)
    index.add(xb)
    D, I = index.search(xq, k)

    D, I = faiss_bits.knn(xq, xb, k)   # no index; on the CPU without a GPU

numpy arrays and torch tensors go in, arrays of the same kind come out. The
module imports everywhere; what needs a GPU says so when it is used.
"""

import faiss

from . import _build_info
from ._build_info import __version__

_GPU_NAMES = (
    "GpuIndexBitsFlat",
    "GpuIndexBitsFlatL2",
    "GpuIndexBitsFlatIP",
    "GpuIndexBitsFlatConfig",
)

__all__ = [
    "__version__",
    "backend",
    "best_flat_index",
    "get_num_gpus",
    "index_cpu_to_gpu",
    "knn",
    "select_k",
    *(_GPU_NAMES if _build_info.HAS_GPU else ()),
]


def _check_faiss():
    """The module only works on the FAISS it was compiled for."""
    if faiss.__version__ != _build_info.FAISS_VERSION:
        raise ImportError(
            f"faiss_bits was built for FAISS {_build_info.FAISS_VERSION}, but "
            f"'import faiss' found {faiss.__version__} in {faiss.__file__}; "
            "put the matching one first on PYTHONPATH, or build faiss_bits anew"
        )
    if _build_info.HAS_GPU and not hasattr(faiss, "GpuIndexFlat"):
        raise ImportError(
            "faiss_bits was built with its GPU part, but 'import faiss' found "
            f"a FAISS without one in {faiss.__file__}; put the one that it was "
            "built with first on PYTHONPATH"
        )


_check_faiss()

from . import swigfaiss_bits  # noqa: E402
from .class_wrappers import wrap_index  # noqa: E402
from .functions import (  # noqa: E402
    backend,
    best_flat_index,
    get_num_gpus,
    index_cpu_to_gpu,
    knn,
    select_k,
)

if not isinstance(best_flat_index(1), faiss.Index):
    raise ImportError(
        "faiss_bits and faiss were made by SWIG versions that do not share "
        f"their types; build faiss_bits with the SWIG that made {faiss.__file__}"
    )

if _build_info.HAS_GPU:
    from .swigfaiss_bits import (  # noqa: E402
        GpuIndexBitsFlat,
        GpuIndexBitsFlatConfig,
        GpuIndexBitsFlatIP,
        GpuIndexBitsFlatL2,
    )

    # Base before derived: a derived class looks at what its base has got.
    for _the_class in (GpuIndexBitsFlat, GpuIndexBitsFlatL2, GpuIndexBitsFlatIP):
        wrap_index(_the_class)


def __getattr__(name):
    if name in _GPU_NAMES:
        raise AttributeError(
            f"faiss_bits.{name}: this build holds the CPU part only. Build "
            "faiss_bits with a CUDA compiler and a FAISS that has its GPU part "
            "(FAISS_BITS_GPU=ON)"
        )
    raise AttributeError(f"module 'faiss_bits' has no attribute {name!r}")
