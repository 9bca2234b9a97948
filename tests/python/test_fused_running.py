"""How the CPU index and knn run: on subsets, by forced variants, in threads, and
until they are interrupted."""

import signal
import threading
import time
from pathlib import Path

import faiss
import numpy as np
import oracle
import pytest
from conftest import CPU_METRICS, for_metric, index_of, make

import faiss_bits

VARIANTS = ("buffered", "var1", "var5", "var6", "direct")


# ---- subsets ----------------------------------------------------------------


@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
def test_knn_subset(metric, argument, name):
    (x,) = for_metric(name, make("normal", 300, 9, 1))
    rng = np.random.default_rng(2)
    queries, references = rng.integers(0, 300, 40), rng.permutation(300)[:120]
    # Results are rows of x; the oracle sees the references in their order.
    order = np.sort(references)
    calls = [lambda k: faiss_bits.knn_subset(
        x, queries, references, k, metric=metric, metric_arg=argument
    )]
    if not isinstance(metric, str):
        index = index_of(x, metric, argument)
        calls.append(lambda k: index.knn_subset(queries, references, k))
    for call in calls:
        for k in (1, 16, 130):
            D, I = call(k)
            inside = np.where(I < 0, -1, np.searchsorted(order, I))
            oracle.check_knn(
                x[queries], x[order], k, D, inside, metric=name, p=argument
            )


def test_knn_subset_takes_what_numpy_has():
    x = make("ties", 60, 6, 1)
    D, I = faiss_bits.knn_subset(x, [3, 4], None, 5)
    oracle.check_knn(x[[3, 4]], x, 5, D, I)
    index = index_of(x)
    for queries in (np.array([3, 4], np.int32), np.array([3, 9, 4])[::2], (3, 4)):
        for other in (x, np.asfortranarray(x), x.astype("f2"), x.astype("f8")):
            D2, I2 = faiss_bits.knn_subset(other, queries, None, 5)
            assert (D2 == D).all() and (I2 == I).all()
        D2, I2 = index.knn_subset(queries, None, 5)
        assert (D2 == D).all() and (I2 == I).all()
    D3, I3 = np.zeros((2, 5), np.float32), np.zeros((2, 5), np.int32)
    out = faiss_bits.knn_subset(x, [3, 4], None, 5, D=D3, I=I3)
    assert out[0] is D3 and out[1] is I3 and (I3 == I).all()
    D4, I4 = index.knn_subset(None, [], 2)
    assert D4.shape == (60, 2) and (I4 == -1).all()
    assert index.knn_subset([], None, 2)[1].shape == (0, 2)


@pytest.mark.parametrize(
    "queries, references, error, words",
    [
        ([0, 60], None, ValueError, ["query_ids", "60"]),
        ([-1], None, ValueError, ["query_ids", "-1"]),
        (None, [5, 2**40], ValueError, ["reference_ids", str(2**40)]),
        ([[1]], None, ValueError, ["query_ids", "(1, 1)"]),
        ([0.5], None, TypeError, ["query_ids", "float64"]),
    ],
)
def test_knn_subset_names_bad_ids(queries, references, error, words):
    x = make("normal", 60, 6, 1)
    for call in (index_of(x).knn_subset, lambda *a: faiss_bits.knn_subset(x, *a)):
        with pytest.raises(error) as caught:
            call(queries, references, 3)
        for word in words:
            assert word in str(caught.value)
        with pytest.raises(ValueError, match="k = 2147483648 is more than"):
            call([0], [0], 2**31)


# ---- how it searches ---------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("q", [1, 50])
def test_choice(variant, q):
    xq, xb = make("normal", q, 20, 1), make("normal", 900, 20, 2)
    index = index_of(xb)
    for target in faiss_bits.swigfaiss_bits.fusedTargets():
        choice = faiss_bits.FusedChoice(variant, target=target)
        index.choice = choice
        for D, I in (
            index.search(xq, 30),
            faiss_bits.knn_subset(
                np.concatenate([xb, xq]), range(900, 900 + q), range(900), 30,
                choice=choice,
            ),
        ):
            oracle.check_knn(xq, xb, 30, D, I)
        plan = index.plan(q, 30)
        assert variant in plan and target in plan
        assert plan.partition("predict")[0] == faiss_bits.cpu_plan(
            q, 900, 20, 30, choice=choice
        ).partition("predict")[0]


