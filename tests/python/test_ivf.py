"""GpuIndexBitsIVFFlat from Python: numpy and torch, parameters, copies."""

import faiss
import numpy as np
import oracle
import pytest

import faiss_bits

pytestmark = pytest.mark.gpu
N, D, NLIST, Q, K = 3000, 24, 20, 50, 10


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    xb = rng.random((N, D), dtype="float32")
    xq = rng.random((Q, D), dtype="float32")
    ids = rng.permutation(N).astype("int64") * 7 + 5
    return xb, xq, ids


@pytest.fixture
def index(res, data):
    xb, _, ids = data
    made = faiss_bits.GpuIndexBitsIVFFlat(res, D, NLIST)
    made.train(xb)
    made.add_with_ids(xb, ids)
    return made


def expect_in_lists(data, centroids, found, nprobe, k=K):
    """The k nearest of the vectors whose list is among the nearest nprobe."""
    xb, xq, ids = data
    lists = oracle.distances(xb, centroids).argmin(1)
    near = oracle.distances(xq, centroids).argsort(1)[:, :nprobe]
    d = oracle.distances(xq, xb)
    for i, (distances, labels) in enumerate(zip(*found)):
        there = np.isin(lists, near[i])
        order = np.argsort(np.where(there, d[i], np.inf), kind="stable")[:k]
        np.testing.assert_allclose(distances, d[i][order], rtol=1e-6)
        np.testing.assert_array_equal(labels, ids[order])


def centroids_of(index):
    return index.quantizer.reconstruct_n(0, index.nlist)


def test_is_faiss_own(index):
    assert isinstance(index, faiss.GpuIndexIVFFlat)
    assert index.ntotal == N


@pytest.mark.parametrize("nprobe", [1, 5, NLIST])
def test_search(index, data, nprobe):
    index.nprobe = nprobe
    expect_in_lists(
        data, centroids_of(index), index.search(data[1], K), nprobe
    )


def test_more_than_faiss_takes(index, data):
    index.nprobe = NLIST
    D_, I = index.search(data[1], N + 1)
    assert (I[:, -1] == -1).all() and (I[:, :-1] >= 0).all()
    by_id = np.argsort(data[2])
    vectors = by_id[np.searchsorted(data[2][by_id], I[:, :-1])]
    oracle.check_knn(data[1], data[0], N, D_[:, :-1], vectors)


def test_params(index, data):
    index.nprobe = 1
    params = faiss.SearchParametersIVF()
    params.nprobe = 7
    found = index.search(data[1], K, params=params)
    expect_in_lists(data, centroids_of(index), found, 7)
    params.max_codes = 3
    with pytest.raises(RuntimeError, match="max_codes = 3"):
        index.search(data[1], K, params=params)


def test_copies_both_ways(res, data, index):
    cpu = faiss.index_gpu_to_cpu(index)
    assert isinstance(cpu, faiss.IndexIVFFlat) and cpu.ntotal == N
    cpu.nprobe = 3
    clone = faiss_bits.index_cpu_to_gpu(res, 0, cpu)
    assert type(clone) is faiss_bits.GpuIndexBitsIVFFlat
    assert clone.nprobe == 3
    expect_in_lists(data, centroids_of(clone), clone.search(data[1], K), 3)
    copy = faiss_bits.GpuIndexBitsIVFFlat(res, cpu)
    expect_in_lists(data, centroids_of(copy), copy.search(data[1], K), 3)


def test_own_quantizer_stays_alive(res, data):
    xb, xq, ids = data
    quantizer = faiss.IndexFlatL2(D)
    quantizer.add(xb[:NLIST])
    made = faiss_bits.GpuIndexBitsIVFFlat(res, quantizer, D, NLIST)
    del quantizer
    made.add_with_ids(xb, ids)
    made.nprobe = 4
    expect_in_lists(data, xb[:NLIST], made.search(xq, K), 4)


def test_torch(torch, res, data, index):
    xb, xq, ids = data
    index.nprobe = 5
    D_, I = index.search(xq, K)
    tensor = torch.from_numpy(xq).cuda()
    Dt, It = index.search(tensor, K)
    assert Dt.is_cuda and It.is_cuda
    np.testing.assert_array_equal(Dt.cpu().numpy(), D_)
    np.testing.assert_array_equal(It.cpu().numpy(), I)
    index.reset()
    index.add_with_ids(
        torch.from_numpy(xb).cuda(), torch.from_numpy(ids).cuda()
    )
    np.testing.assert_array_equal(index.search(tensor, K)[1].cpu().numpy(), I)
    with pytest.raises(ValueError, match="ids has shape"):
        index.add_with_ids(
            torch.from_numpy(xb).cuda(), torch.from_numpy(ids[1:]).cuda()
        )


