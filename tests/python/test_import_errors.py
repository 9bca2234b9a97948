"""Beside another FAISS than its own the package says, in one line, what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import faiss_bits

PACKAGE = Path(faiss_bits.__file__).parent
VERSION = faiss_bits._build_info.FAISS_VERSION
WHEEL = faiss_bits._build_info.FAISS_WHEEL


def message(program, folder):
    """The last line of an import that fails."""
    path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    path.append(str(PACKAGE.parent))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


USES = [
    "import faiss_bits; faiss_bits.knn",
    "from faiss_bits import IndexFusedFlat",
    "import faiss_bits; faiss_bits.arrays",
    "from faiss_bits import *",
]


@pytest.mark.parametrize("use", USES)
def test_no_faiss(tmp_path, use):
    line = message(f"import sys; sys.modules['faiss'] = None; {use}", tmp_path)
    assert line.startswith("ImportError: faiss_bits was built for FAISS " + VERSION)
    assert "this Python has no module faiss" in line
    assert "pip install" in line


def test_faiss_that_lacks_something_itself(tmp_path):
    (tmp_path / "faiss").mkdir()
    (tmp_path / "faiss" / "__init__.py").write_text("import no_such_module")
    assert message(USES[0], tmp_path) == (
        "ModuleNotFoundError: No module named 'no_such_module'"
    )


@pytest.mark.parametrize("use", USES)
def test_another_version(tmp_path, use):
    (tmp_path / "faiss").mkdir()
    (tmp_path / "faiss" / "__init__.py").write_text("__version__ = '0.9.9'")
    line = message(use, tmp_path)
    assert f"built for FAISS {VERSION}, but 'import faiss' found 0.9.9" in line
    assert str(tmp_path / "faiss") in line
    assert "pip install ." in line
    assert (f"pip install {WHEEL}," in line) == bool(WHEEL)


def test_headers_of_another_release(tmp_path):
    """Members of FAISS's classes lie elsewhere than its headers said."""
    line = message(
        "import faiss\n"
        "class Other(faiss.IndexIVFFlat):\n"
        "    nprobe = property(lambda self: 0, lambda self, value: None)\n"
        "faiss.IndexIVFFlat = Other\n" + USES[0],
        tmp_path,
    )
    assert "built with the headers of another release" in line
    assert f"than {VERSION} in " in line and "pip install ." in line


def test_a_broken_library(tmp_path):
    """The right version, with other symbols in its library."""
    (tmp_path / "faiss_bits").mkdir()
    for path in PACKAGE.iterdir():
        if path.name != "swigfaiss_bits.py":
            (tmp_path / "faiss_bits" / path.name).symlink_to(path)
    (tmp_path / "faiss_bits" / "swigfaiss_bits.py").write_text(
        "raise ImportError('undefined symbol: what')"
    )
    line = message(USES[0], tmp_path)
    assert "does not load beside" in line and "undefined symbol: what" in line
    assert "pip install ." in line
