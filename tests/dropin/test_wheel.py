"""With the official faiss-gpu wheel as it comes from PyPI, as far as that needs
no GPU. The wheel and its CUDA libraries are in the folder FAISS_BITS_TEST_WHEEL;
nothing is downloaded."""

import re

from conftest import SYMBOLS, bound_to, python, said

#: A line of the loader's, after the number of the process.
LOADER = re.compile(r"\s*\d+:\t")


def bindings(code, path):
    result = python(code, path=path, LD_BIND_NOW=1, LD_DEBUG="bindings")
    other = [x for x in result.stderr.splitlines() if not LOADER.match(x)]
    assert result.returncode == 0, "\n".join(other)
    return result.stderr


def test_calls_of_the_wheel_bind_to_us(wheel, package, library):
    messages = bindings("import faiss_bits.dropin, faiss", (package, wheel))
    for symbol in SYMBOLS:
        assert library.name in bound_to(messages, symbol), symbol


def test_calls_of_the_wheel_stay_without_us(wheel):
    messages = bindings("import faiss", (wheel,))
    for symbol in SYMBOLS:
        assert bound_to(messages, symbol) == {"libfaiss.so"}, symbol


def test_wheel_is_replaced_and_says_so(wheel, package):
    result = python(
        "import faiss_bits.dropin, faiss\nprint(faiss_bits.dropin.status())",
        path=(package, wheel),
        FAISS_BITS_DROPIN="log",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("64-bit ids: flat searches and k-selection are replaced\n")
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
    assert result.stdout.endswith("64-bit ids: flat searches and k-selection are replaced\n")
    assert result.stderr == ""
