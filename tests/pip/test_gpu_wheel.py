"""pip install . for the official faiss-gpu wheel, which has CUDA 12's libraries,
with the compiler of this build: our libraries bring their own CUDA runtime.

FAISS_BITS_TEST_WHEEL     a folder with the wheel and its CUDA libraries
                          (docs/design/dropin.md says how it is made)
FAISS_BITS_FAISS_HEADERS  a source tree of FAISS, of the wheel's release
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import HAS_GPU, fetch_tools, install, make_environment

NAMES = [
    "_swigfaiss_bits.so",
    "libbits_kernels.so",
    "libfaiss_bits.so",
    "libfaiss_bits_dropin.so",
]
#: Names of the CUDA runtime and of cuBLAS.
CUDA = re.compile(r"(cuda[A-Z]|__cuda|cublas)")


def given(variable):
    value = os.environ.get(variable, "")
    if value in ("", "off"):
        pytest.skip(f"{variable} is not set")
    return Path(value).resolve()


@pytest.fixture(scope="session")
def beside(tmp_path_factory):
    if not HAS_GPU:
        pytest.skip("this build has no GPU part")
    wheel = given("FAISS_BITS_TEST_WHEEL")
    headers = given("FAISS_BITS_FAISS_HEADERS")
    result = make_environment(tmp_path_factory.mktemp("venv"))
    # As if pip had put it there.
    (result.site / "faiss.pth").write_text(f"{wheel}\n")
    tools = fetch_tools(result, tmp_path_factory.mktemp("tools"), "swig>=4.4")
    # What the wheel itself depends on is beside it, whatever pip thinks.
    install(result, tools, "wheel", "--no-deps", faiss_dir="",
            FAISS_BITS_FAISS_HEADERS=str(headers))
    return result


def program(environment, code):
    # The wheel's loader asks newer NumPys for the processor; any will do.
    return environment.run("-c", code, FAISS_OPT_LEVEL="generic")


def symbols(library):
    """(defined, undefined) names in the table that the loader reads."""
    text = subprocess.run(
        ["nm", "-D", library], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    lines = [line.split() for line in text.splitlines()]
    pairs = [(line[-2], line[-1].partition("@")[0]) for line in lines]
    return (
        {name for kind, name in pairs if kind not in "Uvw"},
        {name for kind, name in pairs if kind in "Uvw"},
    )


@pytest.mark.parametrize("name", NAMES)
def test_cuda_stays_inside(beside, name):
    """Nobody finds our runtime, and we ask for none of the wheel's."""
    library = beside.package / name
    defined, undefined = symbols(library)
    assert not [s for s in defined | undefined if CUDA.match(s)]
    needed = subprocess.run(
        ["readelf", "-d", library], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert not re.search(r"NEEDED.*lib(cuda|cublas)", needed), needed


@pytest.mark.parametrize("name", NAMES[:3])
def test_runtimes_do_not_mix(beside, name):
    """A library calls its own copies of inline functions, which check CUDA calls
    of its own runtime, and hands no kernel to another one."""
    text = subprocess.run(
        ["readelf", "-rW", beside.package / name],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    jumps = [line.split() for line in text.splitlines() if "JUMP_SLO" in line]
    assert len(jumps) > 10
    # Offset, info, type, value here (0 where it is another library's), name.
    assert not [x for x in jumps if len(x) > 5 and int(x[3], 16) != 0]
    if name != "libbits_kernels.so":
        assert "canWaitForPrevious" not in text


def test_what_it_says_of_itself(beside):
    shown = beside.pip("show", "faiss-bits").stdout
    assert re.search(r"^Version: \S+\+faiss\.gpu\.1\.15\.", shown, re.M), shown
    assert re.search(r"^Requires: faiss-gpu, numpy$", shown, re.M), shown


SEARCH = """
import faiss, faiss_bits, numpy as np
x = np.random.default_rng(0).random((3000, 24), dtype=np.float32)
index = faiss_bits.IndexFusedFlat(24)
index.add(x)
assert isinstance(index, faiss.IndexFlat)
assert (index.search(x, 1)[1][:, 0] == np.arange(3000)).all()
assert (faiss_bits.knn(x, x, 1)[1][:, 0] == np.arange(3000)).all()
assert issubclass(faiss_bits.GpuIndexBitsFlatL2, faiss.GpuIndexFlat)
# Members of these lie where the headers of the wheel's release say.
lists = faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(24), 24, 16)
lists.train(x)
lists.add(x)
lists.nprobe = 16
assert (lists.search(x, 1)[1][:, 0] == np.arange(3000)).all()
"""


def test_search(beside):
    done = program(beside, SEARCH)
    assert done.returncode == 0, done.stdout


GPU = """
import faiss, faiss_bits, numpy as np
x = np.random.default_rng(0).random((20000, 24), dtype=np.float32)
if faiss_bits.get_num_gpus() == 0:
    try:
        faiss_bits.knn(x, x, 1, backend="gpu")
    except RuntimeError as error:
        assert "needs a GPU, but none is usable here" in str(error), error
        print("refused")
    raise SystemExit
res = faiss.StandardGpuResources()
# Candidates on tensor cores after a sample by cuBLASLt, and its products alone.
found = {}
for mode, k in (("certified", 10), ("plain", 3000)):
    index = faiss_bits.GpuIndexBitsFlatL2(res, 24)
    index.search_mode = mode
    index.add(x)
    D, I = index.search(x[:1000], k)
    assert (I[:, 0] == np.arange(1000)).all(), mode
    exact = ((x[:1000, None] - x[I[:, :10]]) ** 2).sum(2)
    assert np.allclose(D[:, :10], exact, atol=1e-4), mode
    found[mode] = I
lists = faiss_bits.GpuIndexBitsIVFFlat(res, 24, 64)
lists.train(x)
lists.add(x)
lists.nprobe = 64
assert (lists.search(x[:1000], 10)[1] == found["certified"]).all()
print("searched")
"""


def test_gpu(beside):
    done = program(beside, GPU)
    assert done.returncode == 0, done.stdout
    assert done.stdout.split()[-1:] in (["refused"], ["searched"])
