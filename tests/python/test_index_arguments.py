"""Arguments of the methods of indexes that FAISS's Python takes unchecked, or
refuses without a word: ids that are no whole numbers, outputs of other shapes.
No GPU is needed: the classes of both parts share the checks."""

import faiss
import numpy as np
import pytest

import faiss_bits

N, D = 20, 4
X = np.random.default_rng(1).standard_normal((N, D)).astype(np.float32)


def flat():
    index = faiss_bits.IndexFusedFlat(D)
    index.add(X)
    return index


def lists():
    index = faiss_bits.IndexFusedIVFFlat(faiss_bits.IndexFusedFlat(D), D, 1)
    index.train(X)
    index.add(X)
    index.make_direct_map()
    return index


BOTH = [flat, lists]
FLOATS = np.full(2, 1.5, np.float32)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda i: i.remove_ids(3), ValueError, "ids has shape (), expected (any,)"),
        (lambda i: i.remove_ids(None), TypeError, "ids is object"),
        (lambda i: i.remove_ids(np.ones((2, 2), int)), ValueError, "ids has shape (2, 2)"),
        (lambda i: i.remove_ids(FLOATS), TypeError, "ids is float32"),
        (lambda i: i.remove_ids(np.ones(N, bool)), TypeError, "ids is bool"),
        (lambda i: i.remove_ids(np.array([2**63], np.uint64)), ValueError,
         "ids has 9223372036854775808"),
        (lambda i: i.reconstruct_batch(FLOATS), TypeError, "key is float32"),
        (lambda i: i.reconstruct_batch([[1]]), ValueError, "key has shape (1, 1)"),
        (lambda i: i.reconstruct_batch(1), ValueError, "key has shape ()"),
        (lambda i: i.reconstruct_batch([1], X), ValueError,
         "x has shape (20, 4), expected (1, 4)"),
        (lambda i: i.reconstruct(2**63), ValueError, "key = 9223372036854775808"),
        (lambda i: i.reconstruct(1, X), ValueError, "x has shape (20, 4)"),
        (lambda i: i.reconstruct(1, x=np.zeros(D)), TypeError, "x is float64"),
        (lambda i: i.reconstruct_n(0, -2), ValueError, "ni = -2"),
        (lambda i: i.reconstruct_n(1.5, 2), TypeError, "n0 = 1.5"),
        (lambda i: i.reconstruct_n("a"), TypeError, "n0 = 'a'"),
        (lambda i: i.reconstruct_n(0, 3.0), TypeError, "ni = 3.0"),
        (lambda i: i.reconstruct_n(0, 2**62), ValueError, "ni = 4611686018427387904"),
        (lambda i: i.reconstruct_n(N + 1), ValueError, f"n0 = {N + 1}"),
        (lambda i: i.reconstruct_n(0, 3, X), ValueError, "x has shape (20, 4), expected (3, 4)"),
        (lambda i: i.assign(X, 2, labels=np.zeros((N, 3), int)), ValueError,
         "labels has shape (20, 3), expected (20, 2)"),
        (lambda i: i.assign(X, 2, np.zeros((N, 2), np.int32)), TypeError, "labels is int32"),
        (lambda i: i.search_and_reconstruct(X, 2, R=np.zeros((N, 2), np.float32)),
         ValueError, "R has shape (20, 2), expected (20, 2, 4)"),
        (lambda i: i.search_and_reconstruct(X, 2, R=np.zeros((N, 2, D))),
         TypeError, "R is float64"),
    ],
)
def test_errors_name_the_argument(make, call, error, words):
    index = make()
    with pytest.raises(error) as caught:
        call(index)
    assert words in str(caught.value)
    assert index.ntotal == N
    np.testing.assert_array_equal(index.reconstruct_n(), X)


@pytest.mark.parametrize(
    "ids, error, words",
    [
        (np.full(N, 1.5), TypeError, "ids is float64"),
        (np.ones(N, bool), TypeError, "ids is bool"),
        (np.arange(3), ValueError, f"ids has shape (3,), expected ({N},)"),
        (np.arange(N)[None], ValueError, f"ids has shape (1, {N})"),
        (None, TypeError, "ids is object"),
        (np.full(N, 2**64 - 1, np.uint64), ValueError, "ids has 18446744073709551615"),
    ],
)
def test_ids_to_add(ids, error, words):
    """FAISS adds 1.5 as 1, and 2^64 - 1 as -1."""
    index = lists()
    with pytest.raises(error) as caught:
        index.add_with_ids(X, ids)
    assert words in str(caught.value)
    for x, wrong in ((X[:, :3], f"expected (any, {D})"), (X[0], f"({D},)")):
        with pytest.raises(ValueError) as caught:
            index.add_with_ids(x, np.arange(N))
        assert f"x has shape {x.shape}" in str(caught.value)
        assert wrong in str(caught.value)
    with pytest.raises(TypeError, match="x is complex"):
        index.add_with_ids(X + 1j, np.arange(N))
    assert index.ntotal == N


