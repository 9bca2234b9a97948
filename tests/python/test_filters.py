"""Filters of the GPU index: selectors of FAISS, and DeviceSelector."""

import gc

import faiss
import numpy as np
import oracle
import pytest
from conftest import METRICS, make, selectors
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits

pytestmark = pytest.mark.gpu
IP = faiss.METRIC_INNER_PRODUCT
N = 700


def index_of(res, xb, metric=faiss.METRIC_L2, half=False):
    config = faiss_bits.GpuIndexBitsFlatConfig()
    config.useFloat16 = half
    index = faiss_bits.GpuIndexBitsFlat(res, xb.shape[1], metric, config)
    index.add(xb)
    return index


def with_selector(selector):
    params = faiss.SearchParameters(sel=selector)
    params.selector = selector  # FAISS 1.7.3 does not keep it
    return params


def expect_only(ids, xq, xb, k, D, I, metric):
    """The result of an index of xb[ids] alone, with their ids."""
    inside = np.where(I < 0, -1, np.searchsorted(ids, I))
    assert (I[I >= 0] == ids[inside[I >= 0]]).all()
    oracle.check_knn(xq, xb[ids], k, D, inside, metric == IP)
    oracle.check_tie_order(D, I)


@pytest.mark.parametrize("make_selector", selectors(N).values(), ids=selectors(N))
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("q", [1, 20])
def test_every_selector(res, make_selector, metric, q):
    xq, xb = make("normal", q, 8, 1), make("normal", N, 8, 2)
    selector = make_selector()
    ids = np.array([i for i in range(N) if selector.is_member(i)])
    index = index_of(res, xb, metric)
    D, I = index.search(xq, 12, params=with_selector(selector))
    expect_only(ids, xq, xb, 12, D, I, metric)
    prepared = faiss_bits.DeviceSelector(selector, N)
    assert (prepared.numSelected(), prepared.numVectors()) == (len(ids), N)
    assert [prepared.is_member(i) for i in range(N)] == [
        i in set(ids) for i in range(N)
    ]
    D2, I2 = index.search(xq, 12, params=with_selector(prepared))
    assert (D == D2).all() and (I == I2).all()


@given(
    q=st.integers(1, 40),
    n=st.integers(1, 200),
    d=st.integers(1, 20),
    k=st.integers(1, 60),
    share=st.sampled_from([0, 0.02, 0.5, 1]),
    metric=st.sampled_from(METRICS),
    half=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_bitmap(res, q, n, d, k, share, metric, half, seed):
    xq, xb = make("ties", q, d, seed + 1), make("ties", n, d, seed)
    members = np.random.default_rng(seed).random(n) < share
    bits = np.packbits(members, bitorder="little")
    ids = np.flatnonzero(members)
    index = index_of(res, xb, metric, half)
    selector = faiss.IDSelectorBitmap(bits)
    for one in (selector, faiss_bits.DeviceSelector(selector, n)):
        D, I = index.search(xq, k, params=with_selector(one))
        if len(ids):
            expect_only(ids, xq, xb, k, D, I, metric)
        assert (I[:, len(ids) :] == -1).all()


def test_k_above_what_is_selected(res):
    xb = make("normal", 50, 4, 1)
    index = index_of(res, xb)
    D, I = index.search(xb[:3], 5, params=with_selector(faiss.IDSelectorRange(7, 9)))
    assert (np.sort(I[:, :2]) == [7, 8]).all()
    assert (I[:, 2:] == -1).all() and (D[:, 2:] == np.finfo(np.float32).max).all()


def test_prepared_selector_needs_nothing_else(res):
    """Neither the selector that it was made of nor that one's arrays."""
    xb = make("normal", N, 4, 1)
    ids = np.arange(0, N, 7)
    selector = faiss.IDSelectorArray(ids)
    prepared = faiss_bits.DeviceSelector(selector, N)
    del selector
    ids[:] = 1
    gc.collect()
    index = index_of(res, xb)
    params = with_selector(prepared)
    del prepared
    gc.collect()
    _, I = index.search(xb, 1, params=params)
    assert set(I[:, 0]) == set(range(0, N, 7))


def test_prepared_selector_in_another_selector_and_index(res):
    xb = make("normal", N, 4, 1)
    prepared = faiss_bits.DeviceSelector(faiss.IDSelectorRange(0, N - 1), n=N)
    _, I = index_of(res, xb).search(
        xb, 2, params=with_selector(faiss.IDSelectorNot(prepared))
    )
    assert (I[:, 0] == N - 1).all() and (I[:, 1] == -1).all()
    cpu = faiss_bits.IndexFusedFlat(4)
    cpu.add(xb)
    _, I = cpu.search(xb, N, params=with_selector(prepared))
    assert N - 1 not in I


def test_errors(res):
    xb = make("normal", 20, 4, 1)
    index = index_of(res, xb)
    everything = faiss.IDSelectorAll()
    shorter = faiss_bits.DeviceSelector(everything, 19)
    with pytest.raises(RuntimeError, match="DeviceSelector.*19"):
        index.search(xb, 1, params=with_selector(shorter))
    with pytest.raises(TypeError, match="sel"):
        faiss_bits.DeviceSelector(np.arange(3), 20)
    with pytest.raises(ValueError, match="n = -1"):
        faiss_bits.DeviceSelector(everything, -1)
    with pytest.raises(TypeError, match="n = 2.5"):
        faiss_bits.DeviceSelector(everything, 2.5)
    with pytest.raises(RuntimeError, match=f"n = {2**37}"):
        faiss_bits.DeviceSelector(everything, 2**37)
    with pytest.raises(RuntimeError, match="device = 1000"):
        faiss_bits.DeviceSelector(everything, 20, device=1000)
    assert (index.search(xb, 1)[1][:, 0] == np.arange(20)).all()


def test_prepared_for_more_than_2_to_the_31_vectors(res):
    n = 2**31 + 5
    last = faiss_bits.DeviceSelector(faiss.IDSelectorRange(2**31 - 3, 2**40), n)
    assert last.numVectors() == n
    assert last.numSelected() == 8
    assert last.is_member(n - 1) and last.is_member(2**31 - 3)
    assert not last.is_member(n) and not last.is_member(2**31 - 4)


def test_torch(res, torch):
    xb = make("normal", N, 8, 1)
    index = index_of(res, xb)
    prepared = faiss_bits.DeviceSelector(faiss.IDSelectorRange(5, 100), N)
    expected = index.search(xb, 3, params=with_selector(prepared))
    D, I = index.search(torch.from_numpy(xb).cuda(), 3, params=with_selector(prepared))
    del prepared
    assert (D.cpu().numpy() == expected[0]).all()
    assert (I.cpu().numpy() == expected[1]).all()
