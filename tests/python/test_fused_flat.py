"""The CPU index from Python: numpy in and out, as FAISS's own flat index. What
it has besides is in test_fused_running.py, bad arguments are in
test_fused_flat_errors.py."""

import copy
import pickle

import faiss
import numpy as np
import oracle
import pytest
from conftest import INDEX_METRICS, KINDS, for_metric, index_of, make, selectors
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits
from faiss_bits.contrib import datasets, evaluation

N = 1500


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
@pytest.mark.parametrize("q", [1, 2, 20, 100])
@pytest.mark.parametrize("k", [1, 10, 1024, N - 1, N, N + 1])
def test_search(metric, argument, name, q, k):
    xq, xb = for_metric(name, make("normal", q, 24, 1), make("normal", N, 24, 2))
    D, I = index_of(xb, metric, argument).search(xq, k)
    assert D.dtype == np.float32 and I.dtype == np.int64
    oracle.check_knn(xq, xb, k, D, I, metric=name, p=argument)
    oracle.check_tie_order(D, I)


@given(
    q=st.integers(1, 40),
    n=st.integers(0, 200),
    d=st.integers(1, 40),
    k=st.integers(1, 220),
    kind=st.sampled_from(KINDS),
    metric=st.sampled_from(INDEX_METRICS),
    seed=st.integers(0, 1000),
)
def test_any_size_and_kind(q, n, d, k, kind, metric, seed):
    xq, xb = for_metric(metric[2], make(kind, q, d, seed + 1), make(kind, n, d, seed))
    D, I = index_of(xb, *metric[:2]).search(xq, k)
    oracle.check_knn(xq, xb, k, D, I, metric=metric[2], p=metric[1])
    oracle.check_tie_order(D, I)


def test_is_a_faiss_index():
    index = faiss_bits.IndexFusedFlat(8)
    for base in (faiss.IndexFlat, faiss.IndexFlatCodes, faiss.Index):
        assert isinstance(index, base)
    assert (index.metric_type, index.d, index.ntotal) == (faiss.METRIC_L2, 8, 0)
    assert index.is_trained


def test_everyday_calls():
    xb = make("ties", 100, 12, 1)
    index = index_of(xb[:60])
    index.add(xb[60:])
    assert index.ntotal == 100
    assert (index.reconstruct(61) == xb[61]).all()
    assert (index.reconstruct_n(10, 50) == xb[10:60]).all()
    assert (index.reconstruct_batch(np.array([5, 0])) == xb[[5, 0]]).all()
    D, I = index.search(xb[:7], 3)
    assert (index.assign(xb[:7], 3) == I).all()
    D2, I2, R = index.search_and_reconstruct(xb[:7], 3)
    assert (D2 == D).all() and (I2 == I).all() and (R == xb[I]).all()
    D3, I3 = np.zeros((7, 3), np.float32), np.zeros((7, 3), np.int64)
    out = index.search(xb[:7], 3, D=D3, I=I3)
    assert out[0] is D3 and (D3 == D).all() and (I3 == I).all()
    assert index.remove_ids(np.array([0, 99, 200])) == 2
    assert (index.reconstruct_n(0, 98) == xb[1:99]).all()
    other = index_of(xb[:5])
    index.merge_from(other)
    assert (index.ntotal, other.ntotal) == (103, 0)
    assert (index.reconstruct_n(98, 5) == xb[:5]).all()
    index.reset()
    assert (index.search(xb[:2], 2)[1] == -1).all()


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
def test_range_search(metric, argument, name):
    xq, xb = make("ties", 9, 10, 1), make("ties", 300, 10, 2)
    true = oracle.distances(xq, xb, metric=name, p=argument)
    radius = np.median(true) + 0.25  # between two distances
    limits, D, I = index_of(xb, metric, argument).range_search(xq, radius)
    for row in range(9):
        largest = name in oracle.SIMILARITIES
        near = true[row] > radius if largest else true[row] < radius
        part = slice(int(limits[row]), int(limits[row + 1]))
        assert (I[part] == np.flatnonzero(near)).all()
        np.testing.assert_allclose(D[part], true[row][near], rtol=1e-5)


# ---- filters ----------------------------------------------------------------


