"""Linked and preloaded, with a fake FAISS whose functions mark that they were
called, and what the library says when something is not as it should be. None
of these tests needs a GPU; the programs see none."""

import re
import subprocess

import pytest
from conftest import (
    ALL,
    GOES_TO_FAISS,
    INDEX,
    PRODUCTS,
    SCANS,
    SELECTIONS,
    SYMBOLS,
    bound_to,
    came_here,
    python,
    run,
    said,
)


def answers(result):
    assert result.returncode == 0, result.stderr
    return dict(line.split(": ", 1) for line in result.stdout.splitlines())


ALL_FAISS = dict.fromkeys(SYMBOLS, "FAISS")


# ---- what it needs -------------------------------------------------------------


def test_needs_no_faiss_and_no_cuda_library(library):
    text = subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert needed
    assert [n for n in needed if re.match("libfaiss|libcu|libbits|libnv", n)] == []
    assert re.search(r"\(SONAME\).*\[libfaiss_bits_dropin\.so\]", text)


# ---- linked, preloaded ------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
def test_linked_before_faiss(programs, bits):
    result = run(programs / f"fake_linked{bits}")
    assert answers(result) == ALL_FAISS
    assert came_here(result, bits)


def test_preloaded(programs, library):
    result = run(programs / "fake_plain", LD_PRELOAD=library)
    assert answers(result) == ALL_FAISS
    assert came_here(result, 64)


def test_without_it_nothing_is_said(programs):
    result = run(programs / "fake_plain")
    assert answers(result) == ALL_FAISS
    assert result.stderr == ""


def test_linked_after_faiss_is_told(programs):
    result = run(programs / "fake_linked_late")
    assert answers(result) == ALL_FAISS
    (line,) = said(result)
    assert "do not come here" in line and "libfaiss.so" in line


def test_faiss_that_keeps_its_calls_is_told(programs):
    result = run(programs / "fake_linked_symbolic")
    assert answers(result) == ALL_FAISS
    (line,) = said(result)
    assert "do not come here" in line and "symbolic/libfaiss.so" in line


def test_unknown_version_is_refused(programs):
    result = run(programs / "fake_linked_unknown")
    assert answers(result) == ALL_FAISS
    (line,) = said(result)
    assert "not known" in line and "unknown/libfaiss.so" in line


def test_unknown_scans_alone_are_left(programs):
    result = run(programs / "fake_linked_unknown_lists")
    assert answers(result) == ALL_FAISS
    first, *others = said(result)
    assert "unknown_lists/libfaiss.so" in first
    assert "flat searches and k-selection are replaced, scans of inverted lists" in first
    # The one that it has says why it is not used; the others are tried.
    (line,) = [line for line in others if "not known" in line]
    assert "lacks some of runIVFInterleavedScan, runIVFFlatScan as" in line
    others.remove(line)
    names = [GOES_TO_FAISS.match(line).group(1) for line in others]
    # Those of product codes are not asked for without them.
    assert sorted(names) == sorted(set(SYMBOLS) - set(SCANS) - set(PRODUCTS))


def test_unknown_scans_of_product_codes_alone_are_left(programs):
    result = run(programs / "fake_linked_unknown_products")
    assert answers(result) == ALL_FAISS
    first, *others = said(result)
    assert "k-selection are replaced, scans of lists of product codes are not" in first
    (line,) = [line for line in others if "not known" in line]
    assert "lacks some of runPQScanMultiPassNoPrecomputed, runPQPrecomputed" in line
    others.remove(line)
    names = [GOES_TO_FAISS.match(line).group(1) for line in others]
    assert sorted(names) == sorted(set(SYMBOLS) - set(PRODUCTS))


def test_unknown_search_of_an_index_alone_is_left(programs):
    result = run(programs / "fake_linked_unknown_results")
    assert answers(result) == ALL_FAISS
    first, *others = said(result)
    assert "k-selection are replaced, ways of results to the host are not" in first
    assert "lacks some of GpuIndex::search as" in first
    names = [GOES_TO_FAISS.match(line).group(1) for line in others]
    assert sorted(names) == sorted(set(SYMBOLS) - set(INDEX))


def test_other_programs_hear_nothing(library):
    result = run("cat", "/dev/null", LD_PRELOAD=library, FAISS_BITS_DROPIN="log")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


# ---- FAISS_BITS_DROPIN ------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["linked64", "linked_late", "linked_unknown", "linked_symbolic"]
)
def test_off(programs, name):
    result = run(programs / f"fake_{name}", FAISS_BITS_DROPIN="off")
    assert answers(result) == ALL_FAISS
    assert result.stderr == ""


def test_log_says_what_is_replaced(programs):
    result = run(programs / "fake_linked32", FAISS_BITS_DROPIN="log")
    assert answers(result) == ALL_FAISS
    assert re.match(
        rf"FAISS in .*ids32/libfaiss\.so, 32-bit ids: {ALL}$",
        said(result)[0],
    )