@pytest.mark.parametrize(
    "keys, x, error, words",
    [
        ([1.5], X[:1], TypeError, "keys is float64"),
        ([True], X[:1], TypeError, "keys is bool"),
        (np.array([2**63], np.uint64), X[:1], ValueError, "keys has 9223372036854775808"),
        ([1, 2], X[:1], ValueError, "keys has shape (2,), expected (1,)"),
        (1, X[:1], ValueError, "keys has shape ()"),
        (None, X[:1], TypeError, "keys is object"),
        ([1], X[:1, :3], ValueError, f"x has shape (1, 3), expected (any, {D})"),
        ([1], X[0], ValueError, f"x has shape ({D},)"),
        ([1], X[:1] + 1j, TypeError, "x is no array of numbers"),
        ([1], None, TypeError, "x is None"),
        ([1, N], X[:2], RuntimeError, f"ids = {N} (number 1 of 2) is in no list"),
        ([1, 2], [[1] * D, [np.nan] * D], RuntimeError, "x[1] is nearest to no list"),
    ],
)
def test_bad_updates(keys, x, error, words):
    """FAISS takes 1.5 as 1, and some of them for no error at all."""
    index = lists()
    with pytest.raises(error) as caught:
        index.update_vectors(keys, x)
    assert words in str(caught.value)
    assert index.ntotal == N
    np.testing.assert_array_equal(index.reconstruct_n(), X)


@pytest.mark.parametrize("make", BOTH)
def test_codes(make):
    index = make()
    codes = index.sa_encode(X)
    n, size = codes.shape
    np.testing.assert_array_equal(index.sa_decode(codes), X)
    out, x = np.empty_like(codes), np.empty_like(X)
    assert index.sa_encode(X, codes=out) is out and (out == codes).all()
    assert index.sa_decode(codes, x) is x and (x == X).all()
    for call, error, words in (
        (lambda: index.sa_encode(X[:, :3]), ValueError, f"x has shape ({N}, 3)"),
        (lambda: index.sa_encode(X[0]), ValueError, f"x has shape ({D},)"),
        (lambda: index.sa_encode(X.tolist()), TypeError, "x is a list"),
        (lambda: index.sa_encode(X + 1j), TypeError, "x is complex"),
        (lambda: index.sa_encode(X, out[:3]), ValueError, f"codes has shape (3, {size})"),
        (lambda: index.sa_encode(X, out.astype(int)), TypeError, "codes is int64"),
        (lambda: index.sa_decode(codes[:, 1:]), ValueError,
         f"codes has shape ({N}, {size - 1}), expected (any, {size})"),
        (lambda: index.sa_decode(codes[0]), ValueError, f"codes has shape ({size},)"),
        (lambda: index.sa_decode(codes.tolist()), TypeError, "codes is a list"),
        (lambda: index.sa_decode(None), TypeError, "codes is a NoneType"),
        (lambda: index.sa_decode(codes.astype(int)), TypeError, "codes is int64"),
        (lambda: index.sa_decode(codes, x[:3]), ValueError, "x has shape (3, 4)"),
        (lambda: index.sa_decode(codes, X.astype(float)), TypeError, "x is float64"),
    ):
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value)


def test_codes_to_add():
    index = lists()
    codes = index.sa_encode(X)
    index = faiss_bits.IndexFusedIVFFlat(faiss_bits.IndexFusedFlat(D), D, 1)
    index.train(X)
    for args, error, words in (
        ((codes[:, 1:],), ValueError, "codes has shape"),
        ((codes.tolist(),), TypeError, "codes is a list"),
        ((codes, np.full(N, 1.5)), TypeError, "ids is float64"),
        ((codes, np.arange(3)), ValueError, "ids has shape (3,)"),
    ):
        with pytest.raises(error) as caught:
            index.add_sa_codes(*args)
        assert words in str(caught.value)
    assert index.ntotal == 0
    index.add_sa_codes(codes[:5], list(range(10, 15)))
    index.add_sa_codes(codes[5:], ids=np.arange(5, N, dtype=np.int32))
    assert index.search(X, 1)[1].ravel().tolist() == [*range(10, 15), *range(5, N)]


def test_updates():
    index = lists()
    index.update_vectors([3, 5], X[:2].tolist())
    index.update_vectors(keys=np.array([7, 7], np.uint8), x=X[1:3].astype(float))
    expected = X.copy()
    expected[[3, 5, 7]] = X[[0, 1, 2]]
    np.testing.assert_array_equal(index.reconstruct_n(), expected)
    assert index.search(X[:1], 2)[1].tolist() == [[0, 3]]
    plain = faiss_bits.IndexFusedIVFFlat(faiss_bits.IndexFusedFlat(D), D, 1)
    plain.train(X)
    plain.add(X)
    with pytest.raises(RuntimeError, match="make_direct_map"):
        plain.update_vectors([1], X[:1])


