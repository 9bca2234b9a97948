"""import faiss_bits.dropin, and scripts run by it, with the fake FAISS of
test_ways_in.py."""

import sys

import pytest
from conftest import ALL, SYMBOLS, came_here, python, run, said

SEARCH = "import faiss; print(faiss.search())"
ANSWERS = f"{[42.0] * len(SYMBOLS)}\n"


def test_import_before_faiss(site):
    result = python("import faiss_bits.dropin\n" + SEARCH, path=site("ids64"))
    assert result.stdout == ANSWERS, result.stderr
    assert came_here(result, 64)


def test_import_brings_no_faiss(site):
    result = python(
        "import faiss_bits.dropin, sys\n"
        "print('faiss' in sys.modules, 'libfaiss.so' in open('/proc/self/maps').read())",
        path=site("ids64"),
    )
    assert (result.stdout, result.stderr) == ("False False\n", "")


def test_import_too_late(site, library):
    code = "import faiss\nimport faiss_bits.dropin\n" + SEARCH
    path = site("ids64")
    result = python(code, path=path)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ImportError: faiss_bits.dropin was imported too late")
    # Not so if it is there already, or not wanted.
    result = python(code, path=path, LD_PRELOAD=library)
    assert result.returncode == 0 and came_here(result, 64)
    result = python(code, path=path, FAISS_BITS_DROPIN="off")
    assert (result.stdout, result.stderr) == (ANSWERS, "")


def test_import_after_a_library_that_has_faiss(site, programs):
    result = python(
        f"import ctypes; ctypes.CDLL({str(programs / 'ids64' / 'libfaiss.so')!r})\n"
        "import faiss_bits.dropin",
        path=site("ids64"),
    )
    assert "imported too late" in result.stderr


@pytest.mark.parametrize(
    "name, words", [("unknown", "not known"), ("symbolic", "do not come here")]
)
def test_import_refuses(site, name, words):
    result = python("import faiss_bits.dropin\n" + SEARCH, path=site(name))
    assert result.stdout == ANSWERS, result.stderr
    (line,) = said(result)
    assert words in line


def test_faiss_that_shows_nothing_is_told(site):
    path = site("ids64")
    (path[0] / "faiss" / "__init__.py").write_text("class GpuIndexFlat: pass\n")
    result = python("import faiss_bits.dropin, faiss", path=path)
    (line,) = said(result)
    assert result.returncode == 0 and "not known" in line


def test_faiss_without_a_gpu_part_is_told(site):
    path = site("ids64")
    (path[0] / "faiss" / "__init__.py").write_text("")
    result = python("import faiss_bits.dropin, faiss", path=path)
    assert said(result) == [
        "no FAISS with a GPU part is loaded: nothing to replace"
    ]


def test_import_log_and_status(site):
    result = python(
        "import faiss_bits.dropin\nprint(faiss_bits.dropin.status())\n"
        "import faiss\nprint(faiss_bits.dropin.status())",
        path=site("ids32"),
        FAISS_BITS_DROPIN="log",
    )
    before, after = result.stdout.splitlines()
    assert "nothing to replace" in before
    assert after.endswith(f"32-bit ids: {ALL}")
    assert said(result) == [after]


def test_import_refuses_other_values(site):
    result = python(
        "import faiss_bits.dropin", path=site("ids64"), FAISS_BITS_DROPIN="yes"
    )
    assert "FAISS_BITS_DROPIN = 'yes' is none of" in result.stderr
    assert result.returncode == 1


def test_import_without_the_library(site):
    path = site("ids64")
    (path[1] / "faiss_bits" / "libfaiss_bits_dropin.so").unlink()
    result = python("import faiss_bits.dropin", path=path)
    assert "libfaiss_bits_dropin.so is missing" in result.stderr


def test_package_of_the_library_alone(site):
    """As faiss_bits/dropin/CMakeLists.txt makes it where it is built alone."""
    path = site("ids64")
    (path[1] / "faiss_bits" / "_build_info.py").write_text(
        '__version__ = "dropin"\nFAISS_VERSION = None\nHAS_GPU = False\n'
    )
    result = python("import faiss_bits.dropin\n" + SEARCH, path=path)
    assert result.stdout == ANSWERS, result.stderr
    result = python("import faiss_bits; faiss_bits.knn", path=path)
    assert "holds the drop-in library only" in result.stderr.splitlines()[-1]
    result = python("from faiss_bits import *; print(__version__)", path=path)
    assert result.stdout == "dropin\n"


SCRIPT = """
import sys
import faiss
print(__name__, sys.argv[1:], sys.path[0] == {folder!r}, faiss.search()[0])
import faiss_bits.dropin
sys.exit(3)
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_runs_a_script(site, tmp_path, as_module):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "searches.py").write_text(SCRIPT.format(folder=str(folder)))
    command = ["-m", "searches"] if as_module else [folder / "searches.py"]
    path = (*site("ids64"), *((folder,) if as_module else ()))
    result = python(
        "import sys, os, runpy\n"
        f"os.chdir({str(folder)!r})\n"
        f"sys.argv = ['x', *{[str(c) for c in command]!r}, 'a', '-b']\n"
        f"sys.path[0] = {str(folder)!r}\n"
        "runpy.run_module('faiss_bits.dropin', run_name='__main__')",
        path=path,
    )
    assert result.returncode == 3, result.stderr
    assert result.stdout == "__main__ ['a', '-b'] True 42.0\n"
    assert any("runBlockSelect (" in line for line in said(result))


def test_script_usage(site):
    path = site("ids64")
    result = run_module(path)
    assert result.returncode == 2 and "script.py" in result.stdout
    assert run_module(path, "-h").returncode == 0
    for wrong in (["-c", "pass"], ["-m"], ["none.py"]):
        result = run_module(path, *wrong)
        assert result.returncode == 2 and wrong[0] in result.stderr
        assert "Traceback" not in result.stderr


def run_module(path, *arguments):
    return run(sys.executable, "-m", "faiss_bits.dropin", *arguments, path=path)
