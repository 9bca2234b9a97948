"""What the drop-in library exports, against what the supported libraries of
FAISS define and import. Read from the files (readelf); nothing is loaded."""

import re
import shutil
import subprocess

import pytest
from conftest import SYMBOLS, path_of

#: FAISS's selection functions by their mangled names, whether we replace them
#: or not; not the templates that libfaiss.so has of the same names.
SELECTION = re.compile(
    r"_ZN5faiss3gpu\d+(runBlockSelect|runBlockSelectPair|runWarpSelect|"
    r"runL2SelectMin)ER"
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


def selection(names):
    return {name for name in names if SELECTION.match(name)}


def short_names(names):
    return sorted(SELECTION.match(name).group(1) for name in names)


@pytest.fixture(params=["build", "wheel"])
def faiss(request):
    """libfaiss.so of this build, and of the official wheel."""
    if request.param == "wheel":
        return request.getfixturevalue("wheel") / "faiss" / "libfaiss.so"
    path = path_of("FAISS_BITS_TEST_FAISS", "path of libfaiss.so")
    if path.suffix == ".a":
        pytest.skip(f"{path} is a static library")
    return path


def test_exports_the_replaced_functions_and_nothing_else(library):
    names = exports(library)
    assert names - selection(names) == {"faissBitsDropinInspect"}
    # Each for tensors that are indexed by int, and by idx_t.
    assert short_names(names - {"faissBitsDropinInspect"}) == sorted(2 * SYMBOLS)


def test_exports_what_faiss_calls_and_no_more(library, faiss):
    ours = exports(library)
    called = selection(imports(faiss))
    assert called <= ours, "FAISS calls a selection that we do not replace"
    assert short_names(called) == sorted(SYMBOLS)
    # Calls that stay inside FAISS: it has them, and nothing there looks for them.
    inside = selection(exports(faiss)) - called
    assert short_names(inside) == ["runWarpSelect"]
    assert not inside & ours


def test_faiss_defines_what_it_calls(faiss):
    """The functions behind ours, where a call goes that we cannot take."""
    assert selection(imports(faiss)) <= exports(faiss)
