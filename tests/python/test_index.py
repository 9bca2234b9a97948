"""The GPU index classes from Python: numpy in and out, and as FAISS's own."""

import faiss
import numpy as np
import oracle
import pytest
from conftest import INDEX_METRICS, KINDS, METRICS, make
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits

pytestmark = pytest.mark.gpu
IP = faiss.METRIC_INNER_PRODUCT
D_BIG, N_BIG = 24, 3000


STORAGES = ("float32", "float16", "bfloat16")


def config_of(storage):
    config = faiss_bits.GpuIndexBitsFlatConfig()
    config.useFloat16 = storage == "float16"
    config.useBFloat16 = storage == "bfloat16"
    return config


def stored(x, storage):
    """Vectors as the index holds them, as float32."""
    if storage == "bfloat16":
        return oracle.bfloat16(x)
    return x.astype(storage).astype(np.float32)


def index_of(res, xb, metric=faiss.METRIC_L2, storage="float32"):
    config = config_of(storage)
    index = faiss_bits.GpuIndexBitsFlat(res, xb.shape[1], metric, config)
    index.add(xb)
    return index


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("q", [1, 2, 19, 20, 200])
@pytest.mark.parametrize(
    "k", [1, 10, 1024, 2048, 2049, N_BIG - 1, N_BIG, N_BIG + 1]
)
def test_search(res, metric, q, k):
    xq, xb = make("normal", q, D_BIG, 1), make("normal", N_BIG, D_BIG, 2)
    D, I = index_of(res, xb, metric).search(xq, k)
    assert D.dtype == np.float32 and I.dtype == np.int64
    oracle.check_knn(xq, xb, k, D, I, metric == IP)
    oracle.check_tie_order(D, I)


@given(
    q=st.integers(1, 40),
    n=st.integers(0, 200),
    d=st.integers(1, 40),
    k=st.integers(1, 220),
    kind=st.sampled_from(KINDS),
    metric=st.sampled_from(METRICS),
    seed=st.integers(0, 1000),
)
def test_any_size_and_kind(res, q, n, d, k, kind, metric, seed):
    xq, xb = make(kind, q, d, seed + 1), make(kind, n, d, seed)
    D, I = index_of(res, xb, metric).search(xq, k)
    oracle.check_knn(xq, xb, k, D, I, metric == IP)
    oracle.check_tie_order(D, I)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("storage", STORAGES[1:])
def test_16_bits_are_exact_on_small_integers(res, metric, storage):
    xq, xb = make("ties", 30, 16, 1), make("ties", 500, 16, 2)
    D, I = index_of(res, xb, metric, storage).search(xq, 40)
    D2, I2 = index_of(res, xb, metric).search(xq, 40)
    assert (D == D2).all() and (I == I2).all()
    assert (D == np.take_along_axis(
        oracle.distances(xq, xb, metric == IP), I, axis=1)).all()


def test_classes_are_faiss_subclasses(res):
    for name, metric in (("L2", faiss.METRIC_L2), ("IP", IP)):
        the_class = getattr(faiss_bits, "GpuIndexBitsFlat" + name)
        index = the_class(res, 8)
        for base in (faiss_bits.GpuIndexBitsFlat, faiss.GpuIndexFlat, faiss.Index):
            assert isinstance(index, base)
        assert index.metric_type == metric and index.d == 8 and index.ntotal == 0
        assert index.is_trained


@pytest.mark.parametrize("storage", STORAGES)
def test_add_reset_reconstruct_assign(res, storage):
    xb = stored(make("normal", 100, 12, 1), storage)
    index = index_of(res, xb[:60], storage=storage)
    index.reserve(100)
    index.add(xb[60:])
    assert index.ntotal == index.getNumVecs() == 100
    assert (index.reconstruct(61) == xb[61]).all()
    assert (index.reconstruct_n(10, 50) == xb[10:60]).all()
    assert (index.reconstruct_batch(np.array([5, 0, 99])) == xb[[5, 0, 99]]).all()
    D, I = index.search(xb[:7], 3)
    assert (index.assign(xb[:7], 3) == I).all()
    D2, I2, R = index.search_and_reconstruct(xb[:7], 3)
    assert (D2 == D).all() and (I2 == I).all() and (R == xb[I]).all()
    index.reset()
    assert index.ntotal == 0
    _, I = index.search(xb[:2], 2)
    assert (I == -1).all()