def has_avx2():
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def test_arithmetic_changes_no_bit():
    xq, xb = make("normal", 90, 70, 1), make("normal", 900, 70, 2)
    index = index_of(xb)
    expected = index.search(xq, 30)
    plans = {}
    for arithmetic in ("components", "int16", "bytes", "doubles"):
        index.choice = faiss_bits.FusedChoice(arithmetic=arithmetic)
        try:
            D, I = index.search(xq, 30)
        except RuntimeError as error:  # an instruction set without it
            assert arithmetic != "components"
            assert "choice.arithmetic" in str(error)
            # Not on the processors that all of its kernels are for; bytes want
            # more of the processor, and of the system.
            assert arithmetic == "bytes" or not has_avx2()
            continue
        assert np.array_equal(D, expected[0]) and np.array_equal(I, expected[1])
        plans[arithmetic] = index.plan(90, 30)
    assert "int16" not in plans["components"]
    assert "int16" in plans.get("int16", "int16")
    assert "bytes" in plans.get("bytes", "bytes")
    assert "doubles" in plans["doubles"]


def test_choice_names_its_mistakes():
    choice = faiss_bits.FusedChoice()
    assert choice.variant == "auto" and choice.target == ""
    assert choice.arithmetic == "auto"
    for call, error, word in (
        (lambda: setattr(choice, "variant", "fast"), ValueError, "fast"),
        (lambda: setattr(choice, "variant", 3), TypeError, "int"),
        (lambda: setattr(choice, "varient", "var1"), AttributeError, "varient"),
        (lambda: setattr(choice, "arithmetic", "int8"), ValueError, "int8"),
        (lambda: setattr(choice, "arithmetic", 16), TypeError, "int"),
        (lambda: faiss_bits.FusedChoice(queryBlock=-1), ValueError, "queryBlock"),
        (lambda: faiss_bits.FusedChoice(depthBlock=1.5), TypeError, "depthBlock"),
        (
            lambda: faiss_bits.cpu_plan(1, 2, 3, 4, choice="var1"),
            TypeError,
            "choice",
        ),
        (
            lambda: faiss_bits.cpu_plan(1, 2, 3, 4, dtype="float16"),
            ValueError,
            "dtype",
        ),
        (lambda: faiss_bits.cpu_plan(1, 2, 0, 4), ValueError, "d = 0"),
        (lambda: faiss_bits.cpu_plan(1, 2, 2**31, 4), ValueError, "d = 2147483648"),
        (lambda: faiss_bits.cpu_plan(1, 2, 3, 2**31), ValueError, "k = 2147483648"),
        (
            lambda: faiss_bits.FusedChoice(vectorBlock=2**40),
            ValueError,
            "vectorBlock = 1099511627776 is more than",
        ),
    ):
        with pytest.raises(error, match=word):
            call()
    x = make("normal", 5, 3, 1)
    index = index_of(x)
    index.choice.target = "NOT_A_TARGET"
    with pytest.raises(RuntimeError, match="NOT_A_TARGET"):
        index.search(x, 1)


def test_plan_is_a_line():
    index = index_of(make("normal", 1000, 32, 1))
    for dtype in ("float32", "float64"):
        for nq, k in ((1, 1), (1000, 10), (3, 1000)):
            plan = faiss_bits.cpu_plan(nq, 1000, 32, k, dtype=dtype)
            assert any(v in plan for v in VARIANTS) and "\n" not in plan
    assert "nan" not in faiss_bits.cpu_plan(0, 0, 3, 1)
    assert any(v in index.plan(10, 3) for v in VARIANTS)


