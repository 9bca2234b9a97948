"""GpuIndexBitsIVFScalarQuantizer and GpuIndexBitsIVFPQ from Python: numpy and
torch, parameters, copies. What they find is compared with the vectors that
FAISS's CPU index reconstructs."""

import faiss
import numpy as np
import oracle
import pytest

import faiss_bits

pytestmark = pytest.mark.gpu
N, D, NLIST, Q, K = 3000, 24, 20, 50, 10
TYPES = (
    "QT_8bit",
    "QT_8bit_uniform",
    "QT_4bit",
    "QT_4bit_uniform",
    "QT_6bit",
    "QT_fp16",
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    xb = rng.random((N, D), dtype="float32")
    xq = rng.random((Q, D), dtype="float32")
    return xb, xq


def make(res, xb, kind):
    if kind == "PQ":
        index = faiss_bits.GpuIndexBitsIVFPQ(res, D, NLIST, 8, 8)
    else:
        qtype = getattr(faiss.ScalarQuantizer, kind)
        index = faiss_bits.GpuIndexBitsIVFScalarQuantizer(res, D, NLIST, qtype)
    index.train(xb)
    index.add(xb)
    return index


def expect_decoded(index, xq, found, nprobe, k=K):
    """The k nearest of the decoded vectors in the nearest nprobe lists."""
    cpu = faiss.index_gpu_to_cpu(index)
    centroids = cpu.quantizer.reconstruct_n(0, NLIST)
    cpu.make_direct_map()
    decoded = cpu.reconstruct_n(0, N)
    lists = np.empty(N, dtype="int64")
    for one in range(NLIST):
        size = cpu.invlists.list_size(one)
        ids = faiss.rev_swig_ptr(cpu.invlists.get_ids(one), size)
        lists[ids] = one
    near = oracle.distances(xq, centroids).argsort(1)[:, :nprobe]
    d = oracle.distances(xq, decoded)
    for i, (distances, labels) in enumerate(zip(*found)):
        there = np.isin(lists, near[i])
        order = np.argsort(np.where(there, d[i], np.inf), kind="stable")[:k]
        # Scalar codes are decoded as on the GPU: other last bits.
        np.testing.assert_allclose(distances, d[i][order], rtol=2e-5)
        np.testing.assert_allclose(distances, d[i][labels], rtol=2e-5)
        assert there[labels].all() and len(set(labels)) == k


@pytest.mark.parametrize("kind", [*TYPES, "PQ"])
def test_search(res, data, kind):
    xb, xq = data
    index = make(res, xb, kind)
    assert index.ntotal == N
    for nprobe in (1, 5, NLIST):
        index.nprobe = nprobe
        expect_decoded(index, xq, index.search(xq, K), nprobe)
    params = faiss.SearchParametersIVF()
    params.nprobe = 7
    expect_decoded(index, xq, index.search(xq, K, params=params), 7)


@pytest.mark.parametrize("kind", [*TYPES, "PQ"])
@pytest.mark.parametrize("q", [1, Q])
def test_filters(res, data, kind, q):
    """What a search of everything finds, and no more than is selected."""
    xb, xq = data
    index = make(res, xb, kind)
    index.nprobe = 7
    D_all, I_all = index.search(xq[:q], N)
    few = np.arange(0, N, 17)
    batch = faiss.IDSelectorBatch(few)
    for sel, chosen in [
        (batch, few),
        (faiss.IDSelectorArray(few), few),
        (faiss.IDSelectorNot(batch), np.setdiff1d(np.arange(N), few)),
        (faiss.IDSelectorRange(100, 2000), np.arange(100, 2000)),
        (faiss_bits.DeviceSelector(batch, N), few),
        (faiss.IDSelectorRange(N, N + 1), np.array([], "int64")),
    ]:
        params = faiss.SearchParametersIVF()
        params.nprobe = 7
        params.sel = sel
        distances, labels = index.search(xq[:q], K, params=params)
        for row in range(q):
            inside = np.isin(I_all[row], chosen)
            count = min(K, int(inside.sum()))
            np.testing.assert_array_equal(labels[row, :count], I_all[row][inside][:K])
            np.testing.assert_array_equal(
                distances[row, :count], D_all[row][inside][:K]
            )
            assert (labels[row, count:] == -1).all()


def test_are_faiss_own(res, data):
    assert isinstance(make(res, data[0], "PQ"), faiss.GpuIndexIVFPQ)
    scalar = make(res, data[0], "QT_8bit")
    assert isinstance(scalar, faiss.GpuIndexIVFScalarQuantizer)


@pytest.mark.parametrize(
    "factory, kind",
    [
        ("IVF20,SQ8", "GpuIndexBitsIVFScalarQuantizer"),
        ("IVF20,SQ6", "GpuIndexBitsIVFScalarQuantizer"),
        ("IVF20,PQ6np", "GpuIndexBitsIVFPQ"),
        ("IVF20,PQ8np", "GpuIndexBitsIVFPQ"),
    ],
)
def test_copies(res, data, factory, kind):
    xb, xq = data
    cpu = faiss.index_factory(D, factory)
    cpu.train(xb)
    cpu.add(xb)
    cpu.nprobe = 3
    clone = faiss_bits.index_cpu_to_gpu(res, 0, cpu)
    assert type(clone) is getattr(faiss_bits, kind)
    assert clone.nprobe == 3
    expect_decoded(clone, xq, clone.search(xq, K), 3)


def test_opq(res, data):
    xb, xq = data
    cpu = faiss.index_factory(D, "OPQ6,IVF20,PQ6np")
    cpu.train(xb)
    cpu.add(xb)
    clone = faiss_bits.index_cpu_to_gpu(res, 0, cpu)
    inner = faiss.downcast_index(clone.index)
    assert isinstance(inner, faiss.GpuIndexIVFPQ)
    D_, I = clone.search(xq, K)
    want, _ = cpu.search(xq, K)
    np.testing.assert_allclose(D_, want, rtol=1e-4)


@pytest.mark.parametrize("kind", ["QT_8bit", "PQ"])
def test_torch(torch, res, data, kind):
    xb, xq = data
    index = make(res, xb, kind)
    index.nprobe = 5
    D_, I = index.search(xq, K)
    tensor = torch.from_numpy(xq).cuda()
    Dt, It = index.search(tensor, K)
    assert Dt.is_cuda and It.is_cuda
    np.testing.assert_array_equal(Dt.cpu().numpy(), D_)
    np.testing.assert_array_equal(It.cpu().numpy(), I)


def test_bad_arguments(res):
    with pytest.raises(RuntimeError, match="qtype = 77"):
        faiss_bits.GpuIndexBitsIVFScalarQuantizer(res, D, NLIST, 77)
    with pytest.raises(RuntimeError, match="subQuantizers = 5"):
        faiss_bits.GpuIndexBitsIVFPQ(res, D, NLIST, 5, 8)
    with pytest.raises(RuntimeError, match="bitsPerCode = 4"):
        faiss_bits.GpuIndexBitsIVFPQ(res, D, NLIST, 6, 4)
