"""faiss_bits.select_k against the oracle."""

import hypothesis.extra.numpy as hnp
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits


def check(keys, k, largest=False):
    out, ids = faiss_bits.select_k(keys, k, largest=largest)
    expected, expected_ids = oracle.select(keys, k, largest)
    assert out.dtype == keys.dtype and ids.dtype == np.int64
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(out, expected)


KEYS = np.zeros((2, 3), np.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("k", [1, 2, 31, 32, 33, 127, 128, 129, 1024, 2047, 2048])
def test_edges(k, dtype, largest):
    rng = np.random.default_rng(k)
    shapes = ((0, 5), (3, 0), (1, 1), (5, k - 1), (5, k), (3, k + 1), (2, 5000))
    for rows, cols in shapes:
        check(rng.standard_normal((rows, cols)).astype(dtype), k, largest)


@pytest.mark.gpu
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("order", ["ascending", "descending", "equal"])
def test_orders(order, largest):
    row = {
        "ascending": np.arange(3000),
        "descending": np.arange(3000)[::-1],
        "equal": np.ones(3000),
    }[order]
    check(np.stack([row, row]).astype(np.float32), 100, largest)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -1.0, 2.0]


@pytest.mark.gpu
@given(
    keys=hnp.arrays(
        st.sampled_from([np.float32, np.float16]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=70),
        elements=st.sampled_from(SPECIAL),
    ),
    k=st.integers(1, 80),
    largest=st.booleans(),
)
def test_ties_nan_and_infinity(keys, k, largest):
    check(keys, k, largest)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_given_ids(dtype):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 5, (4, 50)).astype(np.float32)
    ids = np.stack([rng.permutation(1000)[:50] for _ in range(4)]).astype(dtype)
    out, found = faiss_bits.select_k(keys, 10, ids=ids)
    assert found.dtype == dtype
    for row in range(4):
        order = np.lexsort((ids[row], keys[row]))[:10]
        assert (found[row] == ids[row, order]).all()
        assert (out[row] == keys[row, order]).all()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"k": 0}, ValueError, ["k = 0"]),
        ({"k": 2049}, RuntimeError, ["k = 2049"]),
        ({"keys": KEYS[0]}, ValueError, ["keys", "(3,)"]),
        ({"keys": KEYS.astype("f8")}, TypeError, ["keys", "float64"]),
        ({"ids": KEYS}, TypeError, ["ids", "float32"]),
        ({"ids": np.zeros((3, 2), "i8")}, ValueError, ["ids", "(3, 2)"]),
    ],
)
def test_errors_name_the_argument(change, error, words):
    with pytest.raises(error) as caught:
        faiss_bits.select_k(**{"keys": KEYS, "k": 1, **change})
    for word in words:
        assert word in str(caught.value), caught.value


@pytest.mark.gpu
def test_layouts_and_resources(res):
    keys = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    expected = faiss_bits.select_k(keys, 7)
    for same in (np.asfortranarray(keys), np.repeat(keys, 2, axis=1)[:, ::2]):
        for a, b in zip(faiss_bits.select_k(same, 7, res=res), expected):
            assert (a == b).all()