def test_large_k_in_every_call(res):
    xb = make("ties", 4000, 6, 1)
    index, k = index_of(res, xb), 3000
    D, I = index.search(xb[:5], k)
    oracle.check_knn(xb[:5], xb, k, D, I)
    assert (index.assign(xb[:5], k) == I).all()
    D2, I2, R = index.search_and_reconstruct(xb[:5], k)
    assert (D2 == D).all() and (I2 == I).all() and (R == xb[I]).all()


def test_copies_to_and_from_the_cpu(res):
    xb = make("normal", 50, 6, 1)
    cpu = faiss.IndexFlatL2(6)
    cpu.add(xb)
    ours = faiss_bits.GpuIndexBitsFlatL2(res, cpu)
    assert (ours.reconstruct_n(0, 50) == xb).all()
    back = faiss.IndexFlatL2(6)
    ours.copyTo(back)
    assert (back.reconstruct_n(0, 50) == xb).all()
    other = faiss_bits.GpuIndexBitsFlat(res, 6, faiss.METRIC_L2)
    other.copyFrom(cpu)
    assert other.ntotal == 50
    assert (faiss.index_gpu_to_cpu(ours).reconstruct_n(0, 50) == xb).all()


@pytest.mark.parametrize("metric", METRICS)
def test_index_cpu_to_gpu(res, metric):
    xb, xq = make("normal", 200, 6, 1), make("normal", 9, 6, 2)
    cpu = faiss.IndexFlat(6, metric)
    cpu.add(xb)
    options = faiss.GpuClonerOptions()
    options.useFloat16 = False
    for more in ((), (None,), (options,)):
        index = faiss_bits.index_cpu_to_gpu(res, 0, cpu, *more)
        assert isinstance(index, faiss_bits.GpuIndexBitsFlat)
        assert index.metric_type == metric
        D, I = index.search(xq, 5)
        oracle.check_knn(xq, xb, 5, D, I, metric == IP)


@pytest.mark.parametrize("metric", METRICS)
def test_index_cpu_to_gpu_of_float16_codes(res, metric):
    xb, xq = make("normal", 200, 6, 1), make("normal", 9, 6, 2)
    cpu, inner = (
        faiss.IndexScalarQuantizer(6, faiss.ScalarQuantizer.QT_fp16, metric)
        for _ in range(2)
    )
    cpu.add(xb)
    stored = cpu.reconstruct_n(0, 200)
    ids = np.arange(200) * 3 + 1
    mapped = faiss.IndexIDMap(inner)
    mapped.add_with_ids(xb, ids)
    index = faiss_bits.index_cpu_to_gpu(res, 0, cpu)
    assert isinstance(index, faiss_bits.GpuIndexBitsFlat)
    assert index.metric_type == metric
    D, I = index.search(xq, 5)
    oracle.check_knn(xq, stored, 5, D, I, metric == IP)
    back = faiss.index_gpu_to_cpu(index)
    assert isinstance(back, faiss.IndexFlat)
    assert (back.reconstruct_n(0, 200) == stored).all()
    of_ids = faiss_bits.index_cpu_to_gpu(res, 0, mapped)
    assert same_bits(of_ids.search(xq, 5), (D, ids[I]))
    with pytest.raises(RuntimeError, match="useBFloat16"):
        faiss_bits.index_cpu_to_gpu(res, 0, cpu, useBFloat16=True)


def test_index_cpu_to_gpu_of_other_indexes(res):
    xb = make("normal", 1000, 8, 1)
    cpu = faiss.IndexIVFFlat(faiss.IndexFlatL2(8), 8, 4)
    cpu.train(xb)
    cpu.add(xb)
    index = faiss_bits.index_cpu_to_gpu(res, 0, cpu)
    assert isinstance(index, faiss.GpuIndexIVFFlat)
    with pytest.raises(ValueError, match="device = 10000"):
        faiss_bits.index_cpu_to_gpu(res, 10000, cpu)


