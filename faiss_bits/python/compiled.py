"""The compiled module, on the FAISS that it was built for. Whatever calls it
imports it from here, so that it is never used unchecked. Its classes get their
Python manners in classes.py."""

from . import _build_info


def _what_to_do():
    if _build_info.FAISS_WHEEL:
        return (
            f"pip install {_build_info.FAISS_WHEEL}, or build faiss_bits for the "
            "FAISS that you have: pip install . in its source tree"
        )
    return (
        "put the one that it was built with first on PYTHONPATH, or build "
        "faiss_bits for the FAISS that you have: pip install . in its source tree"
    )


try:
    import faiss
except ModuleNotFoundError as error:
    if error.name != "faiss":
        raise
    raise ImportError(
        f"faiss_bits was built for FAISS {_build_info.FAISS_VERSION}, but this "
        f"Python has no module faiss: {_what_to_do()}"
    ) from error


def _check_faiss():
    """The module only works on the FAISS it was compiled for."""
    if faiss.__version__ != _build_info.FAISS_VERSION:
        raise ImportError(
            f"faiss_bits was built for FAISS {_build_info.FAISS_VERSION}, but "
            f"'import faiss' found {faiss.__version__} in {faiss.__file__}: "
            + _what_to_do()
        )
    if _build_info.HAS_GPU and not hasattr(faiss, "GpuIndexFlat"):
        raise ImportError(
            "faiss_bits was built with its GPU part, but 'import faiss' found "
            f"a FAISS without one in {faiss.__file__}: {_what_to_do()}"
        )


_check_faiss()

try:
    from . import swigfaiss_bits
except ImportError as error:  # the same version, with other libraries inside
    raise ImportError(
        f"faiss_bits does not load beside {faiss.__file__} ({error}): "
        + _what_to_do()
    ) from error

if not isinstance(
    swigfaiss_bits.best_flat_index(1, faiss.METRIC_L2), faiss.Index
):
    raise ImportError(
        "faiss_bits and faiss were made by SWIG versions that do not share "
        f"their types; build faiss_bits with the SWIG that made {faiss.__file__} "
        "(pip install . in its source tree finds it)"
    )



def _check_layout():
    """Releases of one series may differ in a member: 1.15.1 has one more in
    ClusteringParameters, and thereby in every IVF index, than 1.15.0."""
    probe = faiss.IndexIVFFlat(faiss.IndexFlatL2(1), 1, 1)
    probe.nprobe = 8731
    if swigfaiss_bits.nprobe_of(probe) != 8731:
        raise ImportError(
            "faiss_bits was built with the headers of another release than "
            f"{faiss.__version__} in {faiss.__file__}: pip install . in its source "
            "tree, with FAISS_BITS_FAISS_HEADERS of that release or unset"
        )


_check_layout()

# Where the two modules hold a copy of FAISS each, Ctrl-C is known in the other.
swigfaiss_bits.bridge_interrupts(faiss.InterruptCallback.check)
