"""The adapters of contrib/ inside checkouts of the benchmarks they are for.

A checkout is a stand-in from stand_ins/, which states the interface in our
words. Where the environment names a checkout of the benchmark itself
(FAISS_BITS_ANN_BENCHMARKS, FAISS_BITS_BIG_ANN_BENCHMARKS), the tests run in a
copy of that one, too.
"""

import contextlib
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
VARIABLES = {
    "ann_benchmarks": "FAISS_BITS_ANN_BENCHMARKS",
    "big_ann_benchmarks": "FAISS_BITS_BIG_ANN_BENCHMARKS",
}
_PACKAGES = ("ann_benchmarks", "benchmark", "neurips23")


class Checkout(NamedTuple):
    """A folder that holds a benchmark and our adapter, importable."""

    folder: Path
    is_theirs: bool

    def module(self, name):
        return importlib.import_module(name)


def kinds(benchmark):
    """Where the tests of an adapter run, as parameters of a fixture."""
    theirs = os.environ.get(VARIABLES[benchmark])
    return ["stand_in", *(["theirs"] if theirs else [])]


@contextlib.contextmanager
def checkout(benchmark, kind, folder):
    """A Checkout in `folder`, with the adapter copied as its README says."""
    source = STAND_INS / benchmark
    if kind == "theirs":
        source = Path(os.environ[VARIABLES[benchmark]])
        if not (source / "run_algorithm.py").exists():
            raise ValueError(
                f"{VARIABLES[benchmark]} = {source} is no checkout"
            )
    # What a user has there besides: data, results, and adapters of before.
    ignored = shutil.ignore_patterns(
        "data", "results", ".git", "__pycache__", "*faiss_bits*"
    )
    shutil.copytree(source, folder, ignore=ignored)
    for command in commands(benchmark, "cp "):
        subprocess.run(
            ["sh", "-ec", command],
            cwd=ROOT,
            env={**os.environ, "CHECKOUT": str(folder)},
            check=True,
        )
    with _first_on_path(folder):
        yield Checkout(folder, kind == "theirs")


def commands(benchmark, start):
    """Lines of the shell examples in an adapter's README that start so."""
    text = (ROOT / "contrib" / benchmark / "README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    found = [
        line
        for block in blocks
        for line in block.replace("\\\n", " ").split("\n")
        if line.startswith(start)
    ]
    assert found, f"README.md of {benchmark} has no command {start!r}"
    return found


@contextlib.contextmanager
def _first_on_path(folder):
    """Imports find the packages of `folder` inside the block, and of no other
    checkout."""
    _forget()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        _forget()


def _forget():
    for name in list(sys.modules):
        if name.partition(".")[0] in _PACKAGES:
            del sys.modules[name]


def parameters(the_class):
    """{method: names of its parameters} of what a class and its bases have."""
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in inspect.getmembers(the_class, inspect.isfunction)
        if name == "__str__" or not name.startswith("_")
    }


def overridden(the_class, base):
    """{method: (parameters in the class, in the base)} for what it takes the
    place of."""
    ours, theirs = parameters(the_class), parameters(base)
    return {
        name: (ours[name], theirs[name])
        for name in theirs
        if getattr(the_class, name) is not getattr(base, name)
    }


# ---- Dockerfiles ------------------------------------------------------------


def instructions(dockerfile):
    """[(keyword, rest)] of a Dockerfile, lines that go on joined."""
    lines = [
        line
        for line in dockerfile.read_text().split("\n")
        if not line.lstrip().startswith("#")
    ]
    text = "\n".join(lines).replace("\\\n", " ")
    return [
        tuple(line.split(None, 1)) for line in text.split("\n") if line.strip()
    ]
