"""faiss_bits.knn against the oracle, on whichever backend there is."""

import faiss
import numpy as np
import oracle
import pytest
from conftest import CPU_METRICS, KINDS, METRICS, for_metric, index_of, make
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits
from faiss_bits import arrays

IP = faiss.METRIC_INNER_PRODUCT


def check(xq, xb, k, metric, **kwargs):
    D, I = faiss_bits.knn(xq, xb, k, metric=metric, **kwargs)
    assert D.dtype == np.float32
    oracle.check_knn(xq, xb, k, D, I, metric == IP)
    oracle.check_tie_order(D, I)
    return D, I


# Both sides of every edge: of vector widths, of warps, of FAISS's switch from
# single distances to matrix products at 20 queries, and k beyond n.
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "q, n, d, k",
    [
        (1, 1, 1, 1),
        (1, 1, 1, 2),
        (1, 0, 3, 1),
        (1, 0, 3, 5),
        (0, 10, 3, 2),
        (3, 31, 3, 31),
        (3, 32, 4, 32),
        (3, 33, 5, 33),
        (19, 100, 7, 10),
        (20, 100, 8, 10),
        (21, 100, 9, 101),
        (2, 1023, 31, 255),
        (2, 1024, 32, 256),
        (2, 1025, 33, 257),
        (65, 300, 128, 299),
        (1, 3000, 2, 2047),
        (1, 3000, 2, 2048),
        (5, 2000, 2, 2048),
        (5, 3000, 2, 2049),
        (1, 5000, 3, 4096),
        (40, 3000, 4, 2999),
        (40, 3000, 4, 3000),
        (3, 3000, 4, 3001),
        (2, 50, 4, 4000),
    ],
)
def test_edges(q, n, d, k, metric):
    check(make("normal", q, d, 1), make("normal", n, d, 2), k, metric)


