"""What `pip install .` leaves in a virtual environment is the package whole,
and works from there."""

import os
from pathlib import Path

import pytest
from conftest import HAS_GPU, ROOT

SEARCH = """
import numpy as np
x = np.random.default_rng(0).random((3000, 24), dtype=np.float32)
index = faiss_bits.IndexFusedFlat(24)
index.add(x)
assert isinstance(index, faiss.IndexFlat)
assert (index.search(x, 1)[1][:, 0] == np.arange(3000)).all()
lists = faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(24), 24, 16)
lists.train(x)
lists.add(x)
lists.nprobe = 16
assert (lists.search(x, 1)[1][:, 0] == np.arange(3000)).all()
print("found", faiss_bits.__file__)
"""


def files(folder):
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
    }


def test_every_python_file_is_there(installed):
    wanted = files(Path(os.environ["FAISS_BITS_PIP_PACKAGE"]))
    assert {"__init__.py", "contrib/quickstart.py", "dropin.py"} <= wanted
    assert files(installed.package) == wanted


def test_libraries(installed):
    names = {path.name for path in installed.package.glob("*.so*")}
    wanted = {"_swigfaiss_bits.so", "libfaiss_bits.so"}
    if HAS_GPU:
        wanted |= {"libbits_kernels.so", "libfaiss_bits_dropin.so"}
    assert names == wanted


def test_nothing_beside_the_package(installed):
    listed = installed.pip("show", "-f", "faiss-bits").stdout
    listed = listed.partition("Files:\n")[2].split()
    assert listed
    homes = {name.split("/")[0] for name in listed}
    assert homes == {"faiss_bits", "faiss_bits-0.1.0.dist-info"}


@pytest.mark.parametrize(
    "imports",
    ["import faiss, faiss_bits", "import faiss_bits, faiss",
     "import faiss_bits; faiss_bits.knn; import faiss"],
)
def test_search(installed, imports):
    done = installed.run("-c", imports + SEARCH)
    assert done.returncode == 0, done.stdout
    assert done.stdout.split() == [
        "found", str(installed.package / "__init__.py")
    ]


def test_gpu_part(installed):
    done = installed.run("-c", "import faiss_bits; print(faiss_bits.__all__)")
    assert ("GpuIndexBitsFlatL2" in done.stdout) == HAS_GPU, done.stdout


def test_examples_of_the_readme(installed):
    done = installed.run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider",
        ROOT / "tests/python/test_readme.py",
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_quickstart(installed, tmp_path):
    """The main job on vectors of the user's own."""
    make = (
        "import numpy as np; "
        "np.save('own.npy', np.random.default_rng(0).random((2000, 20), 'f'))"
    )
    assert installed.run("-c", make).returncode == 0
    done = installed.run(
        "-m", "faiss_bits.contrib.quickstart", "--data", "own.npy", "-k", "5",
        "--out", tmp_path,
    )
    assert done.returncode == 0, done.stdout
    assert "own.npy" in done.stdout


def test_uninstall(installed):
    """Last in the file: the others need the package."""
    done = installed.pip("uninstall", "-y", "faiss-bits")
    assert done.returncode == 0, done.stdout
    left = [path for path in installed.site.glob("faiss_bits*")]
    assert left == [] or not any(
        path.is_file() and path.suffix != ".pyc"
        for folder in left
        for path in folder.rglob("*")
    )