@pytest.mark.parametrize("value", ["on", ""])
def test_on(programs, value):
    result = run(programs / "fake_linked64", FAISS_BITS_DROPIN=value)
    assert came_here(result, 64)


def test_select_leaves_searches_alone(programs):
    result = run(programs / "fake_linked64", FAISS_BITS_DROPIN="select")
    assert answers(result) == ALL_FAISS
    assert came_here(result, 64, SELECTIONS)


def test_words_can_be_combined(programs):
    result = run(programs / "fake_linked64", FAISS_BITS_DROPIN="log,select")
    assert said(result)[0].endswith("64-bit ids: k-selection is replaced")
    assert len(said(result)) == 1 + len(SELECTIONS)
    result = run(programs / "fake_linked64", FAISS_BITS_DROPIN="log,off")
    assert (answers(result), result.stderr) == (ALL_FAISS, "")


#: (n, d, queries, k, row-major, gap) and what of it is left to FAISS.
LEFT = [
    ((1 << 20, 128, 16, 10), None),
    ((1 << 20, 128, 17, 10), "searches of 17 to 127 queries"),
    ((1 << 20, 128, 127, 10), "searches of 17 to 127 queries"),
    ((1 << 20, 128, 128, 10), None),
    ((1 << 20, 16, 1, 10, False), None),
    ((1 << 20, 17, 1, 10, False), "searches of column-major vectors of more "
     "than 16 dimensions"),
    ((1 << 20, 17, 128, 10, False), "searches of column-major vectors of more "
     "than 16 dimensions"),
    ((1 << 20, 128, 1, 10, True, 4), "searches of tensors with gaps between "
     "their rows"),
    ((0, 128, 1, 10), "searches of few vectors"),
    ((1 << 20, 128, 0, 10), "searches of few vectors"),
    ((1 << 31, 128, 1, 10), "searches of 2^31 vectors and more"),
]


def expect_left(site, call, mode, is_about, function, left):
    """What `call` of faiss says of functions: `left` to FAISS's own, by shape
    alone, without a CUDA call; told to those who want to read it. None: it goes
    to ours, which there is no device for."""
    result = python(
        f"import faiss_bits.dropin, faiss; print({call})",
        path=site("ids64"),
        FAISS_BITS_DROPIN=mode,
    )
    assert result.stdout == "42.0\n", result.stderr
    lines = [line for line in said(result) if is_about(line)]
    if left is None:
        (line,) = lines
        assert GOES_TO_FAISS.match(line)
    elif mode == "on":
        assert lines == []
    else:
        assert lines == [f"{function} leaves to FAISS's own function {left}"]


@pytest.mark.parametrize("shape, left", LEFT)
@pytest.mark.parametrize("mode", ["on", "log"])
def test_what_is_left_to_faiss(site, shape, left, mode):
    expect_left(
        site,
        f"faiss.search_of(*{shape})",
        mode,
        lambda line: "runL2Distance" in line,
        "runL2Distance (float keys, 64-bit ids)",
        left,
    )


#: Arguments of faiss.scan, and what of it is left to FAISS.
LEFT_SCANS = [
    ({}, None),
    ({"quantizer": 4}, None),
    ({"quantizer": 4, "residual": 1}, None),
    ({"quantizer": 7}, "scans of scalar codes of type 7"),
    ({"residual": 1}, "scans of lists of residuals of vectors"),
    ({"q": 2, "gap": 1}, "scans of tensors with gaps between their rows"),
    ({"q": 1, "gap": 1}, None),
]


@pytest.mark.parametrize("shape, left", LEFT_SCANS)
@pytest.mark.parametrize("mode", ["on", "log"])
def test_what_scans_are_left_to_faiss(site, shape, left, mode):
    expect_left(
        site,
        f"faiss.scan(**{shape})",
        mode,
        lambda line: "runIVF" in line and ": flat" not in line,
        "runIVFInterleavedScan (lists, 64-bit lengths)",
        left,
    )


@pytest.mark.parametrize("n, k", [(0, 1), (1, 0), (1, -1), (-1, 1), (1, 2049)])
@pytest.mark.parametrize("mode", ["on", "log"])
def test_searches_without_results_are_left(site, n, k, mode):
    """FAISS says what is wrong with them, if anything."""
    expect_left(
        site,
        f"faiss.index_search({n}, {k})",
        mode,
        lambda line: line.startswith("GpuIndex"),
        "GpuIndex::search (results on the host)",
        "searches with no results, or more than 1 GiB of them",
    )


UNKNOWN_ARRAY = "a DeviceVector is not what it is in FAISS 1.7.3 to 1.15"


