"""Searches with the official faiss-gpu wheel, with and without the drop-in, each
held against NumPy. Needs a GPU and, in the folder FAISS_BITS_TEST_WHEEL, the
wheel with its CUDA libraries. And what needs a GPU and no FAISS."""

import glob
import json
import pathlib
import sys

import pytest
from conftest import INDEX, PRODUCTS, SCANS, SELECTIONS, SYMBOLS, python, run, said

HERE = pathlib.Path(__file__).resolve().parent

gpu = pytest.mark.skipif(
    not glob.glob("/dev/nvidia[0-9]*"), reason="needs a GPU: no /dev/nvidia*"
)


def replaced(names):
    def types(name):
        if name in INDEX:
            return "results on the host"
        lists = name in SCANS + PRODUCTS
        return "lists, 64-bit lengths" if lists else "float keys, 64-bit ids"

    return {f"replaced {name} ({types(name)})" for name in names}


def searches(path, **variables):
    """Runs searches.py, which checks every result against NumPy."""
    result = run(
        sys.executable, HERE / "searches.py", gpu=True, path=path, **variables
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads(result.stdout.splitlines()[-1])["checked"] > 10
    return {line.partition(" of ")[0] for line in said(result)}


@gpu
@pytest.mark.parametrize("way", ["import", "preload", "select", "off", "stock"])
def test_searches_are_right(wheel, package, library, way):
    if way == "import":
        lines = searches(
            (package, wheel), SEARCHES_IMPORT=1, FAISS_BITS_DROPIN="log"
        )
        assert lines >= replaced(SYMBOLS)
    elif way == "preload":
        lines = searches((wheel,), LD_PRELOAD=library, FAISS_BITS_DROPIN="log")
        assert lines >= replaced(SYMBOLS)
    elif way == "select":
        lines = searches(
            (wheel,), LD_PRELOAD=library, FAISS_BITS_DROPIN="log,select"
        )
        assert replaced(SELECTIONS) <= lines
        assert not lines & replaced(set(SYMBOLS) - set(SELECTIONS))
    elif way == "off":
        assert not searches((wheel,), LD_PRELOAD=library, FAISS_BITS_DROPIN="off")
    else:
        assert not searches((wheel,))


@gpu
def test_faiss_without_cublas(site):
    """One that has cuBLAS linked in: many queries stay with it, and it is told."""
    # So many that a sample is searched for limits.
    result = python(
        "import faiss_bits.dropin, faiss\n"
        "print(faiss.search_of(1 << 20, 128, 4096, 10))",
        path=site("ids64"),
        gpu=True,
    )
    assert result.stdout == "42.0\n", result.stderr
    (line,) = said(result)
    assert line == (
        "runL2Distance (float keys, 64-bit ids) goes to FAISS's own function: "
        "FAISS has loaded no cuBLASLt, which searches of many queries need "
        "(no cublasLtGetVersion)"
    )
