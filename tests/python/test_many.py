"""Shards and replicas from Python: the results of one index, bit for bit."""

import faiss
import numpy as np
import pytest
from conftest import make

import faiss_bits

N, D, Q, K = 1500, 12, 30, 40


def resources(count):
    made = [faiss.StandardGpuResources() for _ in range(count)]
    for one in made:
        one.setTempMemory(64 << 20)
    return made


def one_index(res, xb, metric=faiss.METRIC_L2):
    index = faiss_bits.GpuIndexBitsFlat(res, xb.shape[1], metric)
    index.add(xb)
    return index


def config(**fields):
    return faiss_bits.GpuIndexBitsManyConfig(leastPiece=1, **fields)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b))


# The classes by their names: a build of the CPU part has none.
CLASSES = ("GpuIndexBitsShards", "GpuIndexBitsReplicas")


@pytest.mark.gpu
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_is_one_index(res, name, count, metric):
    xb, xq = make("normal", N, D, 1), make("normal", Q, D, 2)
    many = getattr(faiss_bits, name)(
        [0] * count, D, metric, config(), resources=resources(count)
    )
    many.add(xb[:900])
    many.add(xb[900:])
    one = one_index(res, xb, metric)
    assert many.ntotal == N and many.count() == count
    assert same(many.search(xq, K), one.search(xq, K))
    assert np.array_equal(many.assign(xq, 3), one.assign(xq, 3))
    assert np.array_equal(many.reconstruct_n(0, N), xb)
    assert np.array_equal(many.reconstruct(901), xb[901])
    params = faiss.SearchParameters(sel=faiss.IDSelectorRange(100, 1000))
    assert same(
        many.search(xq, K, params=params), one.search(xq, K, params=params)
    )
    many.search_mode = "plain"
    assert many.search_mode == "plain"
    many.search_mode = "certified"
    many.reset()
    assert many.ntotal == 0
    D_none, I_none = many.search(xq, 2)
    assert (I_none == -1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", CLASSES)
def test_takes_tensors(res, name):
    torch = pytest.importorskip("torch")
    xb, xq = make("normal", N, D, 1), make("normal", Q, D, 2)
    many = getattr(faiss_bits, name)(
        [0, 0], D, config=config(), resources=resources(2)
    )
    many.add(torch.from_numpy(xb).cuda())
    want = one_index(res, xb).search(xq, K)
    for tensor in (torch.from_numpy(xq), torch.from_numpy(xq).cuda()):
        found = many.search(tensor, K)
        assert all(x.device == tensor.device for x in found)
        assert same([x.cpu().numpy() for x in found], want)


@pytest.mark.gpu
@pytest.mark.parametrize("shard", [False, True])
def test_copies_of_cpu_indexes(res, shard):
    xb, xq = make("normal", N, D, 1), make("normal", Q, D, 2)
    flat = faiss.IndexFlatL2(D)
    flat.add(xb)
    ivf = faiss.IndexIVFFlat(faiss.IndexFlatL2(D), D, 8)
    ivf.train(xb)
    ivf.add(xb)
    ivf.nprobe = 3
    options = faiss.GpuMultipleClonerOptions()
    options.shard = shard
    for index in (flat, ivf):
        want = faiss_bits.index_cpu_to_gpu(res, 0, index).search(xq, K)
        many = faiss_bits.index_cpu_to_gpu_multiple(
            resources(2), [0, 0], index, options, config()
        )
        assert type(many).__name__ == CLASSES[0 if shard else 1]
        assert same(many.search(xq, K), want)
        everywhere = faiss_bits.index_cpu_to_all_gpus(index, options)
        assert same(everywhere.search(xq, K), want)


@pytest.mark.gpu
@pytest.mark.parametrize("shard", [False, True])
def test_inverted_lists_are_trained_and_filled(res, shard):
    """As FAISS's users do: an empty index goes to the GPUs, and is filled there."""
    torch = pytest.importorskip("torch")
    xb, xq = make("normal", N, D, 1), make("normal", Q, D, 2)
    ids = np.random.default_rng(3).permutation(10 * N)[:600]
    options = faiss.GpuMultipleClonerOptions()
    options.shard = shard
    for factory in ("IVF8,Flat", "IVF8,SQ8", "IVF8,PQ3np", "PCA8,IVF8,Flat"):
        empty = faiss.index_factory(D, factory)
        one = faiss_bits.index_cpu_to_gpu(res, 0, empty)
        many = faiss_bits.index_cpu_to_gpu_multiple(
            resources(3), [0] * 3, empty, options, config()
        )
        assert not many.is_trained
        for index in (one, many):
            index.train(xb)
            index.add(xb[:900])
        assert many.is_trained and many.ntotal == 900
        assert same(many.search(xq, K), one.search(xq, K))
        if factory.startswith("PCA"):
            continue
        one.add_with_ids(xb[900:], ids)
        many.add_with_ids(xb[900:1000], ids[:100])
        many.add_with_ids(
            torch.from_numpy(xb[1000:]).cuda(), torch.from_numpy(ids[100:]).cuda()
        )
        params = faiss.SearchParametersIVF(nprobe=5)
        assert many.ntotal == N
        assert same(
            many.search(xq, K, params=params), one.search(xq, K, params=params)
        )
        many.reset()
        assert many.ntotal == 0 and many.is_trained


@pytest.mark.gpu
def test_resources_live_as_long_as_the_index():
    xb = make("normal", N, D, 1)
    index = faiss_bits.GpuIndexBitsShards(
        [0, 0], D, config=config(), resources=resources(2)
    )
    index.add(xb)
    assert (index.search(xb, 1)[1][:, 0] == np.arange(N)).all()


@pytest.mark.gpu
def test_bad_arguments():
    some = resources(2)
    shards = faiss_bits.GpuIndexBitsShards
    for error, word, call in (
        (ValueError, "resources", lambda: shards([0], D, resources=some)),
        (TypeError, "resources", lambda: shards([0], D, resources=[3])),
        (ValueError, "device = 99", lambda: shards([99], D)),
        (RuntimeError, "devices", lambda: shards([], D)),
        (RuntimeError, "dims = 0", lambda: shards([0, 0], 0, resources=some)),
        (
            TypeError,
            "metric",
            lambda: shards([0, 0], faiss.IndexFlat(2), 1, resources=some),
        ),
        (
            TypeError,
            "index",
            lambda: faiss_bits.index_cpu_to_gpu_multiple(some, [0, 0], 3),
        ),
        (
            ValueError,
            "ngpu = 0",
            lambda: faiss_bits.index_cpu_to_all_gpus(faiss.IndexFlat(2), ngpu=0),
        ),
        (TypeError, "size", lambda: faiss_bits.GpuIndexBitsManyConfig(size=3)),
    ):
        with pytest.raises(error, match=word):
            call()


@pytest.mark.cpu
def test_says_what_is_missing():
    index = faiss.IndexFlatL2(3)
    for call in (
        lambda: faiss_bits.index_cpu_to_gpu_multiple(None, [0], index),
        lambda: faiss_bits.index_cpu_to_all_gpus(index),
    ):
        with pytest.raises(RuntimeError, match="needs a GPU"):
            call()
    for name in CLASSES:
        if hasattr(faiss_bits, name):
            with pytest.raises(RuntimeError, match=f"{name} needs a GPU"):
                getattr(faiss_bits, name)([0], 3)
        else:
            with pytest.raises(AttributeError, match="CPU part only"):
                getattr(faiss_bits, name)
