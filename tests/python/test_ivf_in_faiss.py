"""Our inverted lists in what FAISS makes of several indexes, or of one and more:
IndexShardsIVF, contrib/big_batch_search, IndexRefineFlat."""

import faiss
import numpy as np
import oracle
import pytest

import faiss_bits

N, D, NLIST, Q, K, NPROBE = 3000, 24, 20, 50, 10, 5
gpu = pytest.mark.gpu
KINDS = ["fused", *(pytest.param(kind, marks=gpu) for kind in ("flat", "SQ8", "PQ"))]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    return rng.random((N, D), dtype="float32"), rng.random((Q, D), dtype="float32")


@pytest.fixture
def make(request):
    """Makes an empty index of a kind."""

    def make_one(kind):
        if kind == "fused":
            return faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(D), D, NLIST)
        res = request.getfixturevalue("res")
        if kind == "flat":
            return faiss_bits.GpuIndexBitsIVFFlat(res, D, NLIST)
        if kind == "PQ":
            return faiss_bits.GpuIndexBitsIVFPQ(res, D, NLIST, 8, 8)
        return faiss_bits.GpuIndexBitsIVFScalarQuantizer(
            res, D, NLIST, faiss.ScalarQuantizer.QT_8bit
        )

    return make_one


def filled(make, kind, xb):
    index = make(kind)
    index.train(xb)
    index.add(xb)
    index.nprobe = NPROBE
    return index


def on_cpu(index):
    """A copy of FAISS's own class, which its contrib asks for."""
    if hasattr(index, "getDevice"):
        return faiss.index_gpu_to_cpu(index)
    return faiss.clone_index(index)


# ---- IndexShardsIVF ------------------------------------------------------------


