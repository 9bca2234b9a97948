"""One installation for all tests of this folder."""

import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["FAISS_BITS_PIP_BUILD"])
HAS_GPU = os.environ["FAISS_BITS_PIP_HAS_GPU"] == "ON"


def without_this_build(**more):
    """The environment, but with nothing on PYTHONPATH."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return {**environ, **more}


class Installed:
    """A virtual environment with faiss_bits and, through the system's packages
    or a .pth file, the FAISS of this build."""

    def __init__(self, folder):
        self.folder = folder
        self.python = folder / "bin" / "python"
        version = "python%d.%d" % sys.version_info[:2]
        self.site = folder / "lib" / version / "site-packages"
        self.package = self.site / "faiss_bits"

    def run(self, *arguments, **more):
        return subprocess.run(
            [str(self.python), *map(str, arguments)],
            cwd=self.folder,
            env=without_this_build(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def pip(self, *arguments, **more):
        return self.run(
            "-m", "pip", "--disable-pip-version-check", *arguments, **more
        )


def options(build, faiss_dir):
    """What the build that holds this test was told, as pip's user says it."""
    defines = {"FAISS_BITS_WERROR": os.environ["FAISS_BITS_PIP_WERROR"]}
    if faiss_dir:
        defines["faiss_DIR"] = faiss_dir
    launcher = os.environ["FAISS_BITS_PIP_LAUNCHER"]
    if launcher:
        defines["CMAKE_CXX_COMPILER_LAUNCHER"] = launcher
    if HAS_GPU:
        defines["CMAKE_CUDA_ARCHITECTURES"] = os.environ["FAISS_BITS_PIP_ARCHS"]
        if launcher:
            defines["CMAKE_CUDA_COMPILER_LAUNCHER"] = launcher
    settings = [f"build-dir={build}"]
    settings += [f"cmake.define.{k}={v}" for k, v in defines.items()]
    return [part for text in settings for part in ("--config-settings", text)]


def make_environment(folder):
    venv.create(folder, system_site_packages=True, with_pip=True)
    return Installed(folder)


def fetch_tools(environment, folder, swig):
    """What pip builds with, which it cannot always fetch."""
    fetched = environment.pip(
        "download", "-q", "-d", folder, "scikit-build-core>=1.0", swig
    )
    if fetched.returncode != 0:
        pytest.skip(f"scikit-build-core cannot be fetched: {fetched.stdout[-300:]}")
    return folder


def install(environment, tools, name, *arguments, faiss_dir, **more):
    """pip install . in a build folder of this name."""
    build = BUILD / name if name else BUILD
    # Objects stay, choices of an earlier environment do not.
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    if HAS_GPU:
        more["CUDACXX"] = os.environ["FAISS_BITS_PIP_CUDA"]
    done = environment.pip(
        "install", "--find-links", tools, *arguments,
        *options(build, faiss_dir), ROOT, **more
    )
    assert done.returncode == 0, done.stdout[-8000:]


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    result = make_environment(tmp_path_factory.mktemp("venv"))
    # A FAISS on our PYTHONPATH is one that the user has put into the
    # environment; Debian's is there as it is.
    faiss = Path(importlib.util.find_spec("faiss").origin).parents[1]
    if str(faiss) in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        (result.site / "faiss.pth").write_text(f"{faiss}\n")
    tools = fetch_tools(result, tmp_path_factory.mktemp("tools"), "swig<4.4")
    install(result, tools, "",
            faiss_dir=os.environ["FAISS_BITS_PIP_FAISS_DIR"])
    return result
