"""tools/pip: which FAISS pip builds for, what a wheel says of itself, and what
CMake answers to a FAISS that does not fit. The packages are made up here."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "pip"))

import metadata  # noqa: E402
import python_faiss  # noqa: E402


def make_package(site, wheel="", version="1.15.1", runtime=5, gpu=False, openmp=1):
    """A folder `faiss` as a wheel, or as another build, leaves it."""
    package = site / "faiss"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "swigfaiss.py").write_text(
        "class GpuIndexFlat(GpuIndex):\n" if gpu else "class IndexFlat(Index):\n"
    )
    (package / "_swigfaiss.abi3.so").write_bytes(
        b"\0\1swig_runtime_data%d\0" % runtime
    )
    if wheel:
        needed = b"\0libcudart.so.12\0" if gpu else b"\0libgomp.so.1\0"
        (package / "libfaiss.so").write_bytes(needed)
        notes = site / f"{wheel.replace('-', '_')}-{version}.dist-info"
        notes.mkdir()
        (notes / "RECORD").write_text("faiss/__init__.py,sha256=x,0\n")
        (notes / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {wheel}\nVersion: {version}\n\n"
            "Version: no field\n"
        )
        libraries = site / f"{wheel.replace('-', '_')}.libs"
        libraries.mkdir()
        for number in range(openmp):
            (libraries / f"libgomp-{number}.so.1").write_bytes(b"")
    return package


def environ(package):
    return {"FAISS_BITS_FAISS_PACKAGE": str(package)}


@pytest.mark.parametrize("wheel, gpu", [("faiss-cpu", False), ("faiss-gpu", True)])
def test_a_wheel(tmp_path, wheel, gpu):
    package = make_package(tmp_path, wheel, gpu=gpu)
    found = python_faiss.find(environ(package))
    assert found.is_wheel and found.folder == str(package)
    assert (found.distribution, found.version) == (wheel, "1.15.1")
    assert found.library == str(package / "libfaiss.so")
    assert found.openmp.endswith(".libs/libgomp-0.so.1")
    assert (found.swig_runtime, found.has_gpu) == ("5", gpu)
    assert found.cuda == ("12" if gpu else "")


def test_two_openmp_runtimes_are_not_chosen_from(tmp_path):
    package = make_package(tmp_path, "faiss-cpu", openmp=2)
    assert python_faiss.find(environ(package)).openmp == ""


def test_a_build_that_is_no_wheel(tmp_path):
    """A library beside the module is that of an own build, without notes."""
    package = make_package(tmp_path, runtime=4)
    (package / "libfaiss.so").write_bytes(b"")
    found = python_faiss.find(environ(package))
    assert not found.is_wheel and found.library == found.version == ""
    assert found.swig_runtime == "4"


def test_a_site_hook_that_prints(tmp_path):
    package = make_package(tmp_path / "site", "faiss-cpu")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho hello\necho {package}/__init__.py\n")
    python.chmod(0o755)
    assert python_faiss.find({}, python=str(python)).folder == str(package)


def test_off():
    assert python_faiss.find({"FAISS_BITS_FAISS_PACKAGE": "off"}) is None


def test_no_package(tmp_path):
    with pytest.raises(ValueError, match="FAISS_BITS_FAISS_PACKAGE = .*nothing"):
        python_faiss.find(environ(tmp_path / "nothing"))


@pytest.mark.parametrize("there", [True, False])
def test_the_python_that_runs_pip_is_asked(tmp_path, there):
    """Whatever pip has put on PYTHONPATH to hide what is installed."""
    hiding = tmp_path / "hiding"
    make_package(hiding)
    site = tmp_path / "site"
    if there:
        make_package(site, "faiss-cpu")
    python = tmp_path / "python"
    # Python sees `site` as what is installed, and nothing else.
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -S -c "
        f"\"import sys; sys.path[:0] = ['{site}']; sys.argv = sys.argv[2:]; "
        f'exec(sys.argv[0])" "$@"\n'
    )
    python.chmod(0o755)
    given = {"PYTHONPATH": str(hiding), "PATH": os.environ["PATH"]}
    found = python_faiss.find(given, python=str(python))
    assert (found.folder if found else None) == (
        str(site / "faiss") if there else None
    )


@pytest.mark.parametrize(
    "wheel, runtime, version, needs, swig",
    [
        ("faiss-cpu", 5, "+faiss.cpu.1.15.1", ["faiss-cpu==1.15.1"], ">=4.4"),
        ("faiss-gpu", 5, "+faiss.gpu.1.15.1", ["faiss-gpu==1.15.1"], ">=4.4"),
        ("", 4, "", [], ">=4.0.2,<4.4"),
        ("", 6, "", [], ">=4.0.2"),
        (None, 0, "", [], ">=4.0.2"),
    ],
)
def test_metadata(tmp_path, monkeypatch, wheel, runtime, version, needs, swig):
    package = "off"
    if wheel is not None:
        package = make_package(tmp_path, wheel, runtime=runtime)
    monkeypatch.setenv("FAISS_BITS_FAISS_PACKAGE", str(package))
    said = metadata.dynamic_metadata({}, {})
    text = (ROOT / "CMakeLists.txt").read_text()
    assert f"  VERSION {said['version'].partition('+')[0]}\n" in text
    assert said["version"].endswith(version or "0")
    assert said["dependencies"] == ["numpy", *needs]
    assert metadata.get_requires_for_dynamic_metadata({}) == ["swig" + swig]


# ---- CMake ------------------------------------------------------------------


def configure(folder, package, **more):
    """CMake's complaint, on one line."""
    defines = {
        "FAISS_BITS_FAISS_PACKAGE": package,
        "FAISS_BITS_GPU": "OFF",
        "BUILD_TESTING": "OFF",
        "FAISS_BITS_BENCHS": "OFF",
        "Python_EXECUTABLE": sys.executable,
        **more,
    }
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder / "build",
         *(f"-D{name}={value}" for name, value in defines.items())],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, done.stdout
    return " ".join(done.stderr.split())