@pytest.mark.parametrize("make_selector", selectors(200).values(), ids=selectors(200))
@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
def test_filters(make_selector, metric, argument, name):
    xq, xb = for_metric(name, make("normal", 15, 8, 1), make("normal", 200, 8, 2))
    selector = make_selector()
    ids = np.array([i for i in range(200) if selector.is_member(i)])
    params = faiss.SearchParameters(sel=selector)
    index = index_of(xb, metric, argument)
    D, I = index.search(xq, 12, params=params)
    inside = np.where(I < 0, -1, np.searchsorted(ids, I))
    assert (I[I >= 0] == ids[inside[I >= 0]]).all()
    oracle.check_knn(xq, xb[ids], 12, D, inside, metric=name, p=argument)
    everything = -np.inf if name in oracle.SIMILARITIES else np.inf
    limits, _, found = index.range_search(xq, everything, params=params)
    assert (found.reshape(15, -1) == ids).all()


def test_parameters_of_other_indexes_are_refused():
    xb = make("normal", 20, 4, 1)
    with pytest.raises(RuntimeError, match="params is a faiss::SearchParametersIVF:"):
        index_of(xb).search(xb, 1, params=faiss.SearchParametersIVF(nprobe=3))


# ---- copies and files -------------------------------------------------------


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
def test_files_and_copies(tmp_path, metric, argument, name):
    xq, xb = make("normal", 9, 6, 1), make("normal", 80, 6, 2)
    index = index_of(xb, metric, argument)
    index.choice = faiss_bits.FusedChoice("var6", queryBlock=48)
    expected = index.search(xq, 5)
    faiss.write_index(index, str(tmp_path / "index"))
    read = faiss.read_index(str(tmp_path / "index"))
    assert isinstance(read, faiss.IndexFlat)
    assert not isinstance(read, faiss_bits.IndexFusedFlat)
    ours = [
        faiss_bits.IndexFusedFlat(read),
        faiss_bits.index_to_fused(read),
        faiss_bits.index_to_fused(faiss.clone_index(index)),
        faiss_bits.index_to_fused(index),
        faiss_bits.IndexFusedFlat(index),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
    ]
    for other in ours:
        assert type(other) is faiss_bits.IndexFusedFlat
        assert other.metric_arg == index.metric_arg
        D, I = other.search(xq, 5)
        np.testing.assert_allclose(D, expected[0], rtol=1e-5, atol=1e-5)
        assert (I == expected[1]).all()
    for other in ours[3:]:
        assert repr(other.choice) == repr(index.choice)
    index.reset()
    assert all(other.ntotal == 80 for other in ours)


@pytest.mark.parametrize(
    "wrong", [None, 3, np.zeros((2, 3), np.float32), faiss.IndexBinaryFlat(8)]
)
def test_index_to_fused_says_what_it_got(wrong):
    name = type(wrong).__name__
    with pytest.raises(TypeError, match=f"index is a {name}, expected a faiss.Index"):
        faiss_bits.index_to_fused(wrong)


def test_index_to_fused_inside_others():
    xb = make("normal", 300, 6, 1)
    map_ = faiss.IndexIDMap2(faiss.IndexFlatL2(6))
    map_.add_with_ids(xb, np.arange(300) + 1000)
    ours = faiss_bits.index_to_fused(map_)
    assert isinstance(ours, faiss.IndexIDMap2)
    inner = faiss.downcast_index(ours.index)
    D, I = ours.search(xb[:5], 4)
    oracle.check_knn(xb[:5], xb, 4, D, I - 1000)
    assert inner.ntotal == 300


def test_as_kmeans_index_and_coarse_quantizer():
    xb = make("normal", 2000, 8, 1)
    index = faiss_bits.IndexFusedFlat(8)
    faiss.Clustering(8, 16).train(xb, index)
    assert index.ntotal == 16
    ivf = faiss.IndexIVFFlat(faiss_bits.IndexFusedFlat(8), 8, 16)
    ivf.train(xb)
    ivf.add(xb)
    ivf.nprobe = 16
    D, I = ivf.search(xb[:20], 5)
    oracle.check_knn(xb[:20], xb, 5, D, I)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.array])
def test_k_of_any_integer_type(kind):
    """What numpy computes is an integer of numpy's, or an array of one."""
    xb = make("normal", 50, 4, 1)
    for index in (index_of(xb), ivf_of(xb)):
        D, I = index.search(xb[:5], 3)
        for found in (
            index.search(xb[:5], kind(3)),
            index.search(xb[:5], k=kind(3)),
            index.search(x=xb[:5], k=kind(3)),
            index.search_and_reconstruct(xb[:5], kind(3))[:2],
        ):
            np.testing.assert_array_equal(found[0], D)
            np.testing.assert_array_equal(found[1], I)
        np.testing.assert_array_equal(index.assign(xb[:5], kind(3)), I)
        np.testing.assert_array_equal(index.assign(xb[:5], k=kind(3)), I)