@given(
    q=st.integers(1, 40),
    n=st.integers(1, 200),
    d=st.integers(1, 40),
    k=st.integers(1, 220),
    kind=st.sampled_from(KINDS),
    metric=st.sampled_from(METRICS),
    seed=st.integers(0, 1000),
)
def test_any_size_and_kind(q, n, d, k, kind, metric, seed):
    check(make(kind, q, d, seed + 1), make(kind, n, d, seed), k, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_column_major_float16_and_given_outputs(metric):
    xq, xb = make("ties", 7, 6, 1), make("ties", 50, 6, 2)
    D, I = check(xq, xb, 5, metric)
    for a, b in (
        (np.asfortranarray(xq), xb),
        (xq, np.asfortranarray(xb)),
        (xq.astype(np.float16), xb.astype(np.float16)),  # exact in both
        (np.repeat(xq, 2, axis=1)[:, ::2], xb),
    ):
        D2, I2 = faiss_bits.knn(a, b, 5, metric=metric)
        assert (D2 == D).all()
        oracle.check_knn(xq, xb, 5, D2, I2, metric == IP)
    D3, I3 = np.zeros((7, 5), np.float32), np.zeros((7, 5), np.int32)
    out = faiss_bits.knn(xq, xb, 5, D=D3, I=I3, metric=metric)
    assert out[0] is D3 and out[1] is I3
    assert (D3 == D).all() and (I3 == I).all()


def test_same_bits_every_time():
    xq, xb = make("normal", 30, 24, 1), make("normal", 500, 24, 2)
    D, I = faiss_bits.knn(xq, xb, 20)
    for _ in range(3):
        D2, I2 = faiss_bits.knn(xq, xb, 20)
        assert D2.tobytes() == D.tobytes() and I2.tobytes() == I.tobytes()


TYPES = ("f2", "f4", "f8", "i1", "i4", "u8")


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("of_vectors", TYPES)
@pytest.mark.parametrize("of_queries", TYPES)
def test_types_that_differ(of_queries, of_vectors, layout):
    """As if both had been given in the wider type; whole numbers as float32."""
    rng = np.random.default_rng(4)
    xq = (rng.random((9, 5)) * 100).astype(of_queries, order=layout)
    xb = (rng.random((60, 5)) * 100).astype(of_vectors)
    if "f8" in (of_queries, of_vectors):
        wide = "f8"
    else:
        wide = "f2" if of_queries == of_vectors == "f2" else "f4"
    D, I = faiss_bits.knn(xq, xb, 4, backend="cpu")
    assert D.dtype == ("f8" if wide == "f8" else "f4")
    oracle.check_knn(xq.astype(wide), xb.astype(wide), 4, D, I)
    D2, I2 = faiss_bits.knn(xq.astype(wide), xb.astype(wide), 4, backend="cpu")
    assert D.tobytes() == D2.tobytes() and I.tobytes() == I2.tobytes()


def test_byte_order_of_another_machine():
    xq, xb = make("normal", 3, 4, 1), make("normal", 20, 4, 2)
    D, I = faiss_bits.knn(xq, xb, 3)
    D2, I2 = faiss_bits.knn(xq.astype(">f4"), xb.astype(">f4"), 3)
    assert (D == D2).all() and (I == I2).all()
    with pytest.raises(TypeError, match="D is >f4"):
        faiss_bits.knn(xq, xb, 3, D=np.empty((3, 3), ">f4"))


def test_lists():
    xq, xb = make("normal", 3, 4, 1), make("normal", 20, 4, 2)
    D, I = faiss_bits.knn(xq.tolist(), xb.tolist(), 3)
    oracle.check_knn(xq, xb, 3, D, I)
    D, I = faiss_bits.knn([[1, 2]], [[5, 5], [1, 3]], 1)
    assert D.tolist() == [[1.0]] and I.tolist() == [[1]] and D.dtype == "f4"


X = np.zeros((4, 3), np.float32)


def read_only(shape, dtype):
    x = np.zeros(shape, dtype)
    x.flags.writeable = False
    return x


def test_read_only_inputs():
    """They are not written to, so they are taken."""
    xq, xb = make("normal", 3, 4, 1), make("normal", 20, 4, 2)
    D, I = faiss_bits.knn(xq, xb, 3)
    xq.flags.writeable = xb.flags.writeable = False
    D2, I2 = faiss_bits.knn(xq, xb, 3)
    assert (D == D2).all() and (I == I2).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8", "i4", "u1", "i8"])
def test_norms_are_converted(dtype):
    """As FAISS converts what it reads; what is converted is not written to."""
    norms = read_only(5, dtype)
    for x in (norms, norms.tolist(), np.repeat(norms, 2)[::2]):
        found = arrays.as_floats(x, "norms", 5)
        assert found.dtype == np.float32 and found.dtype.isnative
        assert found.flags.c_contiguous and (found == norms).all()
    for wrong, error, words in (
        (np.zeros(5, "c8"), TypeError, "norms is complex64"),
        (np.zeros(5, "?"), TypeError, "norms is bool"),
        (["a"] * 5, TypeError, "norms is str"),
        (np.zeros(4, "f4"), ValueError, r"norms has shape \(4,\), expected \(5,\)"),
        (np.zeros((5, 1), "f4"), ValueError, r"norms has shape \(5, 1\)"),
        (3.5, ValueError, r"norms has shape \(\)"),
    ):
        with pytest.raises(error, match=words):
            arrays.as_floats(wrong, "norms", 5)


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"k": 0}, ValueError, ["k = 0"]),
        ({"k": -1}, ValueError, ["k = -1"]),
        ({"k": 2.5}, TypeError, ["k = 2.5"]),
        ({"k": 2**31}, ValueError, ["k = 2147483648", "2147483647"]),
        ({"k": 2**70}, ValueError, ["k = 1180591620717411303424"]),
        ({"xq": X[0]}, ValueError, ["xq", "(3,)"]),
        ({"xb": X[None]}, ValueError, ["xb", "(1, 4, 3)"]),
        ({"xq": X[:, :2].copy()}, ValueError, ["xq", "2", "xb", "3"]),
        ({"xq": X[:, :0], "xb": X[:, :0]}, ValueError, ["xq has shape (4, 0)"]),
        ({"xq": X.astype("c8")}, TypeError, ["xq", "complex64"]),
        ({"xb": X.astype("?")}, TypeError, ["xb", "bool"]),
        ({"xb": X.astype("U3")}, TypeError, ["xb", "str"]),
        ({"xb": X.astype("f8"), "D": np.zeros((4, 2), "f4")}, TypeError,
         ["D", "float64"]),
        ({"metric": 99, "backend": "cpu"}, ValueError, ["metric", "99"]),
        ({"metric": 99}, ValueError, ["metric", "99"]),
        ({"metric": "l2"}, ValueError, ["metric", "'l2'"]),
        ({"metric_arg": 3}, ValueError, ["metric_arg = 3", "METRIC_Lp"]),
        ({"D": np.zeros((4, 1), "f4")}, ValueError, ["D", "(4, 1)", "(4, 2)"]),
        ({"D": np.zeros((4, 2), "f8")}, TypeError, ["D", "float64"]),
        ({"I": np.zeros((4, 2), "u4")}, TypeError, ["I", "uint32"]),
        ({"I": np.zeros((2, 4), "i8").T}, ValueError, ["I", "contiguous"]),
        ({"D": read_only((4, 2), "f4")}, ValueError, ["D is read-only"]),
        ({"I": read_only((4, 2), "i8")}, ValueError, ["I is read-only"]),
        ({"device": 10_000}, (ValueError, RuntimeError), ["device", "10000"]),
        ({"device": -2}, ValueError, ["device = -2"]),
        ({"backend": "GPU"}, ValueError, ["backend = 'GPU'", "'auto'"]),
        (
            {"search_mode": "exact"},
            ValueError,
            ["search_mode = 'exact'", "'certified'", "'plain'"],
        ),
        ({"search_mode": None}, TypeError, ["search_mode", "NoneType"]),
        ({"backend": None}, ValueError, ["backend = None", "'gpu'"]),
        (
            {"backend": "cpu", "device": 0},
            ValueError,
            ["device = 0", "backend = 'cpu'"],
        ),
        (
            {"backend": "cpu", "vectorNorms": np.zeros(4, "f4")},
            ValueError,
            ["vectorNorms", "backend = 'cpu'"],
        ),
        ({"backend": "cpu", "res": "any"}, ValueError, ["res", "backend = 'cpu'"]),
    ],
)
def test_errors_name_the_argument(change, error, words):
    arguments = {"xq": X, "xb": X, "k": 2, **change}
    with pytest.raises(error) as caught:
        faiss_bits.knn(**arguments)
    for word in words:
        assert word in str(caught.value), caught.value