def test_as_kmeans_index_and_coarse_quantizer(res):
    xb = make("normal", 2000, 8, 1)
    clustering = faiss.Clustering(8, 16)
    index = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    clustering.train(xb, index)
    assert index.ntotal == 16
    quantizer = faiss_bits.GpuIndexBitsFlatL2(res, 8)
    ivf = faiss.GpuIndexIVFFlat(res, quantizer, 8, 16, faiss.METRIC_L2)
    ivf.train(xb)
    ivf.add(xb)
    ivf.nprobe = 16
    D, I = ivf.search(xb[:20], 5)
    oracle.check_knn(xb[:20], xb, 5, D, I)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda i, x: i.search(x[0], 1), ValueError, ["x", "(4,)"]),
        (lambda i, x: i.search(x[:, :2], 1), ValueError, ["x", "(any, 4)"]),
        (lambda i, x: i.add(x[:, :2]), ValueError, ["x", "(any, 4)"]),
        (lambda i, x: i.search(x, 0), ValueError, ["k = 0"]),
        (lambda i, x: i.search(x[:0], 2**31), ValueError, ["k = 2147483648"]),
        (lambda i, x: i.assign(x, 2.5), TypeError, ["k = 2.5"]),
        (lambda i, x: i.reconstruct(10), RuntimeError, ["10"]),
        (lambda i, x: i.reconstruct(-1), RuntimeError, ["-1"]),
        (lambda i, x: i.reconstruct_n(8, 3), RuntimeError, ["8"]),
        (lambda i, x: i.add_with_ids(x, np.arange(10)), RuntimeError, ["ids"]),
        (
            lambda i, x: i.search(
                x,
                1,
                params=faiss.SearchParametersIVF(nprobe=3),
            ),
            RuntimeError,
            ["params"],
        ),
    ],
)
def test_errors_leave_the_index_as_it_was(res, call, error, words):
    xb = make("normal", 10, 4, 1)
    index = index_of(res, xb)
    with pytest.raises(error) as caught:
        call(index, xb)
    for word in words:
        assert word in str(caught.value), caught.value
    assert index.ntotal == 10
    assert (index.search(xb, 1)[1][:, 0] == np.arange(10)).all()


@pytest.mark.parametrize("name", ["", "L2", "IP"])
def test_takes_the_config_of_faiss(res, name):
    """The class's name is all that a program of FAISS's has to change."""
    config = faiss.GpuIndexFlatConfig()
    config.device, config.useFloat16 = 0, True
    shape = (4,) if name else (4, faiss.METRIC_L2)
    xb = np.full((3, 4), 1 + 2**-20, np.float32)  # 1 in float16
    cpu = faiss.IndexFlatIP(4) if name == "IP" else faiss.IndexFlatL2(4)
    cpu.add(xb)
    ours = getattr(faiss_bits, "GpuIndexBitsFlat" + name)
    empty = ours(res, *shape, config)
    empty.add(xb)
    for index in (empty, ours(res, cpu, config)):
        assert (index.d, index.ntotal, index.getDevice()) == (4, 3, 0)
        assert (index.reconstruct(2) == 1).all()  # stored as float16
    config.device = 10000
    with pytest.raises(RuntimeError, match="10000"):
        ours(res, *shape, config)
    for wrong in ("float16", 1.5, faiss.GpuClonerOptions()):
        with pytest.raises((TypeError, NotImplementedError)):
            ours(res, *shape, wrong)


@pytest.mark.parametrize("dims", [0, -1])
def test_bad_constructor_arguments(res, dims):
    with pytest.raises(RuntimeError, match=str(dims)):
        faiss_bits.GpuIndexBitsFlatL2(res, dims)
    with pytest.raises(RuntimeError, match="metric"):
        faiss_bits.GpuIndexBitsFlat(res, 4, 18)
    config = faiss_bits.GpuIndexBitsFlatConfig()
    config.device = 10000
    with pytest.raises(RuntimeError, match="10000"):
        faiss_bits.GpuIndexBitsFlatL2(res, 4, config)


@pytest.mark.parametrize("storage", STORAGES)
def test_search_modes(res, storage):
    xq, xb = make("normal", 40, 32, 1), make("normal", 5000, 32, 2)
    index = index_of(res, xb, storage=storage)
    assert index.search_mode == "certified"
    D, I = index.search(xq, 10)
    stats = index.stats()
    assert stats.certified + stats.repeated == 40
    assert stats.rescored >= 40 * 10
    index.reset_stats()
    index.search_mode = "plain"
    D2, I2 = index.search(xq, 10)
    assert index.stats().certified == 0
    # Queries are rounded to the type of the storage.
    rtol, same = (2e-2, 0.5) if storage == "bfloat16" else (2e-3, 0.9)
    np.testing.assert_allclose(D, D2, rtol=rtol)
    assert (I == I2).mean() > same
    with pytest.raises(ValueError, match="search_mode = 'exact'"):
        index.search_mode = "exact"


