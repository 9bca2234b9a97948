"""faiss_bits.select_k against the oracle."""

import re

import hypothesis.extra.numpy as hnp
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits


def check(keys, k, largest=False, **options):
    out, ids = faiss_bits.select_k(keys, k, largest=largest, **options)
    expected, expected_ids = oracle.select(keys, k, largest)
    assert out.dtype == keys.dtype and ids.dtype == np.int64
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(out, expected)


KEYS = np.zeros((2, 3), np.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    "k", [1, 2, 31, 32, 33, 127, 128, 129, 1024, 2047, 2048, 2049, 6000]
)
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


#: Every one of kernels/select/SelectAlgorithm.h, and the largest k it takes of
#: 7000 columns, or more than those.
ALGORITHMS = {
    "auto": 9000,
    "short_rows": 512,
    "bits": 2048,
    "sample_threshold": 9000,
    "bits_global": 9000,
    "sample_select": 9000,
    "sample_select_two_stage": 9000,
    "radix_select": 9000,
    "sort": 9000,
}


@pytest.mark.gpu
@pytest.mark.parametrize("name, limit", ALGORITHMS.items())
def test_every_algorithm(name, limit):
    keys = np.random.default_rng(1).integers(0, 500, (3, 7000)).astype(np.float32)
    for k in {1, 100, min(2048, limit), limit}:
        check(keys, k, algorithm=name)
        check(keys, k, largest=True, algorithm=name)
    if limit < 7000:
        with pytest.raises(RuntimeError, match=rf"{name}.*k = {limit + 1}"):
            faiss_bits.select_k(keys, limit + 1, algorithm=name)


@pytest.mark.gpu
@pytest.mark.parametrize("wrong", ["nonsense", "merge_queue", "partial_bitonic"])
def test_unknown_algorithms_are_told_all_names(wrong):
    """Those of research/queues are not in the library."""
    with pytest.raises(ValueError) as caught:
        faiss_bits.select_k(KEYS, 1, algorithm=wrong)
    names = re.search(rf"algorithm = '{wrong}' is none of (.*)", str(caught.value))
    assert set(names.group(1).split(", ")) == set(ALGORITHMS), caught.value


@pytest.mark.gpu
@pytest.mark.parametrize("k", [5, 300, 2500])
def test_unsorted_is_the_same_set(k):
    keys = np.random.default_rng(2).integers(0, 90, (5, 3000)).astype(np.float32)
    expected, expected_ids = oracle.select(keys, k)
    out, ids = faiss_bits.select_k(keys, k, sorted=False)
    order = np.argsort(ids, axis=1)
    by_id = np.argsort(expected_ids, axis=1)
    for got, want in ((ids, expected_ids), (out, expected)):
        np.testing.assert_array_equal(
            np.take_along_axis(got, order, 1), np.take_along_axis(want, by_id, 1)
        )


@pytest.mark.gpu
@pytest.mark.parametrize("where", ["cuda:0", "cpu"])
@pytest.mark.parametrize("k", [1, 40, 3000])
def test_bfloat16_tensors(torch, where, k):
    keys = torch.randn((4, 2500), generator=torch.Generator().manual_seed(k))
    keys = keys.to(torch.bfloat16).to(where)
    out, ids = faiss_bits.select_k(keys, k)
    assert out.dtype == torch.bfloat16 and ids.dtype == torch.int64
    assert out.device == keys.device and ids.device == keys.device
    # float32 holds every bfloat16, but for the largest one of a short row.
    as_float = keys.float().cpu().numpy()
    expected, expected_ids = oracle.select(as_float, k)
    np.testing.assert_array_equal(ids.cpu().numpy(), expected_ids)
    there = expected_ids >= 0
    out = out.float().cpu().numpy()
    np.testing.assert_array_equal(out[there], expected[there])
    assert (out[~there] == torch.finfo(torch.bfloat16).max).all()


class Bfloat16Array(np.ndarray):
    """What packages that add bfloat16 to numpy look like from outside."""

    dtype = type("dtype", (), {"name": "bfloat16"})()


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
@pytest.mark.parametrize("n, k", [(50, 10), (9000, 5000)])
def test_given_ids(dtype, n, k):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 5, (4, n)).astype(np.float32)
    ids = np.stack([rng.permutation(n * 20)[:n] for _ in range(4)]).astype(dtype)
    out, found = faiss_bits.select_k(keys, k, ids=ids)
    assert found.dtype == dtype
    for row in range(4):
        order = np.argsort(keys[row], kind="stable")[:k]  # ties by column
        assert (found[row] == ids[row, order]).all()
        assert (out[row] == keys[row, order]).all()


@pytest.mark.gpu
@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"k": 0}, ValueError, ["k = 0"]),
        ({"k": 2**31}, ValueError, ["k = 2147483648", "2147483647"]),
        ({"k": 2049, "algorithm": "bits"}, RuntimeError, ["bits", "k = 2049"]),
        ({"algorithm": "quick"}, ValueError, ["algorithm = 'quick'", "bits"]),
        ({"algorithm": 3}, TypeError, ["algorithm", "int"]),
        ({"keys": KEYS.view(Bfloat16Array)}, TypeError, ["keys", "bfloat16"]),
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
