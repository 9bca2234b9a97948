"""IndexFusedIVFFlat from Python: numpy in and out, as FAISS's own IndexIVFFlat."""

import copy
import gc
import pickle

import faiss
import numpy as np
import oracle
import pytest
from conftest import make

import faiss_bits

N, D, NLIST, Q, K = 3000, 24, 20, 50, 10
METRICS = [(faiss.METRIC_L2, "l2"), (faiss.METRIC_INNER_PRODUCT, "ip")]


def data_of(seed=3):
    rng = np.random.default_rng(seed)
    xb, xq = make("normal", N, D, seed), make("normal", Q, D, seed + 1)
    return xb, xq, rng.permutation(N).astype("int64") * 7 + 5


def index_of(metric=faiss.METRIC_L2):
    xb, _, ids = data_of()
    index = faiss_bits.IndexFusedIVFFlat(
        faiss.IndexFlat(D, metric), D, NLIST, metric
    )
    gc.collect()  # the quantizer must not go
    index.train(xb)
    index.add_with_ids(xb, ids)
    index.nprobe = 4
    return index


def expect_exact(index, found, nprobe, k=K, selected=None):
    """The k nearest of the vectors whose list is among the nearest nprobe."""
    xb, xq, ids = data_of()
    largest = index.metric_type == faiss.METRIC_INNER_PRODUCT
    name = "ip" if largest else "l2"
    centroids = index.quantizer.reconstruct_n(0, NLIST)
    sign = -1 if largest else 1
    near = (sign * oracle.distances(xq, centroids, metric=name)).argsort(1)
    lists = {}
    for l in range(NLIST):
        size = index.invlists.list_size(l)
        if size:
            rows = faiss.rev_swig_ptr(index.invlists.get_ids(l), size)
            lists.update((int(i), l) for i in rows)
    list_of = np.array([lists[int(i)] for i in ids])
    true = sign * oracle.distances(xq, xb, metric=name)
    for i, (distances, labels) in enumerate(zip(*found)):
        there = np.isin(list_of, near[i, :nprobe])
        if selected is not None:
            there &= np.isin(ids, selected)
        order = np.lexsort((ids, np.where(there, true[i], np.inf)))[:k]
        order = order[there[order]]
        np.testing.assert_array_equal(labels[: len(order)], ids[order])
        np.testing.assert_allclose(
            distances[: len(order)], sign * true[i][order], rtol=1e-6, atol=1e-6
        )
        assert (labels[len(order) :] == -1).all()


@pytest.mark.parametrize("metric, name", METRICS)
@pytest.mark.parametrize("nprobe", [1, 5, NLIST])
def test_search(metric, name, nprobe):
    index = index_of(metric)
    index.nprobe = nprobe
    found = index.search(data_of()[1], K)
    assert found[0].dtype == np.float32 and found[1].dtype == np.int64
    expect_exact(index, found, nprobe)
    one = index.search(data_of()[1][7:8], K)
    assert (one[0] == found[0][7]).all() and (one[1] == found[1][7]).all()


def test_is_a_faiss_index():
    index = index_of()
    for base in (faiss.IndexIVFFlat, faiss.IndexIVF, faiss.Index):
        assert isinstance(index, base)
    assert (index.ntotal, index.nlist, index.d) == (N, NLIST, D)


def test_everyday_calls():
    index = index_of()
    xb, xq, ids = data_of()
    D1, I1 = index.search(xq, K)
    assert (index.assign(xq, K) == I1).all()
    D2, I2, R = index.search_and_reconstruct(xq, K)
    rows = np.argsort(ids)[np.searchsorted(np.sort(ids), I1)]
    assert (D2 == D1).all() and (I2 == I1).all() and (R == xb[rows]).all()
    D3, I3 = np.zeros((Q, K), np.float32), np.zeros((Q, K), np.int64)
    out = index.search(xq, K, D=D3, I=I3)
    assert out[0] is D3 and (I3 == I1).all()
    limits, _, _ = index.range_search(xq, 30.0)
    assert limits[-1] > 0
    index.set_direct_map_type(faiss.DirectMap.Hashtable)
    assert (index.reconstruct(int(ids[5])) == xb[5]).all()
    index.set_direct_map_type(faiss.DirectMap.NoMap)
    assert index.remove_ids(ids[:1000]) == 1000
    left = index.search(xq, K)[1]
    assert not np.isin(left, ids[:1000]).any()
    index.reset()
    assert (index.search(xq, 2)[1] == -1).all()


