"""Searches of real vectors on the CPU and on the GPU: every place and every bit
is the canonical one (canonical.py), ties by the lower id."""

import collections
import functools
from pathlib import Path

import canonical
import faiss
import numpy as np
import oracle
import pytest
from conftest import CPU_METRICS, index_of, make

import faiss_bits
from faiss_bits.contrib import datasets, words

BACKENDS = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
METRICS = {
    f"{name}{p or ''}": (metric, p, name) for metric, p, name in CPU_METRICS
}


def search(request, backend, xq, xb, k, metric, p):
    """(D, I) of knn(), and of an index where FAISS has the metric."""
    found = [faiss_bits.knn(xq, xb, k, metric=metric, metric_arg=p, backend=backend)]
    if not isinstance(metric, str):
        if backend == "cpu":
            index = index_of(xb, metric, p)
        else:
            res = request.getfixturevalue("res")
            index = faiss_bits.GpuIndexBitsFlat(res, xb.shape[1], metric)
            index.metric_arg = p
            index.add(xb)
        found.append(index.search(xq, k))
    return found


# ---- words ---------------------------------------------------------------------


def made_up_words():
    rng = np.random.default_rng(7)
    parts = "a e i o u an er in ent st tr on al ing ch ly".split()
    sizes = rng.integers(1, 5, 3000)
    return ["".join(rng.choice(parts, size)) for size in sizes]


def debian_words(language):
    """Those of a to z in a list of Debian's, every so many that 5,000 are left."""
    path, package = words.LISTS[language]
    if not Path(path).is_file():
        pytest.skip(f"no {path}: Debian has it in {package}")
    found = [
        one.lower()
        for one in words.read_words(path)
        if one.isascii() and one.isalpha()
    ]
    return found[:: max(1, len(found) // 5000)]


def letters(texts):
    """How often a word has each letter, [n, 26]."""
    vectors = np.zeros((len(texts), 26), np.float32)
    for row, text in zip(vectors, texts):
        for letter in text:
            row[ord(letter) - ord("a")] += 1
    return vectors


def pairs(texts):
    """How often it has each of the 64 most frequent pairs of letters, [n, 64]."""
    of_words = [[a + b for a, b in zip(text, text[1:])] for text in texts]
    counts = collections.Counter(pair for some in of_words for pair in some)
    best = sorted(counts, key=lambda pair: (-counts[pair], pair))[:64]
    places = {pair: i for i, pair in enumerate(best)}
    vectors = np.zeros((len(texts), 64), np.float32)
    for row, some in zip(vectors, of_words):
        for pair in some:
            if pair in places:
                row[places[pair]] += 1
    return vectors


WORDS = {
    "made_up": made_up_words,
    "english": lambda: debian_words("english"),
    "spanish": lambda: debian_words("spanish"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("counted", [letters, pairs])
@pytest.mark.parametrize("source", WORDS)
def test_words(request, source, counted, name, backend):
    metric, p, name = METRICS[name]
    vectors = counted(WORDS[source]())
    step = len(vectors) // 5
    xb, xq = np.delete(vectors, np.s_[::step], 0), vectors[::step]
    true = canonical.distances(xq, xb, name, p)
    for q in (1, len(xq)):
        for D, I in search(request, backend, xq[:q], xb, 100, metric, p):
            canonical.check(true[:q], 100, D, I, name)


# ---- images and descriptors ----------------------------------------------------


@functools.lru_cache(maxsize=1)
def sift():
    data = datasets.sift()
    return data.queries[::50], data.base  # 20 of 1,000


@functools.lru_cache(maxsize=1)
def fashion_mnist():
    data = datasets.fashion_mnist()
    return data.test[::500], data.train  # 20 of 10,000


@pytest.mark.parametrize("name", ["l2", "ip", "cosine", "l1", "linf"])
@pytest.mark.parametrize(
    "backend", [pytest.param("cpu", marks=pytest.mark.long_cpu), BACKENDS[1]]
)
@pytest.mark.parametrize("load", [sift, fashion_mnist])
def test_data(request, load, name, backend):
    try:
        xq, xb = load()
    except (FileNotFoundError, ImportError) as error:
        pytest.skip(f"{str(error)[:60]} ...")
    metric, p, name = METRICS[name]
    true = canonical.distances_of_whole_numbers(xq, xb, name)
    for D, I in search(request, backend, xq, xb, 100, metric, p):
        canonical.check(true, 100, D, I, name)


# ---- canonical.py itself -------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("d", [1, 8, 21])
def test_canonical_is_near_the_oracle(name, d):
    _, p, name = METRICS[name]
    xq, xb = np.abs(make("normal", 5, d, 1)), np.abs(make("normal", 60, d, 2))
    xb[::9, : d // 2] = 0
    xb[7] = 0
    found = canonical.distances(xq, xb, name, p)
    true = oracle.distances(xq, xb, metric=name, p=p)
    assert found.dtype == np.float32 and found.shape == (5, 60)
    np.testing.assert_allclose(found, true, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["l2", "ip", "cosine", "l1", "linf"])
def test_canonical_of_whole_numbers(name):
    rng = np.random.default_rng(3)
    xq, xb = (rng.integers(0, 256, (n, 51)).astype("f4") for n in (4, 300))
    xb[5] = 0
    np.testing.assert_array_equal(
        canonical.distances_of_whole_numbers(xq, xb, name),
        canonical.distances(xq, xb, name),
    )


def test_canonical_check():
    true = np.array([[3, 1, 3, 2]], "f4")
    D, I = np.array([[1, 2, 3]], "f4"), np.array([[1, 3, 0]])
    canonical.check(true, 3, D, I, "l2")
    for places in ([[1, 3, 2]], [[3, 1, 0]]):
        with pytest.raises(AssertionError):
            canonical.check(true, 3, D, np.array(places), "l2")
    with pytest.raises(AssertionError):
        canonical.check(true, 3, np.nextafter(D, 9, dtype="f4"), I, "l2")
    canonical.check(true, 2, np.array([[3, 3]], "f4"), np.array([[0, 2]]), "ip")
    with pytest.raises(AssertionError):
        canonical.check(true, 5, np.resize(D, (1, 5)), np.array([[1, 3, 0, 2, 0]]), "l2")