def ivf_of(xb):
    index = faiss_bits.IndexFusedIVFFlat(
        faiss_bits.IndexFusedFlat(xb.shape[1]), xb.shape[1], 1
    )
    index.train(xb)
    index.add(xb)
    return index


# ---- tensors on the CPU -------------------------------------------------------


def test_torch_tensors_on_the_cpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    xq, xb = make("normal", 20, 6, 1), make("normal", 90, 6, 2)
    q, b = torch.from_numpy(xq), torch.from_numpy(xb)
    index = faiss_bits.IndexFusedFlat(6)
    index.add(b)
    for D, I in (
        index.search(q, 7),
        faiss_bits.knn_subset(torch.cat([b, q]), range(90, 110), range(90), 7),
    ):
        assert isinstance(D, torch.Tensor) and isinstance(I, torch.Tensor)
        oracle.check_knn(xq, xb, 7, D.numpy(), I.numpy())
    assert (index.assign(q, 7) == index.search(q, 7)[1]).all()
    assert (index.reconstruct_n(0, 90, torch.empty(90, 6)) == b).all()
    with pytest.raises(TypeError, match="float64"):
        index.search(q.double(), 7)
    with pytest.raises(TypeError, match="x is a torch tensor"):
        index.range_search(q, 1.0)


# ---- real data ---------------------------------------------------------------


def load(loader):
    try:
        return loader()
    except (FileNotFoundError, ImportError) as error:
        pytest.skip(f"{str(error)[:60]} ...")


def test_sift_truth():
    data = load(datasets.sift)
    _, I = index_of(data.base).search(data.queries, data.truth.shape[1])
    assert 1.0 == evaluation.first_hit_recall(
        I, data.truth, data.queries, data.base
    )


@pytest.mark.long_cpu
@pytest.mark.parametrize("metric, name", [(faiss.METRIC_L2, "l2"), (0, "ip")])
def test_fashion_mnist_as_faiss(metric, name):
    data = load(datasets.fashion_mnist)
    queries = data.test
    _, I = index_of(data.train, metric).search(queries, 10)
    theirs = faiss.IndexFlat(784, metric)
    theirs.add(data.train)
    _, I_faiss = theirs.search(queries, 10)
    agreement = evaluation.compare_ids(
        I, I_faiss, queries, data.train, name == "ip"
    )
    assert agreement.same_or_tied == 1.0 and agreement.same > 0.99


def test_search_mode():
    rng = np.random.default_rng(5)
    xb = (1000 + rng.random((3000, 24))).astype("f4")
    xq = xb[::100].copy()
    index = faiss_bits.IndexFusedFlat(24)
    index.add(xb)
    assert index.search_mode == "certified"
    D, I = index.search(xq, 20)
    # Of the GPU alone.
    index.search_mode = "fast"
    assert index.search_mode == "fast"
    for found, wanted in zip(index.search(xq, 20), (D, I), strict=True):
        np.testing.assert_array_equal(found, wanted)
    index.search_mode = "certified"
    index.reset_stats()
    index.search(xq, 20)
    wide = xb.astype("f8")
    for i, query in enumerate(xq.astype("f8")):
        exact = ((wide - query) ** 2).sum(axis=1).astype("f4")
        # Of numbers this near float64 sums have the same float32 in any order.
        best = np.lexsort((np.arange(len(xb)), exact))[:20]
        np.testing.assert_array_equal(I[i], best)
        np.testing.assert_array_equal(D[i], exact[best])
    stats = index.stats()
    assert stats.certified + stats.repeated == len(xq)
    assert stats.rescored >= 20 * stats.certified
    index.reset_stats()
    assert index.stats().certified == index.stats().repeated == 0
    index.search_mode = "plain"
    index.search(xq, 20)
    assert index.stats().certified == 0
    assert pickle.loads(pickle.dumps(index)).search_mode == "plain"
    assert faiss_bits.IndexFusedFlat(index).search_mode == "plain"
    with pytest.raises(ValueError, match="search_mode = 'exact'"):
        index.search_mode = "exact"
    with pytest.raises(TypeError, match="search_mode is a int"):
        index.search_mode = 1