@pytest.mark.parametrize(
    "shape, words",
    [
        # FakeWrong of FakeFaiss.h, one after another
        ({"wrong": 1}, UNKNOWN_ARRAY),
        ({"wrong": 2}, UNKNOWN_ARRAY),
        ({"wrong": 3}, UNKNOWN_ARRAY),
        ({"wrong": 4}, UNKNOWN_ARRAY),
        ({"wrong": 5}, "there are 2 lists, 2 of ids and 1 lengths"),
        ({"k": 0}, "an output is 1 x 2, expected 1 x 0"),
        ({"k": 3}, "an output is 1 x 2, expected 1 x 3"),
        ({"nprobe": 0}, "nprobe = 0 is outside 1..2048"),
        ({"nprobe": 2049}, "nprobe = 2049 is outside 1..2048"),
        ({"metric": 2}, "metric = 2 is neither L2 nor inner product"),
        ({"indices": 4}, "indicesOptions = 4 is not known"),
        ({"indices": -1}, "indicesOptions = -1 is not known"),
    ],
)
def test_scans_that_are_not_as_known_go_to_faiss(site, shape, words):
    result = python(
        f"import faiss_bits.dropin, faiss; print(faiss.scan(**{shape}))",
        path=site("ids64"),
    )
    assert result.stdout == "42.0\n", result.stderr
    assert said(result) == [
        "runIVFInterleavedScan (lists, 64-bit lengths) goes to FAISS's own "
        f"function: {words}"
    ]


PRODUCT_SCAN = "runPQScanMultiPassNoPrecomputed (lists, 64-bit lengths)"
PRODUCT_SEARCH = "runPQPrecomputedCodes_ (lists, 64-bit lengths)"


@pytest.mark.parametrize("search", [0, 1])
@pytest.mark.parametrize(
    "shape, words",
    [
        ({"centroids": 1}, "centroids are 1 x 2, expected 2 x 2"),
        ({"k": 3}, "an output is 1 x 2, expected 1 x 3"),
    ],
)
def test_product_codes_that_are_not_as_known_go_to_faiss(site, search, shape, words):
    """Also where FAISS's search with tables has asked for the scan: the line is
    that of the function it called."""
    result = python(
        "import faiss_bits.dropin, faiss\n"
        f"print(faiss.products(search={search}, **{shape}))",
        path=site("ids64"),
    )
    assert result.stdout == "42.0\n", result.stderr
    (line,) = said(result)
    name = PRODUCT_SEARCH if search else PRODUCT_SCAN
    assert line.startswith(f"{name} goes to FAISS's own function: {words}")


@pytest.mark.parametrize("search", [0, 1])
def test_product_codes_of_few_bits_in_rows_are_left(site, search):
    result = python(
        "import faiss_bits.dropin, faiss\n"
        f"print(faiss.products(search={search}, bits=6))",
        path=site("ids64"),
        FAISS_BITS_DROPIN="log",
    )
    assert result.stdout == "42.0\n", result.stderr
    name = PRODUCT_SEARCH if search else PRODUCT_SCAN
    assert said(result)[-1] == (
        f"{name} leaves to FAISS's own function scans of product codes of 6 bits"
    )


def test_other_values_are_told(programs):
    result = run(programs / "fake_linked64", FAISS_BITS_DROPIN="offf")
    assert answers(result) == ALL_FAISS
    assert said(result)[0].startswith("FAISS_BITS_DROPIN = 'offf' is none of")


@pytest.mark.parametrize("k", [0, 3, 5000])
def test_what_faiss_asserts_goes_to_faiss(programs, k):
    result = run(programs / "fake_linked64", k)
    assert answers(result) == ALL_FAISS
    blocks = [line for line in said(result) if line.startswith("runBlockSelect (")]
    assert len(blocks) == 1
    assert f"an output is 1 x 2, expected 1 x {k}" in blocks[0]


# ---- the real FAISS of this build --------------------------------------------------


@pytest.mark.parametrize("way", ["linked", "preloaded"])
def test_calls_of_the_real_faiss_bind_to_us(programs, library, way):
    variables = {"LD_BIND_NOW": 1, "LD_DEBUG": "bindings"}
    if way == "preloaded":
        variables["LD_PRELOAD"] = library
    name = "real_linked" if way == "linked" else "real_plain"
    result = run(programs / name, **variables)
    assert result.returncode == 0
    for symbol in SYMBOLS:
        # Its own lookups are in the messages, too.
        assert library.name in bound_to(result.stderr, symbol), symbol


def test_calls_of_the_real_faiss_stay_without_us(programs):
    result = run(programs / "real_plain", LD_BIND_NOW=1, LD_DEBUG="bindings")
    assert result.returncode == 0
    for symbol in SYMBOLS:
        assert bound_to(result.stderr, symbol) == {"libfaiss.so"}, symbol
