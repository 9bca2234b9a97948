"""Vectors of inverted lists on the GPU by their ids, from Python: range search,
reading, removal and updates, of every class, with numpy and torch."""

import faiss
import numpy as np
import oracle
import pytest

import faiss_bits

pytestmark = pytest.mark.gpu
N, D, NLIST, Q, K = 3000, 24, 20, 30, 10
KINDS = ("Flat", "QT_8bit", "QT_4bit", "QT_fp16", "PQ")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    xb = rng.random((N, D), dtype="float32")
    xq = rng.random((Q, D), dtype="float32")
    ids = rng.permutation(N).astype("int64") * 7 + 5
    return xb, xq, ids


def empty(res, kind, indices=None):
    if kind == "Flat":
        name, args = "IVFFlat", ()
    elif kind == "PQ":
        name, args = "IVFPQ", (8, 8)
    else:
        name, args = "IVFScalarQuantizer", (getattr(faiss.ScalarQuantizer, kind),)
    if indices is not None:
        config = getattr(faiss, f"GpuIndex{name}Config")()
        config.indicesOptions = indices
        args += (faiss.METRIC_L2,) + ((True,) if "QT" in kind else ()) + (config,)
    return getattr(faiss_bits, f"GpuIndexBits{name}")(res, D, NLIST, *args)


@pytest.fixture(params=KINDS)
def index(request, res, data):
    xb, _, ids = data
    made = empty(res, request.param)
    made.train(xb)
    made.add_with_ids(xb, ids)
    made.nprobe = NLIST
    return made


def on_the_cpu(index):
    """{id: vector}, as FAISS's CPU index decodes it; and what that may differ."""
    cpu = faiss.index_gpu_to_cpu(index)
    vectors = {}
    for one in range(NLIST):
        size = cpu.invlists.list_size(one)
        ids = faiss.rev_swig_ptr(cpu.invlists.get_ids(one), size)
        for place, number in enumerate(ids):
            x = np.empty(D, "float32")
            cpu.reconstruct_from_offset(one, place, faiss.swig_ptr(x))
            vectors[int(number)] = x
    # Scalar codes are decoded as on FAISS's GPU: other last bits.
    exact = not isinstance(cpu, faiss.IndexIVFScalarQuantizer)
    return vectors, 0 if exact else 2e-6


def test_reconstruct(index, data):
    ids = data[2]
    vectors, error = on_the_cpu(index)
    want = np.stack([vectors[int(one)] for one in ids])
    np.testing.assert_allclose(index.reconstruct_batch(ids), want, 0, error)
    np.testing.assert_allclose(
        index.reconstruct(int(ids[17])), want[17], 0, error
    )
    assert (index.reconstruct_batch(np.array([-1])) == 0).all()
    with pytest.raises(RuntimeError, match="keys = 3 "):
        index.reconstruct_batch(np.array([ids[0], 3]))


def test_reconstruct_n(res, data):
    xb = data[0]
    index = empty(res, "PQ")
    index.train(xb)
    index.add(xb)
    vectors, error = on_the_cpu(index)
    want = np.stack([vectors[i] for i in range(100, 200)])
    np.testing.assert_allclose(index.reconstruct_n(100, 100), want, 0, error)


def test_search_and_reconstruct(index, data):
    index.nprobe = 1
    k = N // 4  # lists have fewer
    D_, I, R = index.search_and_reconstruct(data[1], k)
    want_D, want_I = index.search(data[1], k)
    np.testing.assert_array_equal(D_, want_D)
    np.testing.assert_array_equal(I, want_I)
    np.testing.assert_array_equal(R, index.reconstruct_batch(I.ravel()).reshape(Q, k, D))
    assert (I == -1).any() and (R[I == -1] == 0).all()
    d = ((R - data[1][:, None].astype("float64")) ** 2).sum(2)
    np.testing.assert_allclose(D_[I != -1], d[I != -1], rtol=1e-6)


def test_range_search(index, data):
    _, xq, ids = data
    decoded = index.reconstruct_batch(ids)
    d = oracle.distances(xq, decoded)
    radius = float(np.quantile(d, 0.01))
    lims, D_, I = index.range_search(xq, radius)
    assert lims[0] == 0 and lims[-1] == len(D_) == len(I) > Q
    where = dict(zip(ids, range(N)))
    for i in range(Q):
        found = slice(lims[i], lims[i + 1])
        # Next to the radius float32 may round to either side.
        doubtful = np.abs(d[i] - radius) < 1e-6 * radius
        assert set(I[found]) ^ set(ids[d[i] < radius]) <= set(ids[doubtful])
        np.testing.assert_allclose(
            D_[found], [d[i][where[one]] for one in I[found]], rtol=1e-6
        )
    params = faiss.SearchParametersIVF()
    params.nprobe = NLIST
    params.sel = faiss.IDSelectorRange(0, 5000)
    _, _, J = index.range_search(xq, radius, params=params)
    np.testing.assert_array_equal(J, I[I < 5000])
    with pytest.raises(ValueError, match="x has shape"):
        index.range_search(xq[:, :3], radius)


