"""EditDistanceIndex against plain dynamic programming."""

import random
import re
import signal
import threading
import time
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import faiss
import faiss_bits

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("auto", "trie", "brute_force", "list_of_clusters", "sss")
MOST = 2**31 - 1


def edit_distance(a, b):
    """Levenshtein's, row by row of the matrix."""
    steps = np.arange(len(b) + 1)
    other = np.array([ord(y) for y in b], np.int64)
    row = steps
    for i, x in enumerate(a):
        best = np.minimum(row[1:] + 1, row[:-1] + (other != ord(x)))
        row = np.concatenate(([i + 1], best))
        # Letters of b are inserted: row[j] <= row[j - 1] + 1.
        row = np.minimum.accumulate(row - steps) + steps
    return int(row[-1])


def test_reference():
    for a, b, distance in (("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3),
                           ("ab", "ba", 2), ("intention", "execution", 5)):
        assert edit_distance(a, b) == edit_distance(b, a) == distance


def distances(words, queries):
    """Of all pairs, [queries, words]."""
    return np.array(
        [[edit_distance(q, w) for w in words] for q in queries], np.int64
    ).reshape(len(queries), len(words))


def check_range(expected, found, most):
    lims, D, I = found
    assert (lims.dtype, D.dtype, I.dtype) == (np.int64, np.int32, np.int64)
    query, word = np.nonzero(expected <= most)
    counts = np.bincount(query, minlength=len(expected))
    assert lims.tolist() == [0, *np.cumsum(counts).tolist()]
    assert I.tolist() == word.tolist()
    assert D.tolist() == expected[query, word].tolist()


def check_nearest(expected, found, k):
    D, I = found
    assert D.shape == I.shape == (len(expected), k)
    for row, d, i in zip(expected, D.tolist(), I.tolist()):
        order = sorted(range(len(row)), key=lambda j: (row[j], j))[:k]
        short = [-1] * (k - len(order))
        assert i == order + short
        assert d == [row[j] for j in order] + [MOST] * len(short)


def test_the_reference():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3
    assert edit_distance("año", "ano") == 1


letters = st.one_of(st.sampled_from("ab"), st.characters(blacklist_categories=["Cs"]))
word_lists = st.one_of(
    st.lists(st.text(st.sampled_from("ab"), max_size=9), max_size=40),
    st.lists(st.text(st.sampled_from("abcé漢😀"), max_size=40), max_size=12),
    st.lists(st.text(letters, max_size=20), max_size=12),
)


@given(word_lists, word_lists, st.integers(0, 45), st.integers(1, 50))
def test_any_words(words, queries, most, k):
    index = faiss_bits.EditDistanceIndex(words, "cpu")
    assert index.ntotal == len(index) == len(words)
    queries = queries + words[:3]
    expected = distances(words, queries)
    for method in METHODS:
        check_range(expected, index.range_search(queries, most, method), most)
        check_nearest(expected, index.search(queries, k, method), k)


@pytest.mark.parametrize(
    "length", [1, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257]
)
def test_lengths_at_edges(length):
    rng = random.Random(length)

    def word(n):
        return "".join(rng.choice("abñ") for _ in range(n))

    words = [word(max(0, length + i)) for i in (-3, -2, -1, 0, 0, 1, 2)]
    queries = [w[1:] + "b" for w in words] + [word(length)]
    index = faiss_bits.EditDistanceIndex(words)
    expected = distances(words, queries)
    for most in (0, 1, 2, 4, 5, length // 2, length, 10 * length, 2**40):
        for method in METHODS:
            check_range(expected, index.range_search(queries, most, method), most)


@pytest.fixture(scope="module")
def real():
    """The different words of the documents, as they come."""
    text = "\n".join(path.read_text() for path in sorted(ROOT.rglob("docs/*.md")))
    return list(dict.fromkeys(re.findall(r"[^\W_]+", text)))


def test_real_words(real):
    assert len(real) > 2000
    rng = random.Random(5)
    queries = [w[:1] + w[2:] for w in rng.sample(real, 25)] + ["", "teh", "Müller"]
    expected = distances(real, queries)
    index = faiss_bits.EditDistanceIndex(real)
    for method in METHODS:
        for most in (0, 1, 2, 3, 4, 7):
            if index.on_gpu and method == "trie" and most > 4:
                continue
            check_range(expected, index.range_search(queries, most, method), most)
        for k in (1, 10, 3000):
            check_nearest(expected, index.search(queries, k, method), k)


def test_phrases(real):
    """Longer than 63 letters mostly, with beginnings and lengths that many share."""
    rng = random.Random(6)
    starts = [" ".join(rng.sample(real, 4)) for _ in range(6)]
    words = [" ".join([rng.choice(starts), *rng.sample(real, rng.randrange(1, 9))])
             for _ in range(80)]
    words += [w + "s" for w in words[:10]] + [w[1:-3] for w in words[:10]]
    queries = [w[:9] + w[10:] for w in words[::8]] + [starts[0], words[3] + "xyz"]
    assert max(map(len, queries)) > 64
    expected = distances(words, queries)
    index = faiss_bits.EditDistanceIndex(words)
    for most in (0, 1, 3, 4, 6, 20, 90):
        for method in ("auto", "trie", "brute_force"):
            check_range(expected, index.range_search(queries, most, method), most)
    check_nearest(expected, index.search(queries, 12), 12)


def test_bytes_and_any_sequence(real):
    index = faiss_bits.EditDistanceIndex(iter(w.encode() for w in real[:500]))
    same = faiss_bits.EditDistanceIndex(np.array(real[:500]))
    found = index.range_search((w for w in real[490:510]), 2)
    for a, b in zip(found, same.range_search([w.encode() for w in real[490:510]], 2)):
        assert a.tolist() == b.tolist()
    assert index.words[3] == real[3].encode() and same.words[3] == real[3]


def test_code_points_count():
    index = faiss_bits.EditDistanceIndex(["é", "e\u0301", "😀😀", "漢字"], "cpu")
    check_range(distances(index.words, ["e", "😀", "漢"]),
                index.range_search(["e", "😀", "漢"], 1), 1)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda i: faiss_bits.EditDistanceIndex("abc"), TypeError,
         "words is one str, expected a list of words"),
        (lambda i: faiss_bits.EditDistanceIndex(7), TypeError, "words is a int"),
        (lambda i: faiss_bits.EditDistanceIndex(["a", 3]), TypeError,
         r"words\[1\] is a int, expected str or bytes"),
        (lambda i: faiss_bits.EditDistanceIndex(["a", "b\ud800"]), ValueError,
         r"words\[1\] is not Unicode text: letter 1 is U\+D800"),
        (lambda i: faiss_bits.EditDistanceIndex(["a", b"x\xff"]), RuntimeError,
         r"words\[1\] is not UTF-8: byte 1 is 0xFF"),
        (lambda i: faiss_bits.EditDistanceIndex(["a"], "tpu"), RuntimeError,
         "device = 'tpu' is none of auto, cpu, gpu"),
        (lambda i: faiss_bits.EditDistanceIndex(["a"], 1), TypeError, "device is a"),
        (lambda i: i.range_search("abc", 1), TypeError, "queries is one str"),
        (lambda i: i.range_search([b"\xc3"], 1), RuntimeError,
         r"queries\[0\] is not UTF-8: byte 0 is 0xC3"),
        (lambda i: i.range_search(["a"], -1), ValueError, "max_distance = -1"),
        (lambda i: i.range_search(["a"], 1.5), TypeError, "max_distance = 1.5"),
        (lambda i: i.range_search(["a"], 1, "fast"), RuntimeError,
         "method = 'fast' is none of auto, brute_force, trie"),
        (lambda i: i.range_search(["a"], 1, None), TypeError, "method is a NoneType"),
        (lambda i: i.search(["a"], 0), ValueError, "k = 0"),
        (lambda i: i.search(["a"], 2**31), ValueError, "k = 2147483648"),
        (lambda i: i.search([b"\xc3"], 1), RuntimeError, r"queries\[0\] is not UTF-8"),
        (lambda i: i.search(["a"], 1, "fast"), RuntimeError, "method = 'fast'"),
        (lambda i: i.plan(2**70, 2), ValueError, "query_length = 1180591620717411303424"),
        (lambda i: i.plan(-1, 2), ValueError, "query_length = -1"),
        (lambda i: i.plan(1, -2), ValueError, "max_distance = -2"),
        (lambda i: i.plan(1, 2, "fast"), RuntimeError, "method = 'fast'"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(faiss_bits.EditDistanceIndex(["paper"]))


@pytest.mark.cpu
def test_no_gpu():
    with pytest.raises(RuntimeError, match="device = 'gpu': "):
        faiss_bits.EditDistanceIndex(["a"], "gpu")


def test_says_what_it_is():
    index = faiss_bits.EditDistanceIndex(["a", "b"], "cpu")
    assert repr(index) == "<EditDistanceIndex of 2 words on the CPU>"
    assert not index.on_gpu
    assert index.plan(8, 2).startswith("trie by automata")
    assert index.plan(8, 9).startswith("brute force")
    assert index.plan(0, 0) == index.plan(1, 0)


@pytest.mark.gpu
def test_gpu_and_cpu_agree(real):
    gpu = faiss_bits.EditDistanceIndex(real, "gpu")
    cpu = faiss_bits.EditDistanceIndex(real, "cpu")
    assert gpu.on_gpu and gpu.plan(8, 2) == "trie, on the GPU"
    queries = [w[:1] + w[2:] for w in real[::3]] + ["", "漢字"]
    for method in METHODS:
        for most in (0, 2, 4):
            for a, b in zip(gpu.range_search(queries, most, method),
                            cpu.range_search(queries, most)):
                assert (a == b).all()
        for k in (1, 20):
            for a, b in zip(gpu.search(queries[:200], k), cpu.search(queries[:200], k)):
                assert (a == b).all()
    assert gpu.plan(64, 2) == "brute_force, on the GPU"
    with pytest.raises(
        RuntimeError, match="one has 64 letters, the method 'trie' takes 63"
    ):
        gpu.range_search(["x" * 64], 1, "trie")
    with pytest.raises(RuntimeError, match="one has 4096 letters, the GPU takes"):
        gpu.range_search(["x" * 4096], 1)
    auto = faiss_bits.EditDistanceIndex(real)
    for n in (64, 4096):
        assert auto.range_search(["x" * n], 1)[0].tolist() == [0, 0]


@pytest.mark.gpu
def test_long_queries_on_the_gpu():
    """Of every length at which kernels change, mixed with short ones."""
    rng = random.Random(4)

    def edited(word):
        for _ in range(rng.randrange(4)):
            place = rng.randrange(len(word))
            word = word[:place] + rng.choice(("", "x", "yz")) + word[place + 1 :]
        return word

    words = ["".join(rng.choice("abcñ漢") for _ in range(n))
             for n in (0, 5, 62, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512,
                       513, 2047, 2048, 2049, 4090)]
    queries = [edited(w) for w in words[1:] for _ in range(2)] + ["", "ab"]
    rng.shuffle(queries)
    index = faiss_bits.EditDistanceIndex(words, "gpu")
    expected = distances(words, queries)
    for most in (0, 2, 4, 9, 300, 5000):
        for method in ("auto", "brute_force", "list_of_clusters", "sss"):
            check_range(expected, index.range_search(queries, most, method), most)
    for k in (1, 3, 30):
        check_nearest(expected, index.search(queries, k), k)


@pytest.mark.gpu
def test_results_on_the_device(real, torch):
    index = faiss_bits.EditDistanceIndex(real)
    queries = [w[:1] + w[2:] for w in real[::3]] + ["", "漢字", "x" * 80]
    for method, most in (("auto", 2), ("sss", 1), ("trie", 0), ("trie", 5),
                         ("auto", 6), ("auto", 2**40)):
        some = queries[-30:] if most > 4 else queries
        wanted = index.range_search(some, most, method)
        found = index.range_search(some, most, method, on_device=True)
        for got, want in zip(found, wanted):
            assert got.device == torch.device("cuda", 0)
            assert np.array_equal(got.cpu().numpy(), want)
            assert got.cpu().numpy().dtype == want.dtype
    lims, D, I = index.range_search(["x" * 80], 2, on_device=True)
    assert lims.tolist() == [0, 0] and D.shape == I.shape == (0,)
    lims, D, I = index.range_search([], 2, on_device=True)
    assert lims.tolist() == [0] and D.is_cuda and len(I) == 0

    # On any stream of torch, whose memory comes and goes.
    wanted = index.range_search(queries, 3)
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(5):
            busy = torch.ones(1 << 26, device="cuda")
            busy = busy.cumsum(0)
            del busy
            found = index.range_search(queries, 3, on_device=True)
            for got, want in zip(found, wanted):
                assert np.array_equal(got.cpu().numpy(), want)
    for error, args in ((ValueError, (["a"], -1)), (RuntimeError, ([b"\xff"], 1)),
                        (RuntimeError, (["a"], 1, "fast"))):
        with pytest.raises(error):
            index.range_search(*args, on_device=True)


def test_results_on_no_device():
    index = faiss_bits.EditDistanceIndex(["a"], "cpu")
    with pytest.raises(RuntimeError, match="on_device = True, but the index is on"):
        index.range_search(["a"], 1, on_device=True)
    offsets = np.zeros(1, np.int64)
    with pytest.raises(RuntimeError, match="are wanted, but this index is on the CPU"):
        faiss_bits.swigfaiss_bits.rangeOfWordsOnDevice(
            index._index, 0, None, faiss.swig_ptr(offsets), 1, "auto",
            None, 0,
        )


def test_threads_search_one_index(real):
    index = faiss_bits.EditDistanceIndex(real)
    queries = real[:300]
    expected = index.range_search(queries, 2)
    found = [None] * 6

    def run(i):
        found[i] = index.range_search(queries, 2, METHODS[i % len(METHODS)])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        for a, b in zip(expected, one):
            assert (a == b).all()


@pytest.mark.cpu
@pytest.mark.parametrize("what", ["range_search", "search"])
def test_keyboard_interrupt(real, what):
    """Ctrl-C ends a search of minutes, and the index is as it was."""
    index = faiss_bits.EditDistanceIndex(real * 20)
    queries = real * 40
    calls = {
        "range_search": lambda: index.range_search(queries, 9, "brute_force"),
        "search": lambda: index.search(queries, 100, "brute_force"),
    }

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            calls[what]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 5
    assert index.search(real[:1], 1)[0].tolist() == [[0]]