def make_headers(folder, version):
    (folder / "faiss").mkdir(parents=True)
    parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
    (folder / "faiss" / "Index.h").write_text(
        "".join(f"#define FAISS_VERSION_{name} {n}\n" for name, n in parts)
    )
    return folder


def test_cmake_no_package(tmp_path):
    assert "is no folder of a Python package" in configure(
        tmp_path, tmp_path / "nothing"
    )


@pytest.mark.parametrize("version", ["1.14.1", "1.15.0"])
def test_cmake_headers_of_another_release(tmp_path, version):
    package = make_package(tmp_path / "site", "faiss-cpu")
    said = configure(
        tmp_path, package,
        FAISS_BITS_FAISS_HEADERS=make_headers(tmp_path / "tree", version),
    )
    assert "CMake Error" in said
    assert f"are FAISS {version}, the wheel is faiss-cpu 1.15.1" in said
    assert "the tag v1.15.1" in said


def test_cmake_headers_that_are_none(tmp_path):
    package = make_package(tmp_path / "site", "faiss-cpu")
    said = configure(tmp_path, package, FAISS_BITS_FAISS_HEADERS=tmp_path)
    assert "is no source tree of FAISS" in said


def test_cmake_two_faiss(tmp_path):
    package = make_package(tmp_path / "site", "faiss-cpu")
    said = configure(tmp_path, package, FAISS_BITS_FAISS_TAG="v1.15.0")
    assert "another FAISS was named too" in said


def test_cmake_off_is_no_folder(tmp_path):
    said = configure(tmp_path, "off", faiss_DIR=tmp_path, FAISS_BITS_PYTHON="no",
                     FETCHCONTENT_SOURCE_DIR_FAISS=tmp_path / "nothing")
    assert "Python package" not in said and "nothing" in said


def test_cmake_version_after_the_release(tmp_path):
    """1.15.1.post2 is packed anew, from the sources of 1.15.1."""
    package = make_package(
        tmp_path / "site", "faiss-cpu", version="1.15.1.post2", runtime=9
    )
    said = configure(
        tmp_path, package,
        FAISS_BITS_FAISS_HEADERS=make_headers(tmp_path / "tree", "1.15.1"),
    )
    assert "The headers of" not in said
    assert "was made by a SWIG" in said


def test_cmake_wheel_without_a_library(tmp_path):
    """As older wheels are, which have FAISS inside their module."""
    package = make_package(tmp_path / "site", "faiss-cpu", version="0.9.9")
    (package / "libfaiss.so").unlink()
    said = configure(tmp_path, package)
    assert "faiss-cpu 0.9.9" in said and "has no libfaiss.so to link" in said


def test_cmake_pip_sees_no_faiss(tmp_path, monkeypatch):
    for name in ("CMAKE_PREFIX_PATH", "FAISS_BITS_FAISS_PACKAGE"):
        monkeypatch.delenv(name, raising=False)
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / "bin" / "python"
    said = configure(tmp_path, "", SKBUILD=2, Python_EXECUTABLE=python)
    assert "has no module faiss" in said and "FAISS_BITS_FAISS_PACKAGE" in said


def test_cmake_pip_is_told_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("FAISS_BITS_FAISS_PACKAGE", "elsewhere")
    said = configure(tmp_path, "off", SKBUILD=2)
    assert "'off' for CMake and 'elsewhere' in the environment" in said