def test_remove(index, data):
    xb, xq, ids = data
    before = index.search(xq, N)
    gone = ids[::3]
    assert index.remove_ids(gone) == len(gone)
    assert index.ntotal == N - len(gone)
    D_, I = index.search(xq, K)
    for i in range(Q):
        stays = ~np.isin(before[1][i], gone)
        np.testing.assert_array_equal(I[i], before[1][i][stays][:K])
        np.testing.assert_array_equal(D_[i], before[0][i][stays][:K])
    assert index.remove_ids(faiss.IDSelectorBatch(gone)) == 0
    index.add_with_ids(xb[::3], gone)
    for found, want in zip(index.search(xq, N), before):
        np.testing.assert_array_equal(found, want)


def updated(index, data):
    """New vectors for some ids, and what an index with them returns."""
    xb, xq, ids = data
    keys = np.ascontiguousarray(ids[::4])
    x = np.ascontiguousarray(xb[::-4][: len(keys)])
    index.remove_ids(keys)
    index.add_with_ids(x, keys)
    want = index.search(xq, N)
    index.reset()
    index.add_with_ids(xb, ids)
    return keys, x, want


def test_update(index, data):
    keys, x, want = updated(index, data)
    index.update_vectors(keys, x)
    assert index.ntotal == N
    for found, wanted in zip(index.search(data[1], N), want):
        np.testing.assert_array_equal(found, wanted)


def test_bad_updates(index, data):
    xb, xq, ids = data
    want = index.search(xq, K)
    some = ids[:3].copy()
    x = xb[:3]
    some[1] = 4
    with pytest.raises(RuntimeError, match="ids = 4 .*is in no list"):
        index.update_vectors(some, x)
    some[1] = some[2]
    with pytest.raises(RuntimeError, match=f"ids = {some[2]} is there twice"):
        index.update_vectors(some, x)
    bad = x.copy()
    bad[1, 3] = np.nan
    with pytest.raises(RuntimeError, match=r"x\[1\]"):
        index.update_vectors(ids[:3], bad)
    with pytest.raises(ValueError, match=r"keys has shape \(2,\)"):
        index.update_vectors(ids[:2], x)
    with pytest.raises(TypeError, match="keys is float64"):
        index.update_vectors(ids[:3].astype(float), x)
    with pytest.raises(ValueError, match="x has shape"):
        index.update_vectors(ids[:3], x[:, :4])
    for found, wanted in zip(index.search(xq, K), want):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_no_ids_to_update(res, data, kind):
    xb = data[0]
    index = empty(res, kind, faiss.INDICES_IVF)
    index.train(xb)
    index.add(xb)
    with pytest.raises(RuntimeError, match="INDICES_IVF"):
        index.update_vectors(np.array([0]), xb[:1])


def test_torch(torch, index, data):
    xq, ids = data[1], data[2]
    index.nprobe = 3
    tensor = torch.from_numpy(xq).cuda()
    keys = torch.from_numpy(ids[:100]).cuda()
    vectors = index.reconstruct_batch(keys)
    assert vectors.is_cuda
    np.testing.assert_array_equal(
        vectors.cpu().numpy(), index.reconstruct_batch(ids[:100])
    )
    Dt, It, Rt = index.search_and_reconstruct(tensor, K)
    for found, want in zip((Dt, It, Rt), index.search_and_reconstruct(xq, K)):
        assert found.is_cuda
        np.testing.assert_array_equal(found.cpu().numpy(), want)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch_update(torch, index, data, device):
    keys, x, want = updated(index, data)
    keys = torch.from_numpy(keys).to(device)
    x = torch.from_numpy(x).to(device)
    with pytest.raises(TypeError, match="keys is int32"):
        index.update_vectors(keys.int(), x)
    with pytest.raises(TypeError, match="keys is a ndarray"):
        index.update_vectors(keys.cpu().numpy(), x)
    index.update_vectors(keys, x)
    for found, wanted in zip(index.search(data[1], N), want):
        np.testing.assert_array_equal(found, wanted)