def test_parameters():
    index = index_of()
    xb, xq, ids = data_of()
    params = faiss.SearchParametersIVF(nprobe=7)
    expect_exact(index, index.search(xq, K, params=params), 7)
    some = ids[::3]
    for selector in (
        faiss.IDSelectorBatch(some),
        faiss.IDSelectorArray(some),
        faiss.IDSelectorNot(faiss.IDSelectorArray(np.setdiff1d(ids, some))),
    ):
        params = faiss.SearchParametersIVF(nprobe=7, sel=selector)
        found = index.search(xq, K, params=params)
        expect_exact(index, found, 7, selected=some)
    params = faiss.SearchParametersIVF(nprobe=7, max_codes=1)
    assert (index.search(xq, K, params=params)[1][:, 1] == -1).all()
    with pytest.raises(RuntimeError, match="nprobe = 0"):
        index.search(xq, K, params=faiss.SearchParametersIVF(nprobe=0))
    index.parallel_mode = index.PARALLEL_MODE_NO_HEAP_INIT
    with pytest.raises(RuntimeError, match="parallel_mode"):
        index.search(xq, K)
    index.parallel_mode = 3
    index.search(xq, K)
    with pytest.raises(RuntimeError, match="parallel_mode = 3"):
        index.range_search(xq, 3.0)


def test_search_preassigned():
    index = index_of()
    xq = data_of()[1]
    lists = index.quantizer.search(xq, 4)[1]
    want = index.search(xq, K)
    D1, I1 = index.search_preassigned(xq, K, lists)
    assert (D1 == want[0]).all() and (I1 == want[1]).all()
    _, places = index.search_preassigned(xq, K, lists, store_pairs=True)
    at = [index.invlists.get_single_id(int(p >> 32), int(p & 0xFFFFFFFF))
          for p in places.ravel()]
    assert (np.array(at).reshape(I1.shape) == I1).all()
    with pytest.raises(ValueError, match="Iq"):
        index.search_preassigned(xq, K, lists[:, :2])
    for wrong in (xq[0], xq[:, :, None], xq[:, :-1]):
        with pytest.raises(ValueError, match=r"x has shape \(.*\), expected \(any, "):
            index.search_preassigned(wrong, K, lists)
    with pytest.raises(TypeError, match="Iq is float64"):
        index.search_preassigned(xq, K, lists + 0.5)
    with pytest.raises(RuntimeError, match=r"assign\[0\] = 20"):
        index.search_preassigned(xq, K, lists * 0 + NLIST)
    huge = np.full(lists.shape, 2**63, np.uint64)
    with pytest.raises(ValueError, match="Iq has 9223372036854775808"):
        index.search_preassigned(xq, K, huge)
    with pytest.raises(ValueError, match=r"Iq has shape \(\)"):
        index.search_preassigned(xq, K, 3)
    with pytest.raises(TypeError, match="Iq is object"):
        index.search_preassigned(xq, K, None)
    for Dq, error in (
        ("nonsense", TypeError),
        (lists + 1j, TypeError),
        (lists[:, :2], ValueError),
        (1.5, ValueError),
    ):
        with pytest.raises(error, match="Dq"):
            index.search_preassigned(xq, K, lists, Dq)
    for Dq in (lists.astype(np.float32), lists.tolist()):
        assert (index.search_preassigned(xq, K, lists, Dq)[1] == I1).all()


@pytest.mark.parametrize("metric, name", METRICS)
def test_copies_and_files(tmp_path, metric, name):
    index = index_of(metric)
    xq = data_of()[1]
    want = index.search(xq, K)
    faiss.write_index(index, str(tmp_path / "index"))
    read = faiss.read_index(str(tmp_path / "index"))
    assert type(read) is faiss.IndexIVFFlat
    assert type(faiss.clone_index(index)) is faiss.IndexIVFFlat
    ours = [
        faiss_bits.IndexFusedIVFFlat(read),
        faiss_bits.IndexFusedIVFFlat(index),
        faiss_bits.index_to_fused(read),
        faiss_bits.index_to_fused(index),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
    ]
    del read
    gc.collect()
    for other in ours:
        assert type(other) is faiss_bits.IndexFusedIVFFlat
        assert other.nprobe == index.nprobe
        found = other.search(xq, K)
        assert (found[0] == want[0]).all() and (found[1] == want[1]).all()
    index.reset()
    assert all(other.ntotal == N for other in ours)