@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_fast_mode(res, metric):
    xq, xb = make("normal", 40, 64, 1), make("normal", 20000, 64, 2)
    index = faiss_bits.GpuIndexBitsFlat(res, 64, metric)
    index.add(xb)
    D, I = index.search(xq, 50)
    index.search_mode = "fast"
    assert index.search_mode == "fast"
    D2, I2 = index.search(xq, 50)
    np.testing.assert_allclose(D2, D, rtol=1e-3)
    for found, wanted in zip(I2, I, strict=True):
        assert len(set(found)) == 50
        assert len(set(found) & set(wanted)) >= 45
    D3, I3 = faiss_bits.knn(
        xq, xb, 50, metric=metric, res=res, search_mode="fast"
    )
    np.testing.assert_allclose(D3, D, rtol=1e-3)
    # Too few queries for that.
    fast = index.search(xq[:5], 50)
    np.testing.assert_array_equal(fast[0], D[:5])
    np.testing.assert_array_equal(fast[1], I[:5])


def test_batches_have_the_same_bits(res):
    """Far from the origin, where float32 products say nothing."""
    xb = make("normal", 3000, 24, 2) + np.float32(1000)
    xq = make("normal", 300, 24, 1) + np.float32(1000)
    index = index_of(res, xb)
    D, I = index.search(xq, 20)
    for q in (1, 2, 16, 17, 64):
        D2, I2 = index.search(xq[:q], 20)
        assert (D[:q] == D2).all() and (I[:q] == I2).all()
    cpu = faiss_bits.IndexFusedFlat(24)
    cpu.add(xb)
    D2, I2 = cpu.search(xq, 20)
    assert (D == D2).all() and (I == I2).all()
    oracle.check_tie_order(D, I)


def same_bits(found, expected):
    return all(a.tobytes() == b.tobytes() for a, b in zip(found, expected))


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", ["normal", "ties", "far"])
def test_the_bits_of_the_cpu(res, metric, argument, name, storage, kind):
    """Vectors as they are stored, and queries that are not rounded."""
    xq, xb = make(kind, 70, 19, 1), make(kind, 2000, 19, 2)
    xq *= np.float32(1 + 2**-12)
    ours = faiss_bits.GpuIndexBitsFlat(res, 19, metric, config_of(storage))
    ours.metric_arg = argument
    ours.add(xb)
    cpu = faiss_bits.IndexFusedFlat(19, metric, argument)
    cpu.add(stored(xb, storage))
    for q in (1, 16, 70):
        assert same_bits(ours.search(xq[:q], 30), cpu.search(xq[:q], 30)), q


def test_bfloat16_storage(res):
    xb = make("normal", 300, 12, 1) * np.float32(1e20)  # beyond float16
    cpu = faiss.IndexFlatL2(12)
    cpu.add(xb)
    copied = faiss_bits.GpuIndexBitsFlatL2(res, cpu, config_of("bfloat16"))
    cloned = faiss_bits.index_cpu_to_gpu(res, 0, cpu, useBFloat16=True)
    assert isinstance(cloned, faiss_bits.GpuIndexBitsFlatL2)
    for index in (copied, cloned):
        assert index.ntotal == index.getNumVecs() == 300
        back = faiss.index_gpu_to_cpu(index)
        for held in (index, back):
            assert (held.reconstruct_n(0, 300) == oracle.bfloat16(xb)).all()
    with pytest.raises(RuntimeError, match="getGpuData"):
        copied.getGpuData()
    ivf = faiss.IndexIVFFlat(cpu, 12, 300)
    with pytest.raises(RuntimeError, match="useBFloat16"):
        faiss_bits.index_cpu_to_gpu(res, 0, ivf, useBFloat16=True)
    config = config_of("bfloat16")
    config.useFloat16 = True
    with pytest.raises(RuntimeError, match="useFloat16.*useBFloat16"):
        faiss_bits.GpuIndexBitsFlatL2(res, 4, config)


def test_bfloat16_asked_of_an_object_of_faiss(res):
    config, options = faiss.GpuIndexFlatConfig(), faiss.GpuClonerOptions()
    config.useBFloat16 = options.useBFloat16 = True
    with pytest.raises(TypeError, match="config.*GpuIndexBitsFlatConfig"):
        faiss_bits.GpuIndexBitsFlatL2(res, 4, config)
    config = faiss.GpuIndexFlatConfig()
    config.keepSearchImage = False
    with pytest.raises(TypeError, match="config.*keepSearchImage"):
        faiss_bits.GpuIndexBitsFlatL2(res, 4, config)
    with pytest.raises(TypeError, match="options.*useBFloat16=True"):
        faiss_bits.index_cpu_to_gpu(res, 0, faiss.IndexFlatL2(4), options)