def test_bad_arguments(res, index, data):
    with pytest.raises(ValueError, match=r"x has shape \(50, 3\)"):
        index.search(data[1][:, :3], K)
    with pytest.raises(ValueError, match="k = 0"):
        index.search(data[1], 0)
    with pytest.raises(RuntimeError, match="nlist = 0"):
        faiss_bits.GpuIndexBitsIVFFlat(res, D, 0)


def expect_filtered(data, centroids, found, nprobe, members, k=K):
    """As expect_in_lists, of the vectors whose id is in members."""
    xb, xq, ids = data
    chosen = np.isin(ids, members)
    part = xb[chosen], xq, ids[chosen]
    expect_in_lists(part, centroids, found, nprobe, k)


def test_filters(index, data):
    ids = data[2]
    members = ids[::3]
    bitmap = np.zeros(ids.max() // 8 + 1, "uint8")
    np.bitwise_or.at(bitmap, members // 8, (1 << (members % 8)).astype("uint8"))
    batch = faiss.IDSelectorBatch(members)
    for sel, chosen in [
        (batch, members),
        (faiss.IDSelectorArray(members), members),
        (faiss.IDSelectorBitmap(bitmap), members),
        (faiss.IDSelectorNot(batch), np.setdiff1d(ids, members)),
        (faiss.IDSelectorRange(100, 9000), ids[(ids >= 100) & (ids < 9000)]),
        (faiss_bits.DeviceSelector(batch, int(ids.max()) + 1), members),
    ]:
        params = faiss.SearchParametersIVF()
        params.nprobe = 9
        params.sel = sel
        found = index.search(data[1], K, params=params)
        expect_filtered(data, centroids_of(index), found, 9, chosen)
    index.nprobe = 4
    plain = faiss.SearchParameters()
    plain.sel = batch
    found = index.search(data[1], K, params=plain)
    expect_filtered(data, centroids_of(index), found, 4, members)


def test_range_search(index, data):
    xb, xq, ids = data
    index.nprobe = NLIST
    d = oracle.distances(xq, xb)
    radius = float(np.quantile(d, 0.01))
    lims, D_, I = index.range_search(xq, radius)
    assert lims[0] == 0 and lims[-1] == len(D_) == len(I) > Q
    for i in range(Q):
        found = slice(lims[i], lims[i + 1])
        near = d[i] < radius
        # Next to the radius float32 may round to either side.
        doubtful = np.abs(d[i] - radius) < 1e-6 * radius
        assert set(I[found]) ^ set(ids[near]) <= set(ids[doubtful])
        where = dict(zip(ids, d[i]))
        np.testing.assert_allclose(
            D_[found], [where[one] for one in I[found]], rtol=1e-6
        )
    params = faiss.SearchParametersIVF()
    params.nprobe = NLIST
    params.sel = faiss.IDSelectorRange(0, 5000)
    few, _, J = index.range_search(xq, radius, params=params)
    assert len(J) == (I < 5000).sum() and (J < 5000).all()
    with pytest.raises(ValueError, match="x has shape"):
        index.range_search(xq[:, :3], radius)


def test_reconstruct(index, data):
    xb, _, ids = data
    np.testing.assert_array_equal(index.reconstruct(int(ids[17])), xb[17])
    some = np.arange(0, N, 7)
    np.testing.assert_array_equal(index.reconstruct_batch(ids[some]), xb[some])
    assert (index.reconstruct_batch(np.array([-1])) == 0).all()
    with pytest.raises(RuntimeError, match="keys = 3 "):
        index.reconstruct_batch(np.array([ids[0], 3]))
    index.nprobe = 3
    D_, I, R = index.search_and_reconstruct(data[1], K)
    where = dict(zip(ids, xb))
    np.testing.assert_array_equal(R[4, 2], where[I[4, 2]])


def test_remove(index, data):
    xb, _, ids = data
    gone = ids[::2]
    assert index.remove_ids(faiss.IDSelectorBatch(gone)) == len(gone)
    assert index.ntotal == N - len(gone)
    index.nprobe = 6
    left = xb[1::2], data[1], ids[1::2]
    expect_in_lists(
        left, centroids_of(index), index.search(data[1], K), 6
    )
    assert index.remove_ids(gone) == 0
    index.add_with_ids(xb[::2], gone)
    expect_in_lists(
        data, centroids_of(index), index.search(data[1], K), 6
    )