def test_copies_have_the_settings_of_searches():
    index = index_of()
    xq = data_of()[1]
    all_codes = index.search(xq, K)[1]
    index.max_codes, index.parallel_mode = 30, 1
    want = index.search(xq, K)
    assert (want[1] != all_codes).any()
    for other in (
        copy.copy(index),
        copy.deepcopy(index),
        pickle.loads(pickle.dumps(index)),
    ):
        assert (other.max_codes, other.parallel_mode) == (30, 1)
        found = other.search(xq, K)
        assert (found[0] == want[0]).all() and (found[1] == want[1]).all()
    old = faiss_bits.IndexFusedIVFFlat.__new__(faiss_bits.IndexFusedIVFFlat)
    old.__setstate__({"this": faiss.serialize_index(index).tobytes()})
    assert (old.search(xq, K)[1] == all_codes).all()


def test_index_to_fused_inside_others():
    xb = data_of()[0]
    theirs = faiss.index_factory(D, "PCA8,IVF10,Flat")
    theirs.train(xb)
    theirs.add(xb)
    ours = faiss_bits.index_to_fused(theirs)
    assert faiss.extract_index_ivf(ours).nlist == 10
    assert (ours.search(xb[:20], 3)[1] == theirs.search(xb[:20], 3)[1]).all()
    refine = faiss.index_factory(D, "IVF10,Flat,RFlat")
    refine.train(xb)
    refine.add(xb)
    ours = faiss_bits.index_to_fused(refine)
    assert type(ours) is type(refine)
    assert (ours.search(xb[:20], 3)[1] == refine.search(xb[:20], 3)[1]).all()


def test_stats():
    index = index_of()
    xq = data_of()[1]
    index.search(xq, K)
    stats = index.stats()
    assert stats.certified + stats.repeated == Q and stats.certified > Q // 2
    assert stats.rescored >= K * stats.certified
    index.reset_stats()
    assert index.stats().certified == 0


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda i, x: i.search(x[0], 1), ValueError, "x"),
        (lambda i, x: i.search(x[:, :3], 1), ValueError, "any, 24"),
        (lambda i, x: i.search(x, 0), ValueError, "k = 0"),
        (lambda i, x: i.search(x[:1], 2**31), ValueError, "k = 2147483648"),
        (
            lambda i, x: i.search_preassigned(x, 2**31, np.zeros((Q, 4), int)),
            ValueError,
            "k = 2147483648",
        ),
        (
            lambda i, x: i.range_search(x, 1, params=faiss.IVFPQSearchParameters()),
            RuntimeError,
            "params is a faiss::IVFPQSearchParameters",
        ),
        (lambda i, x: i.add(x[:, :3]), ValueError, "any, 24"),
        (lambda i, x: i.range_search(x, np.nan), ValueError, "thresh is NaN"),
        (
            lambda i, x: i.search_preassigned(x, 1, np.zeros((Q, 4), int), params=3),
            TypeError,
            "params is a int",
        ),
    ],
)
def test_bad_arguments(call, error, words):
    index = index_of()
    with pytest.raises(error) as caught:
        call(index, data_of()[1])
    assert words in str(caught.value)
    assert index.ntotal == N


def test_before_training_and_with_nan():
    """FAISS's own index ends the process on these, or reads anywhere."""
    xb, xq, _ = data_of()
    index = faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(D), D, NLIST)
    for call in (
        lambda: index.add(xb),
        lambda: index.search(xq, 3),
        lambda: index.range_search(xq, 3.0),
    ):
        with pytest.raises(RuntimeError, match="not trained"):
            call()
    index = index_of()
    bad = np.full((30, D), np.nan, np.float32)
    index.add_with_ids(bad, np.arange(30) + 10**9)
    found = index.search(np.vstack([xq, bad]), K)
    assert (found[1][Q:] == -1).all() and (found[1] < 10**9).all()
    lims, _, I = index.range_search(np.vstack([xq, bad]), 30.0)
    assert lims[Q] == lims[-1] > 0 and (I < 10**9).all()


def test_bad_constructor_arguments():
    flat = faiss.IndexFlatL2(D)
    for arguments, words in (
        ((flat, D + 1, 4), f"d = {D + 1}"),
        ((flat, D, 0), "nlist = 0"),
        ((flat, D, 4, faiss.METRIC_L1), "metric = 2"),
        ((faiss.IndexIVFFlatDedup(flat, D, 4, faiss.METRIC_L2),), "Dedup"),
    ):
        with pytest.raises(RuntimeError, match=words):
            faiss_bits.IndexFusedIVFFlat(*arguments)


def test_torch_tensors_on_the_cpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    index = index_of()
    xq = data_of()[1]
    want = index.search(xq, K)
    D1, I1 = index.search(torch.from_numpy(xq), K)
    assert isinstance(I1, torch.Tensor)
    assert (D1.numpy() == want[0]).all() and (I1.numpy() == want[1]).all()