@pytest.mark.cpu
@pytest.mark.parametrize(
    "what",
    [
        {"device": 0},
        {"vectorNorms": np.zeros(4, "f4")},
        {"res": "any"},
        {"backend": "gpu"},
        {"device": 0, "metric": faiss.METRIC_L1},
        {"backend": "gpu", "metric": faiss.METRIC_Canberra},
    ],
)
def test_nothing_is_ignored_without_a_gpu(what):
    with pytest.raises(RuntimeError, match="needs a GPU"):
        faiss_bits.knn(X, X, 1, **what)


# ---- the metrics and types of the CPU, with or without a GPU -----------------


@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("q", [1, 30])
def test_every_metric_and_type(metric, argument, name, dtype, q):
    xq, xb = make("normal", q, 17, 1), make("normal", 400, 17, 2)
    xq, xb = for_metric(name, xq.astype(dtype), xb.astype(dtype))
    for k in (1, 20, 405):
        D, I = faiss_bits.knn(xq, xb, k, metric=metric, metric_arg=argument)
        assert D.dtype == dtype and I.dtype == np.int64
        oracle.check_knn(xq, xb, k, D, I, metric=name, p=argument)
        oracle.check_tie_order(D, I)


def test_zero_vectors_have_cosine_zero():
    xb = np.array([[1, 0], [0, 0], [-1, 0], [5, 0]], np.float32)
    D, I = faiss_bits.knn(xb[:2], xb, 4, metric="cosine")
    assert I.tolist() == [[0, 3, 1, 2], [0, 1, 2, 3]]
    assert D.tolist() == [[1, 1, 0, -1], [0, 0, 0, 0]]


@pytest.mark.parametrize("p", [0.5, 1])
def test_lp_of_one_and_less(p):
    xq, xb = make("normal", 8, 5, 1), make("normal", 60, 5, 2)
    D, I = faiss_bits.knn(xq, xb, 9, metric=faiss.METRIC_Lp, metric_arg=p)
    oracle.check_knn(xq, xb, 9, D, I, metric="lp", p=p)


@pytest.mark.parametrize("p", [0, -1, np.inf, np.nan, 1e-300, 1e300])
def test_lp_needs_its_argument(p):
    with pytest.raises(ValueError, match="metric_arg"):
        faiss_bits.knn(X, X, 1, metric=faiss.METRIC_Lp, metric_arg=p)