def test_cmake_another_swig(tmp_path):
    package = make_package(tmp_path / "site", "faiss-cpu", runtime=9)
    said = configure(
        tmp_path, package,
        FAISS_BITS_FAISS_HEADERS=make_headers(tmp_path / "tree", "1.15.1"),
    )
    assert "was made by a SWIG" in said and "Install one that fits" in said


# ---- the wheel's CUDA and the compiler's ------------------------------------


def choose(folder, **given):
    """What cmake/ makes of a wheel's CUDA and a compiler's: the variables that
    it sets, and what it says."""
    script = folder / "choose.cmake"
    script.write_text(
        f"include({ROOT}/cmake/CudaLibraries.cmake)\n"
        f"include({ROOT}/cmake/ResolveGpu.cmake)\n"
        "foreach(name FAISS_BITS_OWN_CUDA_RUNTIME FAISS_BITS_CUBLASLT\n"
        "    FAISS_BITS_ENABLE_GPU)\n"
        '  message("${name}=${${name}}")\n'
        "endforeach()\n"
    )
    defines = {
        "FAISS_BITS_GPU": "AUTO",
        "FAISS_BITS_CUDA_COMPILER": "TRUE",
        "FAISS_BITS_FAISS_HAS_GPU": "TRUE",
        "CUDAToolkit_VERSION_MAJOR": "13",
        "CUDAToolkit_VERSION": "13.0.88",
        "CMAKE_CUDA_COMPILER": "nvcc",
        "FAISS_BITS_PYTHON_FAISS_DISTRIBUTION": "faiss-gpu",
        **given,
    }
    done = subprocess.run(
        ["cmake", *(f"-D{name}={value}" for name, value in defines.items()),
         "-P", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    found = dict(
        line.split("=", 1)
        for line in done.stdout.splitlines()
        if line.startswith("FAISS_BITS_")
    )
    return found, " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "wheel, compiler, asked, own, cublaslt",
    [
        ("12", "13", "AUTO", True, "libcublasLt.so.12"),
        ("13", "12", "AUTO", True, "libcublasLt.so.13"),
        ("12", "12", "AUTO", False, ""),
        ("", "13", "AUTO", False, ""),  # no wheel: the FAISS of this system
        ("", "13", "ON", True, "libcublasLt.so.13"),
        ("13", "13", "ON", True, "libcublasLt.so.13"),
    ],
)
def test_cuda_of_the_wheel(tmp_path, wheel, compiler, asked, own, cublaslt):
    found, said = choose(
        tmp_path,
        FAISS_BITS_PYTHON_FAISS_CUDA=wheel,
        CUDAToolkit_VERSION_MAJOR=compiler,
        FAISS_BITS_OTHER_CUDA=asked,
    )
    assert found == {
        "FAISS_BITS_OWN_CUDA_RUNTIME": str(own).upper(),
        "FAISS_BITS_CUBLASLT": cublaslt,
        "FAISS_BITS_ENABLE_GPU": "ON",
    }
    assert ("hold a runtime of their own" in said) == own


def test_cuda_of_the_wheel_refused(tmp_path):
    """Asked to share the CUDA libraries where that cannot be."""
    given = {"FAISS_BITS_PYTHON_FAISS_CUDA": "12", "FAISS_BITS_OTHER_CUDA": "OFF"}
    found, said = choose(tmp_path, **given)
    assert found["FAISS_BITS_ENABLE_GPU"] == "OFF"
    assert found["FAISS_BITS_OWN_CUDA_RUNTIME"] == "FALSE"
    assert "CPU part alone; the GPU part needs CUDA 12, which the wheel" in said
    found, said = choose(tmp_path, FAISS_BITS_GPU="ON", **given)
    assert not found and "FAISS_BITS_GPU=ON needs CUDA 12" in said


def test_a_wheel_without_a_compiler(tmp_path):
    found, said = choose(
        tmp_path,
        FAISS_BITS_PYTHON_FAISS_CUDA="12",
        FAISS_BITS_CUDA_COMPILER="FALSE",
    )
    assert found["FAISS_BITS_ENABLE_GPU"] == "OFF"
    assert found["FAISS_BITS_OWN_CUDA_RUNTIME"] == "FALSE"
    assert "needs a CUDA compiler" in said


def test_a_cpu_wheel_beside_a_compiler(tmp_path):
    found, said = choose(
        tmp_path,
        FAISS_BITS_FAISS_HAS_GPU="FALSE",
        faiss_bits_faiss_origin="wheel faiss-cpu",
    )
    assert found["FAISS_BITS_ENABLE_GPU"] == "OFF"
    assert "a FAISS with GPU support (wheel faiss-cpu has none)" in said