@pytest.mark.skipif(
    not hasattr(faiss, "IndexShardsIVF"), reason="this FAISS has no IndexShardsIVF"
)
@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_shards(make, data, kind, threaded):
    xb, xq = data
    parts = [make(kind) for _ in range(3)]
    for part in parts:
        part.nprobe = NPROBE
    quantizer = faiss.IndexFlatL2(D)
    shards = faiss.IndexShardsIVF(quantizer, NLIST, threaded, False)
    for part in parts:
        shards.add_shard(part)
    shards.train(xb)
    shards.add(xb)
    assert [part.ntotal for part in parts] == [N // 3] * 3 and shards.ntotal == N
    distances, labels = shards.search(xq, K)
    # What the parts find by themselves, merged.
    found = [part.search(xq, K) for part in parts]
    all_d, all_i = (np.concatenate(some, 1) for some in zip(*found))
    best = np.argsort(all_d, 1, kind="stable")[:, :K]
    np.testing.assert_array_equal(distances, np.take_along_axis(all_d, best, 1))
    np.testing.assert_array_equal(labels, np.take_along_axis(all_i, best, 1))
    assert (np.sort(labels, 1)[:, 1:] > np.sort(labels, 1)[:, :-1]).all()
    # Vectors of all parts, and those that lists of these centroids hold.
    assert {*np.unique(labels * 3 // N)} == {0, 1, 2}
    centroids = quantizer.reconstruct_n(0, NLIST)
    lists = oracle.distances(xb, centroids).argmin(1)
    near = oracle.distances(xq, centroids).argsort(1)[:, :NPROBE]
    assert all(np.isin(lists[row], some).all() for row, some in zip(labels, near))
    if kind in ("fused", "flat"):
        true = oracle.distances(xq, xb)
        true = np.take_along_axis(true, labels, 1)
        np.testing.assert_allclose(distances, true, rtol=1e-6)


# ---- contrib/big_batch_search --------------------------------------------------


@pytest.mark.parametrize("threaded", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_big_batch_search(make, data, kind, threaded):
    """With our k-NN, list by list, and our centroids: it finds what we find."""
    contrib = pytest.importorskip(
        "faiss.contrib.big_batch_search", reason="this FAISS has no big_batch_search"
    )
    xb, xq = data
    index = filled(make, kind, xb)
    calls = []

    def knn(queries, vectors, k, metric):
        calls.append(len(vectors))
        return faiss_bits.knn(queries, vectors, k, metric=metric)

    lists = index.quantizer.search(xq, NPROBE)[1].astype("int32")
    cpu = on_cpu(index)
    assert cpu.nprobe == NPROBE
    distances, labels = contrib.big_batch_search(
        cpu, xq, K, method="knn_function", knn=knn, threaded=threaded,
        q_assign=lists, verbose=0,
    )
    assert 0 < sum(calls) <= N  # once for each list that is looked at
    ours, our_labels = index.search(xq, K)
    np.testing.assert_allclose(distances, ours, rtol=1e-4)
    if kind in ("fused", "flat"):
        np.testing.assert_array_equal(labels, our_labels)
    else:  # codes are decoded here and there
        assert (labels == our_labels).mean() > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_big_batch_search_asks_for_faiss_own_class(make, data, kind):
    """As of FAISS's own GPU indexes, it takes a copy on the CPU only."""
    contrib = pytest.importorskip(
        "faiss.contrib.big_batch_search", reason="this FAISS has no big_batch_search"
    )
    index = filled(make, kind, data[0])
    with pytest.raises(RuntimeError, match="index type .* not supported"):
        contrib.big_batch_search(index, data[1], K)


# ---- IndexRefineFlat -----------------------------------------------------------


def expect_refined(index, base, xb, xq):
    """The K best of the vectors that the base index finds, by true distances."""
    index.k_factor = 4
    distances, labels = index.search(xq, K)
    _, candidates = base.search(xq, 4 * K)
    true = oracle.distances(xq, xb)
    of_candidates = np.take_along_axis(true, candidates, 1)
    best = np.sort(of_candidates, 1)[:, :K]
    np.testing.assert_allclose(distances, best, rtol=1e-5)
    of_labels = np.take_along_axis(true, labels, 1)
    np.testing.assert_allclose(distances, of_labels, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_refine(make, data, kind):
    xb, xq = data
    base = filled(make, kind, xb)
    index = faiss.IndexRefineFlat(base, faiss.swig_ptr(xb))
    expect_refined(index, base, xb, xq)


def refined_by(factory, xb):
    """One of FAISS's on the CPU, filled."""
    index = faiss.index_factory(D, factory + ",RFlat")
    index.train(xb)
    index.add(xb)
    base = faiss.downcast_index(index.base_index)
    if isinstance(base, faiss.IndexIVF):
        base.nprobe = NPROBE
    return index


@gpu
@pytest.mark.parametrize(
    "factory, kind",
    [
        ("IVF20,Flat", "GpuIndexIVFFlat"),
        ("IVF20,SQ8", "GpuIndexIVFScalarQuantizer"),
        ("IVF20,PQ8np", "GpuIndexIVFPQ"),
        ("Flat", "GpuIndexFlat"),
    ],
)
def test_refine_goes_to_the_gpu(res, data, factory, kind):
    xb, xq = data
    clone = faiss_bits.index_cpu_to_gpu(res, 0, refined_by(factory, xb))
    assert isinstance(clone, faiss.IndexRefine) and clone.ntotal == N
    base = faiss.downcast_index(clone.base_index)
    assert isinstance(base, getattr(faiss, kind))
    assert isinstance(faiss.downcast_index(clone.refine_index), faiss.IndexFlat)
    expect_refined(clone, base, xb, xq)
    clone.add(xq)
    assert clone.ntotal == base.ntotal == N + Q
    D_, I = clone.search(xq, 1)
    np.testing.assert_array_equal(I[:, 0], np.arange(N, N + Q))
    assert (D_ == 0).all()


@pytest.mark.parametrize("factory", ["IVF20,Flat", "IVF20,SQ8", "Flat"])
def test_refine_with_our_cpu_index(data, factory):
    """index_to_fused copies it by the same parts."""
    xb, xq = data
    clone = faiss_bits.index_to_fused(refined_by(factory, xb))
    base = faiss.downcast_index(clone.base_index)
    assert isinstance(clone, faiss.IndexRefine)
    expect_refined(clone, base, xb, xq)
    clone.add(xq)
    D_, I = clone.search(xq, 1)
    np.testing.assert_array_equal(I[:, 0], np.arange(N, N + Q))
    assert (D_ == 0).all()
