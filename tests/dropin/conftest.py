"""What the tests of the drop-in library share: where things are, and running
programs beside it.

FAISS_BITS_TEST_DROPIN    the library
FAISS_BITS_TEST_PROGRAMS  the folder ways_in of the build (CMakeLists.txt)
FAISS_BITS_TEST_FAISS     the library of the FAISS that the build is made for
FAISS_BITS_TEST_WHEEL     a folder with the official faiss-gpu wheel and its
                          CUDA libraries (docs/design/dropin.md says how it is made)
FAISS_BITS_TEST_OTHER_WHEELS  folders with other GPU wheels of FAISS, unpacked
                          (pip install --no-deps --target), with : between
                          them; those that need no more than CUDA 12 are loaded
                          with the libraries of the official one
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SELECTIONS = ("runBlockSelect", "runBlockSelectPair", "runL2SelectMin")
SEARCHES = ("runL2Distance", "runIPDistance")
SCANS = ("runIVFInterleavedScan", "runIVFFlatScan")
PRODUCTS = ("runPQScanMultiPassNoPrecomputed", "runPQPrecomputedCodes_")
#: Not of one set of symbols: of both.
INDEX = ("GpuIndex::search",)
SYMBOLS = SELECTIONS + SEARCHES + SCANS + PRODUCTS + INDEX
#: What status() and the log say when all of them are.
ALL = "flat searches, scans of inverted lists and k-selection are replaced"
OTHER_WHEELS = [
    folder
    for folder in os.environ.get("FAISS_BITS_TEST_OTHER_WHEELS", "").split(":")
    if folder
]
#: The library; some wheels have the hash of its content in its name.
FAISS_FILE = re.compile(r"libfaiss(-[0-9a-f]{8})?\.so")

GOES_TO_FAISS = re.compile(
    r"([\w:]+) \((?:(?:float keys|lists), (32|64)-bit (?:ids|lengths)|results on "
    r"the host)\) goes to FAISS's own function: "
    r".*(cudaError|CUDA)"
)


def pytest_sessionfinish(session, exitstatus):
    """A run in which every test was skipped has not passed: it ends with 77,
    which ctest takes for skipped."""
    report = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = report.stats if report else {}
    # 5: the skipped file held no test that could be listed.
    if exitstatus in (0, 5) and stats.get("skipped") and not stats.get("passed"):
        session.exitstatus = 77


def path_of(variable, what):
    """The path in an environment variable; skips, by name, without one."""
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: {what}")
    path = pathlib.Path(value).resolve()
    assert path.exists(), f"{variable} = {value} does not exist"
    return path


@pytest.fixture(scope="session")
def library():
    return path_of("FAISS_BITS_TEST_DROPIN", "path of libfaiss_bits_dropin.so")


@pytest.fixture(scope="session")
def programs():
    return path_of("FAISS_BITS_TEST_PROGRAMS", "folder ways_in of the build")


@pytest.fixture(scope="session")
def wheel():
    return path_of(
        "FAISS_BITS_TEST_WHEEL", "folder with an unpacked faiss-gpu wheel"
    )


def library_of(folder):
    """FAISS's library in the folder of a wheel."""
    (path,) = (
        path
        for path in pathlib.Path(folder).resolve().glob("*/libfaiss*.so")
        if FAISS_FILE.fullmatch(path.name)
    )
    return path


def cuda_of(folder):
    """LD_LIBRARY_PATH for wheels that do not look for CUDA 12 themselves."""
    return ":".join(str(path) for path in sorted(folder.glob("nvidia/*/lib")))


@pytest.fixture
def package(tmp_path, library):
    """A folder with the package faiss_bits as far as the drop-in needs it."""
    folder = tmp_path / "site" / "faiss_bits"
    folder.mkdir(parents=True)
    for name in ("__init__.py", "dropin.py"):
        (folder / name).symlink_to(ROOT / "faiss_bits" / "python" / name)
    (folder / "_build_info.py").write_text(
        '__version__ = "0"\nFAISS_VERSION = "none"\nHAS_GPU = True\n'
    )
    (folder / library.name).symlink_to(library)
    return folder.parent