def test_float64_outputs():
    x = make("normal", 9, 4, 1).astype("f8")
    D, I = np.zeros((9, 2)), np.zeros((9, 2), np.int32)
    out = faiss_bits.knn(x, np.asfortranarray(x), 2, D=D, I=I)
    assert out[0] is D and out[1] is I and (I[:, 0] == np.arange(9)).all()
    with pytest.raises(TypeError, match="D is float32, expected float64"):
        faiss_bits.knn(x, x, 2, D=D.astype("f4"))


# ---- what only our kernels promise -------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("q", [1, 40])
def test_nan_is_no_result_and_infinity_comes_last(metric, q):
    xq, xb = make("normal", q, 8, 1), make("normal", 100, 8, 2)
    bad = {3: np.nan, 50: np.nan, 99: np.inf, 7: -np.inf}
    for row, value in bad.items():
        xb[row, row % 8] = value
    good = np.array(sorted(set(range(100)) - set(bad)))
    D, I = faiss_bits.knn(xq, xb, 96, metric=metric)
    if metric == faiss.METRIC_L2:
        assert not np.isin(I, list(bad)).any()
        oracle.check_knn(
            xq, xb[good], 96, D, np.searchsorted(good, I)
        )
    else:
        assert not np.isin(I, [3, 50]).any()  # NaN; infinities are numbers
        true = oracle.distances(xq, xb, True)
        for row in range(q):
            infinite = np.flatnonzero(true[row] == np.inf)
            assert set(infinite) <= set(I[row, : len(infinite)])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("q", [1, 2, 40])
def test_nan_query_and_all_nan(metric, q):
    xb = make("normal", 50, 4, 1)
    nan = np.full((q, 4), np.nan, np.float32)
    limit = np.finfo(np.float32).max
    for xq, base in ((nan, xb), (xb[:q], np.full_like(xb, np.nan))):
        D, I = faiss_bits.knn(xq, base, 3, metric=metric)
        assert (I == -1).all()
        assert (D == (limit if metric == faiss.METRIC_L2 else -limit)).all()


@pytest.mark.cpu
@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_on_the_cpu(metric, argument, name, dtype):
    """k above the number of numbers, by knn, knn_subset and the index."""
    xb = make("normal", 60, 5, 2).astype(dtype)
    xb[::3, 2] = np.nan
    for q in (1, 30):
        xq, xb = for_metric(name, make("normal", q, 5, 1).astype(dtype), xb)
        xq[q // 2 :, 1] = np.nan
        x = np.concatenate([xb, xq])
        rows = range(60, 60 + q), range(60)
        for k in (1, 40, 41, 70):
            found = [
                faiss_bits.knn(xq, xb, k, metric=metric, metric_arg=argument),
                faiss_bits.knn_subset(
                    x, *rows, k, metric=metric, metric_arg=argument
                ),
            ]
            if not isinstance(metric, str) and dtype == "float32":
                found.append(index_of(xb, metric, argument).search(xq, k))
                found.append(index_of(x, metric, argument).knn_subset(*rows, k))
            for D, I in found:
                oracle.check_knn(xq, xb, k, D, I, metric=name, p=argument)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", METRICS)
def test_norms_device_and_resources(metric, res):
    xq, xb = make("ties", 40, 16, 1), make("ties", 700, 16, 2)
    D, I = check(xq, xb, 30, metric)
    for more in (
        {"vectorNorms": np.square(xb).sum(1)},
        {"vectorNorms": np.square(xb).sum(1).astype("i8")},
        {"vectorNorms": np.square(xb).sum(1).astype("f8").tolist()},
        {"device": 0},
        {"res": res},
        {"res": res, "device": 0},
    ):
        D2, I2 = check(xq, xb, 30, metric, **more)
        assert (I2 == I).all() and (D2 == D).all(), more


@pytest.mark.gpu
@pytest.mark.parametrize("metric", METRICS)
def test_as_knn_gpu(metric, res):
    xq, xb = make("normal", 100, 32, 1), make("normal", 5000, 32, 2)
    D, I = check(xq, xb, 10, metric)
    D2, I2 = faiss.knn_gpu(res, xq, xb, 10, metric=metric)
    np.testing.assert_allclose(D, D2, rtol=1e-4, atol=1e-4)
    assert (I == I2).mean() > 0.99
