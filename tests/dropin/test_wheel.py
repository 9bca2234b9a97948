"""With the official faiss-gpu wheel as it comes from PyPI, and with others, as
far as that needs no GPU. They are in the folders FAISS_BITS_TEST_WHEEL and
FAISS_BITS_TEST_OTHER_WHEELS; nothing is downloaded."""

import re

import pytest
from conftest import (
    ALL, FAISS_FILE, OTHER_WHEELS, SYMBOLS, bound_to, cuda_of, python, said,
)

#: A line of the loader's, after the number of the process.
LOADER = re.compile(r"\s*\d+:\t")


def bindings(code, path, **variables):
    result = python(
        code, path=path, LD_BIND_NOW=1, LD_DEBUG="bindings", **variables
    )
    other = [x for x in result.stderr.splitlines() if not LOADER.match(x)]
    lacking = "cannot open shared object file", "wheels are missing"
    if any(words in "".join(other[-1:]) for words in lacking):
        pytest.skip(other[-1])
    assert result.returncode == 0, "\n".join(other)
    return result.stderr


@pytest.fixture(params=["official", *OTHER_WHEELS])
def path(request, wheel):
    """Folders to import a wheel from; the last one has CUDA 12."""
    return (wheel,) if request.param == "official" else (request.param, wheel)


def test_calls_of_the_wheel_bind_to_us(path, wheel, package, library):
    messages = bindings(
        "import faiss_bits.dropin, faiss\n"
        f"assert {ALL!r} in faiss_bits.dropin.status()",
        (package, *path), LD_LIBRARY_PATH=cuda_of(wheel),
    )
    for symbol in SYMBOLS:
        assert library.name in bound_to(messages, symbol), symbol


def test_calls_of_the_wheel_stay_without_us(path, wheel):
    messages = bindings("import faiss", path, LD_LIBRARY_PATH=cuda_of(wheel))
    for symbol in SYMBOLS:
        (file,) = bound_to(messages, symbol)
        assert FAISS_FILE.fullmatch(file), symbol


def test_wheel_is_replaced_and_says_so(wheel, package):
    result = python(
        "import faiss_bits.dropin, faiss\nprint(faiss_bits.dropin.status())",
        path=(package, wheel),
        FAISS_BITS_DROPIN="log",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(f"64-bit ids: {ALL}\n")
    assert said(result) == [result.stdout.strip()]


def test_wheel_too_late(wheel, package):
    result = python("import faiss, faiss_bits.dropin", path=(package, wheel))
    assert "imported too late" in result.stderr.splitlines()[-1]


def test_wheel_preloaded(wheel, package, library):
    result = python(
        "import faiss, faiss_bits.dropin\nprint(faiss_bits.dropin.status())",
        path=(package, wheel),
        LD_PRELOAD=library,
    )
    assert result.stdout.endswith(f"64-bit ids: {ALL}\n")
    assert result.stderr == ""