@pytest.mark.parametrize("kind", [list, np.int32, np.uint8, np.uint64])
def test_ids_of_any_whole_type(kind):
    ids = np.arange(2, 5)
    ids = ids.tolist() if kind is list else ids.astype(kind)
    for index in (flat(), lists()):
        np.testing.assert_array_equal(index.reconstruct_batch(ids), X[2:5])
        np.testing.assert_array_equal(index.reconstruct_batch(key=ids), X[2:5])
        assert index.reconstruct_batch([]).shape == (0, D)
        np.testing.assert_array_equal(
            index.reconstruct_n(np.int32(3), np.int64(2)), X[3:5])
        np.testing.assert_array_equal(index.reconstruct_n(n0=3, ni=2), X[3:5])
        np.testing.assert_array_equal(index.reconstruct_n(3), X[3:])
        assert index.reconstruct_n(N).shape == (0, D)
    removed = lists()
    removed.reset()
    removed = faiss_bits.IndexFusedIVFFlat(faiss_bits.IndexFusedFlat(D), D, 1)
    removed.train(X)
    removed.add_with_ids(X[2:5], ids)
    assert removed.search(X[3:4], 1)[1] == 3
    for index in (flat(), removed):
        assert index.remove_ids(np.array([])) == 0
        assert index.remove_ids(ids) == 3
        assert index.remove_ids(faiss.IDSelectorRange(10**9, 10**9 + 1)) == 0


@pytest.mark.parametrize("make", BOTH)
def test_outputs_of_the_caller(make):
    index = make()
    labels = np.zeros((N, 2), np.int64)
    assert index.assign(X, 2, labels=labels) is labels
    assert index.assign(X, 2, labels) is labels
    np.testing.assert_array_equal(labels, index.search(X, 2)[1])
    R = np.zeros((N, 2, D), np.float32)
    assert index.search_and_reconstruct(X, 2, R=R)[2] is R
    np.testing.assert_array_equal(R[:, 0], X)
    x = np.zeros(D, np.float32)
    assert index.reconstruct(3, x) is x
    np.testing.assert_array_equal(x, X[3])
    x = np.zeros((2, D), np.float32)
    assert index.reconstruct_n(3, 2, x) is x
    assert index.reconstruct_batch([5, 6], x=x) is x
    np.testing.assert_array_equal(x, X[5:7])


@pytest.mark.parametrize("make", BOTH)
def test_queries_however_they_lie(make):
    """float32 rows go to C++ as they are, all others by FAISS's wrapper."""
    index = make()
    D, I = index.search(X, 3)
    raw = np.frombuffer(b"x" + X.tobytes(), np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(N, 4)
    frozen = X.copy()
    frozen.flags.writeable = False
    for x in (
        X.astype(np.float64),
        X.astype(">f4"),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1][::-1],
        unaligned,
        frozen,
        np.ma.array(X),
    ):
        found = index.search(x, 3)
        np.testing.assert_array_equal(found[0], D)
        np.testing.assert_array_equal(found[1], I)
    assert index.search(X[:0], 3)[0].shape == (0, 3)
    one = index.search(X[:1], 1)
    assert one[0].shape == (1, 1) and one[1] == 0
    row = np.broadcast_to(X[0], (5, 4))
    assert (index.search(row, 1)[1] == 0).all()


@pytest.mark.parametrize("make", BOTH)
def test_results_where_the_caller_wants_them(make):
    index = make()
    expected = index.search(X, 3)
    D, I = np.empty((N, 3), np.float32), np.empty((N, 3), np.int64)
    found = index.search(X, 3, D=D, I=I)
    assert found[0] is D and found[1] is I
    np.testing.assert_array_equal(D, expected[0])
    np.testing.assert_array_equal(I, expected[1])
    assert index.search(X, 3, D=D)[0] is D and index.search(X, 3, I=I)[1] is I
    sel = faiss.SearchParameters(sel=faiss.IDSelectorRange(3, 5))
    index.search(X, 3, params=sel, D=D, I=I)
    assert set(I.ravel()) == {-1, 3, 4}
    frozen = D.copy()
    frozen.flags.writeable = False
    for bad, error, words in (
        (D[:, :2], ValueError, "D has shape (20, 2)"),
        (np.empty((N, 6), np.float32)[:, ::2], ValueError, "D is not C-contiguous"),
        (D.astype(np.float64), TypeError, "D is float64"),
        (D.astype(">f4"), TypeError, "D is >f4"),
        (frozen, ValueError, "D is read-only"),
        (D.tolist(), TypeError, "D is list"),
    ):
        with pytest.raises(error) as caught:
            index.search(X, 3, D=bad, I=I)
        assert words in str(caught.value)
    with pytest.raises(TypeError, match="I is uint64"):
        index.search(X, 3, I=I.astype(np.uint64))