def test_threads_do_not_change_the_result():
    xq, xb = make("normal", 70, 24, 1), make("normal", 20000, 24, 2)
    index = index_of(xb)
    before = faiss.omp_get_max_threads()
    results = []
    for threads in (1, 2, 3):
        faiss.omp_set_num_threads(threads)
        results.append([index.search(x, 40) for x in (xq, xq[:2])])
    faiss.omp_set_num_threads(before)
    for result in results[1:]:
        for (D, I), (D2, I2) in zip(results[0], result):
            assert D.tobytes() == D2.tobytes() and (I == I2).all()


def test_from_many_threads():
    xq, xb = make("normal", 10, 8, 1), make("normal", 3000, 8, 2)
    index = index_of(xb)
    D, I = index.search(xq, 5)
    wrong = []

    def work():
        for _ in range(10):
            D2, I2 = index.search(xq, 5)
            if not (np.array_equal(D, D2) and np.array_equal(I, I2)):
                wrong.append((D2, I2))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- interrupts --------------------------------------------------------------

# Takes some seconds on any machine, so that it can be stopped on the way.
LONG_N, LONG_D = 200_000, 128


@pytest.fixture(scope="module")
def long_search():
    xb = np.random.default_rng(0).random((LONG_N, LONG_D), np.float32)
    index = index_of(xb)
    return index, xb


def interrupt_after(seconds):
    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return before


def lists_of(x, nlist):
    """Of vectors in lists that are all searched; nothing is trained."""
    quantizer = index_of(x[:nlist])
    index = faiss_bits.IndexFusedIVFFlat(quantizer, x.shape[1], nlist)
    index.is_trained = True
    index.add(x)
    index.nprobe = nlist
    return index


@pytest.mark.parametrize("k", [None, 10])
def test_keyboard_interrupt_in_lists(long_search, k):
    _, xb = long_search
    index = lists_of(xb, 16)
    before = interrupt_after(0.3)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            if k is None:
                index.range_search(xb[:20_000], 5)
            else:
                index.search(xb, k)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 5
    assert index.search(xb[:3], 1)[1].tolist() == [[0], [1], [2]]


def test_ranges_in_lists_are_those_of_fewer_queries():
    """Many queries are searched in parts, between which interrupts are heard."""
    x = np.random.default_rng(0).random((20_000, 64), np.float32)
    index = lists_of(x, 8)
    lims, D, I = index.range_search(x[:500], 6.5)
    parts = [index.range_search(x[i : i + 5], 6.5) for i in range(0, 500, 5)]
    assert lims[-1] > 500
    counts = np.concatenate([np.diff(part[0].astype(np.int64)) for part in parts])
    assert np.array_equal(np.diff(lims.astype(np.int64)), counts)
    assert np.array_equal(D, np.concatenate([part[1] for part in parts]))
    assert np.array_equal(I, np.concatenate([part[2] for part in parts]))


@pytest.mark.parametrize("what", ["search", "range_search", "knn", "subset"])
def test_keyboard_interrupt(long_search, what):
    if what == "knn" and faiss_bits.backend() == "gpu":
        pytest.skip("knn runs on the GPU here")
    index, xb = long_search
    calls = {
        "search": lambda: index.search(xb, 10),
        "range_search": lambda: index.range_search(xb, 5),
        "knn": lambda: faiss_bits.knn(xb, xb, 10),
        "subset": lambda: index.knn_subset(None, None, 10),
    }
    before = interrupt_after(0.3)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            calls[what]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 5
    assert index.search(xb[:3], 1)[1].tolist() == [[0], [1], [2]]


@pytest.mark.skipif(
    not hasattr(faiss, "TimeoutGuard"), reason="this FAISS has no TimeoutGuard"
)
def test_timeout_guard(long_search):
    index, xb = long_search
    with faiss.TimeoutGuard(0.2):
        with pytest.raises(RuntimeError, match="interrupted"):
            index.search(xb, 10)
    assert index.search(xb[:3], 1)[1].tolist() == [[0], [1], [2]]