@pytest.fixture
def site(package, programs):
    """A folder with a module faiss on the fake library: site(name)."""

    def make(name):
        folder = package / name
        (folder / "faiss").mkdir(parents=True)
        (folder / "faiss" / "__init__.py").write_text(
            "import ctypes\n"
            f"library = ctypes.CDLL({str(programs / name / 'libfaiss.so')!r})\n"
            "library.fakeSearch.restype = ctypes.c_float\n"
            "class GpuIndexFlat: pass\n"
            "def search():\n"
            f"    return [library.fakeSearch(f, 2) for f in range({len(SYMBOLS)})]\n"
            "def search_of(n, d, q, k, row_major=True, gap=0):\n"
            "    library.fakeSearchOf.restype = ctypes.c_float\n"
            "    wide = ctypes.c_int64\n"
            "    return library.fakeSearchOf(\n"
            "        wide(n), wide(d), wide(q), k, row_major, wide(gap))\n"
            "def index_search(n=1, k=2):\n"
            "    library.fakeIndexSearch.restype = ctypes.c_float\n"
            "    return library.fakeIndexSearch(ctypes.c_int64(n), k)\n"
            "def products(search=0, parts=2, bits=8, centroids=2, k=2):\n"
            "    library.fakeProducts.restype = ctypes.c_float\n"
            "    return library.fakeProducts(search, parts, bits, centroids, k)\n"
            "def scan(wrong=0, quantizer=-1, residual=0, q=1, gap=0, nprobe=1,\n"
            "         metric=1, indices=3, k=2):\n"
            "    library.fakeScanOf.restype = ctypes.c_float\n"
            "    wide = ctypes.c_int64\n"
            "    return library.fakeScanOf(\n"
            "        wrong, quantizer, residual, wide(q), wide(gap), nprobe, metric,\n"
            "        indices, k)\n"
        )
        return (folder, package)

    return make


def run(*command, gpu=False, path=(), **variables):
    """Runs a program; returns it with stdout and stderr as text.

    Without gpu=True it sees no device, so that our kernels refuse and FAISS's
    own functions answer, whatever machine this is.
    """
    environment = dict(os.environ)
    for name in ("FAISS_BITS_DROPIN", "LD_PRELOAD", "PYTHONPATH"):
        environment.pop(name, None)
    if not gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    # The wheel's loader asks newer NumPys for the processor; any will do.
    environment["FAISS_OPT_LEVEL"] = "generic"
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    environment.update({name: str(value) for name, value in variables.items()})
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )


def python(code, **options):
    return run(sys.executable, "-c", code, **options)


def said(result):
    """The lines of the drop-in on stderr, without their beginning."""
    start = "faiss_bits dropin: "
    return [
        line[len(start):]
        for line in result.stderr.splitlines()
        if line.startswith(start)
    ]


def came_here(result, bits, names=SYMBOLS):
    """Each function came to us once, and we said why we could not take it."""
    found = [GOES_TO_FAISS.match(line) for line in said(result)]
    return all(found) and {match.groups()[:2] for match in found} == {
        (name, None if name in INDEX else str(bits)) for name in names
    } and len(found) == len(names)


def bound_to(messages, symbol):
    """Files to which FAISS's own calls of one of its functions were bound, from
    the loader's messages (LD_DEBUG=bindings)."""
    files = set()
    for line in messages.splitlines():
        _, _, text = line.partition("binding file ")
        start, _, name = text.partition(": normal symbol `")
        # Searches by their overload for float vectors.
        ours = symbol not in SEARCHES or "CUstream_stRNS0_6TensorIf" in name
        # A function, one of a template, or one of a class.
        owner, _, last = symbol.rpartition("::")
        owner = f"{len(owner)}{owner}" if owner else "(5IVFPQ)?"
        if re.search(f"3gpu{owner}{len(last)}{last}(E|IfE)", name) and ours:
            source, _, target = start.partition(" to ")
            if FAISS_FILE.fullmatch(os.path.basename(source.split()[0])):
                files.add(os.path.basename(target.split()[0]))
    return files
