"""What the drop-in library exports, against what the supported libraries of
FAISS define and import. Read from the files (readelf); nothing is loaded."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import (
    INDEX, OTHER_WHEELS, SEARCHES, SYMBOLS, library_of, path_of, run,
)

#: FAISS's selections and searches by their mangled names, whether we replace
#: them or not; not the templates that libfaiss.so has of the same names.
FUNCTION = re.compile(
    r"_ZN5faiss3gpu\d+(?:(runBlockSelect|runBlockSelectPair|runWarpSelect|"
    r"runL2SelectMin|runIVFInterleavedScan|runIVFFlatScan)ER|(runL2Distance|runIPDistance)EPNS0_12GpuResourcesE"
    r"P11CUstream_stRNS0_6TensorI(f|6__half|13__nv_bfloat16)L)|"
    r"_ZN5faiss3gpu31(runPQScanMultiPassNoPrecomputed)IfE|"
    r"_ZN5faiss3gpu5IVFPQ22(runPQPrecomputedCodes_)E|"
    r"_ZNK5faiss3gpu8(GpuIndex6search)E"
)


def readelf(*arguments):
    if not shutil.which("readelf"):
        pytest.skip("no readelf (Debian: binutils)")
    return subprocess.run(
        ["readelf", "-W", *map(str, arguments)],
        capture_output=True, text=True, check=True,
    ).stdout


def exports(library):
    """Names of the symbols that a library defines for others."""
    names = set()
    for line in readelf("--dyn-syms", library).splitlines():
        words = line.split()
        if len(words) >= 8 and words[4] in ("GLOBAL", "WEAK") and words[6] != "UND":
            names.add(words[7].partition("@")[0])
    return names


def imports(library):
    """Names that a library looks up when it is loaded or when it first calls
    them, those that it defines itself included."""
    names = set()
    for line in readelf("-r", library).splitlines():
        words = line.split()
        if len(words) >= 5 and words[2].startswith("R_") and "+" not in words[4]:
            names.add(words[4].partition("@")[0])
    return names


def functions(names):
    return {name for name in names if FUNCTION.match(name)}


def short_names(names):
    """Searches of other than float vectors are FAISS's: with their type."""
    groups = [FUNCTION.match(name).groups("") for name in names]
    return sorted(
        (selection or search or products or member or "GpuIndex::search")
        + (f" {of}" if search and of != "f" else "")
        for selection, search, of, products, member, _ in groups
    )


@pytest.fixture(params=["build", "wheel", *OTHER_WHEELS])
def faiss(request):
    """libfaiss.so of this build, of the official wheel, and of others."""
    if request.param == "wheel":
        return library_of(request.getfixturevalue("wheel"))
    if request.param != "build":
        return library_of(request.param)
    path = path_of("FAISS_BITS_TEST_FAISS", "path of libfaiss.so")
    if path.suffix == ".a":
        pytest.skip(f"{path} is a static library")
    return path


def test_exports_the_replaced_functions_and_nothing_else(library):
    names = exports(library)
    assert names - functions(names) == {"faissBitsDropinInspect"}
    # Each for tensors that are indexed by int, and by idx_t; an index has none.
    assert short_names(names - {"faissBitsDropinInspect"}) == sorted(
        SYMBOLS + tuple(set(SYMBOLS) - set(INDEX))
    )


def test_exports_what_faiss_calls_and_no_more(library, faiss):
    ours = exports(library)
    called = functions(imports(faiss))
    assert short_names(called & ours) == sorted(SYMBOLS)
    # Searches of vectors of 16 bits; bfloat16 came after 1.7.3.
    others = [name.partition(" ") for name in short_names(called - ours)]
    assert {name for name, _, _ in others} == set(SEARCHES)
    assert {of for _, _, of in others} in (
        {"6__half"}, {"6__half", "13__nv_bfloat16"}
    )
    # Calls that stay inside FAISS: it has them, and nothing there looks for them.
    inside = functions(exports(faiss)) - called
    assert short_names(inside) == ["runWarpSelect"]
    assert not inside & ours


def test_faiss_defines_what_it_calls(faiss):
    """The functions behind ours, where a call goes that we cannot take."""
    assert functions(imports(faiss)) <= exports(faiss)
    assert "SYMBOLIC" not in readelf("-d", faiss), "it would keep its calls"


#: Sizes of the structures that products have FAISS's cuBLASLt fill.
FILL = """
import ctypes, glob, os, sys
for path in sys.argv[2:]:
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[1])
memory, size, wide = (ctypes.c_uint64 * 64)(), ctypes.c_size_t, ctypes.c_uint64
library.cublasLtGetVersion.restype = size
assert library.cublasLtGetVersion() >= 120000
def filled(words, function, *arguments):
    memory[:] = [0xA5A5A5A5A5A5A5A5] * 64
    assert getattr(library, function)(memory, size(8 * words), *arguments) == 0
    assert set(memory[words:]) == {0xA5A5A5A5A5A5A5A5}, function
filled(32, "cublasLtMatmulDescInit_internal", 68, 0)
filled(8, "cublasLtMatrixLayoutInit_internal", 0, wide(4), wide(4), wide(4))
filled(8, "cublasLtMatmulPreferenceInit_internal")
"""


def test_cublas_of_faiss_fills_our_structures(faiss):
    """FAISS's library leads to a cuBLASLt that knows what we pass."""
    if str(faiss.parents[1]) in OTHER_WHEELS:
        pytest.skip("no CUDA libraries in that folder")
    first = [
        path
        for name in ("cuda_runtime", "cublas", "curand")
        for path in sorted((faiss.parents[1] / "nvidia" / name).glob("lib/*.so*"))
        if "nvblas" not in path.name
    ]
    first.sort(key=lambda path: ("Lt" not in path.name, path.name))
    result = run(sys.executable, "-c", FILL, faiss, *first)
    assert result.returncode == 0, result.stderr
