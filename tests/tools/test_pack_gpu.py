"""tools/pack_gpu.sh on a build made up for the test, with options that are
relative paths and paths with spaces."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "pack_gpu.sh"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "cc", "ldd", "strip", "xz"))),
    reason="needs bash, a C compiler, binutils and xz",
)


def pack(folder, *options):
    environment = {k: v for k, v in os.environ.items() if "FAISS_BITS" not in k}
    return subprocess.run(
        ["bash", str(SCRIPT), *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def compile_c(output, *arguments, source="int f(void) { return 0; }"):
    output.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["cc", "-x", "c", "-", "-o", str(output), *map(str, arguments)],
        input=source,
        text=True,
        check=True,
    )


def library(output, *libraries):
    """A shared library that needs others, found where they lie."""
    compile_c(output, "-shared", "-fPIC", f"-Wl,-soname,{output.name}",
              "-x", "none", "-Wl,--no-as-needed", *libraries,
              *(f"-Wl,-rpath,{other.parent}" for other in libraries))


def program(output, *libraries):
    compile_c(output, "-x", "none", "-Wl,--no-as-needed", *libraries,
              *(f"-Wl,-rpath,{other.parent}" for other in libraries),
              source="int main(void) { return 0; }")


@pytest.fixture
def folder(tmp_path):
    """A folder with a space in its name, that has builds in it."""
    root = tmp_path / "some where"
    build = root / "builds" / "gpu build"
    faiss = root / "faiss lib" / "libfaiss.so"
    library(faiss)
    bits = build / "faiss_bits" / "libfaiss_bits.so"
    library(bits, faiss)
    program(build / "tests" / "bin" / "test_one", bits)
    program(build / "benchs" / "bin" / "bench_one", bits)
    library(build / "benchs" / "bin" / "libbench_keys.so")
    program(root / "faiss tests" / "TestGpuOne", faiss)
    packages = build / "python"
    (packages / "faiss").mkdir(parents=True)
    (packages / "faiss" / "__init__.py").write_text("")
    (packages / "faiss_bits").mkdir()
    (packages / "faiss_bits" / "__init__.py").write_text("")
    source = root / "faiss source"
    for name in ("faiss/gpu/test/test_gpu.py", "tests/common_faiss_tests.py"):
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text("")
    (build / "CMakeCache.txt").write_text(
        f"FAISS_BITS_FAISS_TEST_SOURCE:PATH={source}\n"
    )
    (build / "env.sh").write_text(
        f"BITS_GPU=ON\nBITS_PYTHON='{sys.executable}'\n"
        f"export PYTHONPATH='{packages}'\n"
    )
    return root


def names(archive):
    with tarfile.open(archive) as files:
        return {name.partition("/")[2] for name in files.getnames()}


@pytest.mark.parametrize("absolute", [False, True])
def test_packs(folder, absolute):
    def path(text):
        return str(folder / text) if absolute else text

    result = pack(
        folder,
        "--build", path("builds/gpu build"),
        "--out", path("new folder/packed it.tar.xz"),
        "--faiss-tests", path("faiss tests"),
    )
    assert result.returncode == 0, result.stdout + result.stderr
    packed = names(folder / "new folder" / "packed it.tar.xz")
    assert {
        "run_gpu.sh", "gpu_benchs.sh", "gpu_tests.sh", "commit", "python_version",
        "tests/bin/test_one", "tests/faiss/TestGpuOne", "benchs/bin/bench_one",
        "benchs/bin/libbench_keys.so", "benchs/check.py",
        "tests/python/conftest.py", "python/faiss/__init__.py",
        "python/faiss_bits/__init__.py", "lib/libfaiss_bits.so",
        "lib/libfaiss.so", "tests/faiss_python/test_python.py",
        "tests/faiss_source/faiss/gpu/test/test_gpu.py",
        "tests/faiss_source/tests/common_faiss_tests.py",
    } <= packed


@pytest.mark.parametrize("cache", [None, "", "FAISS_BITS_FAISS_TEST_SOURCE:PATH=\n"])
def test_without_the_source_of_faiss(folder, cache):
    file = folder / "builds" / "gpu build" / "CMakeCache.txt"
    file.unlink()
    if cache is not None:
        file.write_text(cache)
    result = pack(folder, "--build", "builds/gpu build", "--out", "o.tar.xz")
    assert result.returncode == 0, result.stdout + result.stderr
    packed = names(folder / "o.tar.xz")
    assert "tests/python/conftest.py" in packed
    assert not any(name.startswith("tests/faiss_") for name in packed)


def test_build_beside_the_caller(folder):
    result = pack(folder / "builds", "--build", "gpu build", "--split", "1",
                  "--out", "packed.tar.xz")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (folder / "builds" / "packed.tar.xz.00").exists()
    assert not (folder / "builds" / "packed.tar.xz").exists()


def test_python_is_a_path_or_a_name(folder):
    link = folder / "my python"
    link.symlink_to(sys.executable)
    for option, found in (
        ("./my python", link),
        (str(link), link),
        ("bash", pathlib.Path(shutil.which("bash"))),
    ):
        result = pack(folder, "--build", "builds/gpu build", "--python", option,
                      "--out", "o.tar.xz", "--dry-run")
        assert result.returncode == 0, result.stderr
        assert f"python: {found}\n" in result.stdout
        assert f"build: {folder}/builds/gpu build\n" in result.stdout
        assert f"out: {folder}/o.tar.xz\n" in result.stdout
    assert not (folder / "o.tar.xz").exists()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--build", "no build"], ["some where/no build is no build"]),
        (["--build"], ["--build needs a value"]),
        (["--python", "./none"], ["--python ./none is no program"]),
        (["--faiss-tests", "builds"], ["some where/builds has no programs"]),
        (["--split", "1M"], ["--split 1M is no number"]),
    ],
)
def test_says_what_is_wrong_before_it_works(folder, options, words):
    result = pack(folder, "--build", "builds/gpu build", "--out", "o.tar.xz",
                  *options)
    assert result.returncode == 1 and not (folder / "o.tar.xz").exists()
    for word in words:
        assert word in result.stderr


def test_unknown_options_show_the_help(folder):
    result = pack(folder, "--biuld", "x")
    assert result.returncode == 2 and "--faiss-tests DIR" in result.stdout
