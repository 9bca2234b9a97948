"""Indexes for metric spaces from Python, on the CPU and on the GPU, against plain
float64: SIFT, 3-D points and made data."""

import gc
import os
import pickle
from pathlib import Path

import faiss
import numpy as np
import oracle
import pytest

import faiss_bits
from faiss_bits.contrib import datasets

METRICS = {
    "l2": faiss.METRIC_L2,
    "l1": faiss.METRIC_L1,
    "linf": faiss.METRIC_Linf,
}
KINDS = [
    "list",
    "sss",
    pytest.param("gpu_list", marks=pytest.mark.gpu),
    pytest.param("gpu_sss", marks=pytest.mark.gpu),
]


def index_of(kind, d, metric=faiss.METRIC_L2):
    if kind == "list":
        return faiss_bits.IndexListOfClusters(d, metric, 32)
    if kind == "sss":
        return faiss_bits.IndexSSS(d, metric, 0.4, 30)
    res = faiss.StandardGpuResources()
    if kind == "gpu_list":
        index = faiss_bits.GpuIndexBitsListOfClusters(res, d, metric, 32)
    else:
        index = faiss_bits.GpuIndexBitsSSS(res, d, metric, 0.4, 30)
    del res
    gc.collect()  # the resources must not go
    return index


def expect_exact(index, xb, xq, metric, shares=(0.0001, 0.001, 0.01)):
    """Ranges at some shares of the data, and neighbours. float64 sums of another
    order round to the same float32 but in one of 10^8 cases: sums of whole
    numbers always."""
    true = oracle.distances(xq, xb, metric=metric).astype(np.float32)
    for share in shares:
        radius = float(np.sort(true, axis=None)[int(share * true.size)])
        lims, D, I = index.range_search(xq, radius)
        assert (D.dtype, I.dtype) == (np.float32, np.int64)
        for q in range(len(xq)):
            ids = np.flatnonzero(true[q] < radius)
            found = slice(lims[q], lims[q + 1])
            np.testing.assert_array_equal(I[found], ids)
            np.testing.assert_array_equal(D[found], true[q, ids])
    D, I = index.search(xq, 10)
    for q in range(len(xq)):
        order = np.lexsort((np.arange(len(xb)), true[q]))[:10]
        np.testing.assert_array_equal(I[q], order)
        np.testing.assert_array_equal(D[q], true[q, order])


def real_data(name):
    try:
        if name == "sift":
            data = datasets.sift()
            return data.base[:20000], data.queries[:20]
        path = Path(os.environ.get("FAISS_BITS_DATA", ""), "cloud.h5")
        xb = datasets.read_h5(path)
        xq = datasets.read_h5(path, names=datasets.H5_QUERY_NAMES)
        # Whole numbers: sums are exact in any order.
        return np.round(xb[:20000] * 100), np.round(xq[:20] * 100)
    except (FileNotFoundError, ModuleNotFoundError) as error:
        pytest.skip(f"no data: {error}")


@pytest.mark.parametrize("name", ["sift", "points"])
@pytest.mark.parametrize("kind", KINDS)
def test_real_data(kind, name):
    xb, xq = real_data(name)
    index = index_of(kind, xb.shape[1])
    index.add(xb)
    expect_exact(index, xb, xq, "l2")
    assert index.isBuilt()
    if name == "points":
        index.resetDistances()
        index.range_search(xq, 100.0)
        assert 0 < index.numDistances() < len(xb) * len(xq) / 2


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_metrics_and_ties(kind, metric):
    rng = np.random.default_rng(1)
    xb = rng.integers(0, 5, (2000, 6)).astype(np.float32)
    xq = rng.integers(0, 5, (30, 6)).astype(np.float32)
    index = index_of(kind, 6, METRICS[metric])
    index.add(xb[:700])
    index.add(xb[700:])
    assert index.ntotal == 2000 and index.is_trained
    expect_exact(index, xb, xq, metric, (0, 0.01, 0.5))
    lims, D, I = index.range_search(xq, np.inf)
    assert lims[-1] == len(xb) * len(xq)
    assert index.range_search(xq, 0)[0][-1] == 0
    np.testing.assert_array_equal(index.reconstruct(7), xb[7])
    np.testing.assert_array_equal(index.reconstruct_n(5, 9), xb[5:14])
    index.reset()
    assert index.ntotal == 0
    assert (index.search(xq, 3)[1] == -1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_nan_and_infinities(kind):
    rng = np.random.default_rng(2)
    xb = rng.random((300, 4), dtype=np.float32)
    xb[5, 1], xb[9, 2], xb[11, 0] = np.nan, np.inf, -np.inf
    xq = np.concatenate([xb[:3], xb[[9, 5]]])
    index = index_of(kind, 4)
    index.add(xb)
    lims, _, I = index.range_search(xq, np.inf)
    # Infinite distances are in no range, and NaN is nowhere.
    finite = np.setdiff1d(np.arange(300), [5, 9, 11])
    for q in range(3):
        np.testing.assert_array_equal(I[lims[q] : lims[q + 1]], finite)
    assert lims[3] == lims[5]
    D, I = index.search(xq[:1], 300)
    np.testing.assert_array_equal(I[0, -3:], [9, 11, -1])
    assert np.isinf(D[0, -3:-1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, tmp_path):
    rng = np.random.default_rng(3)
    xb = rng.random((500, 8), dtype=np.float32)
    index = index_of(kind, 8, faiss.METRIC_L1)
    index.add(xb)
    index.build()
    index.write(tmp_path / "index")
    other = index_of(kind, 3)
    other.read(str(tmp_path / "index"))
    assert (other.d, other.ntotal, other.metric_type) == (
        8, 500, faiss.METRIC_L1
    )
    assert other.isBuilt()
    for a, b in zip(
        index.range_search(xb[:20], 1.5), other.range_search(xb[:20], 1.5)
    ):
        np.testing.assert_array_equal(a, b)
    index.write(os.fsencode(tmp_path / "bytes"))
    assert (tmp_path / "bytes").read_bytes() == (tmp_path / "index").read_bytes()
    other.read(os.fsencode(tmp_path / "index"))
    for path, error, words in (
        (b"\xff", ValueError, "fname = .* is not UTF-8"),
        (str(tmp_path / "cut") + "\0off", ValueError, "null character"),
        (3, TypeError, "int"),
    ):
        for method in (index.write, other.read):
            with pytest.raises(error, match=words):
                method(path)
    assert not (tmp_path / "cut").exists()
    with pytest.raises(RuntimeError, match="no such|cannot be opened"):
        other.read(tmp_path / "missing")
    with pytest.raises(RuntimeError, match="another kind"):
        index_of(
            kind.replace("list", "?").replace("sss", "list").replace("?", "sss"), 8
        ).read(tmp_path / "index")


@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments(kind):
    index = index_of(kind, 4)
    x = np.zeros((5, 4), np.float32)
    index.add(x)
    with pytest.raises(ValueError, match="shape"):
        index.range_search(np.zeros((5, 3), np.float32), 1)
    with pytest.raises(ValueError, match="thresh is NaN"):
        index.range_search(x, np.nan)
    if kind.startswith("gpu"):
        with pytest.raises(TypeError, match="thresh = 'far'"):
            index.range_search(x, "far")
        with pytest.raises(ValueError, match="max_results"):
            index.range_search(x, 1, max_results=0)
    with pytest.raises(TypeError, match="thresh = '0.3'"):
        index.range_search(x, "0.3")
    with pytest.raises(ValueError, match="k"):
        index.search(x, 0)
    params = faiss.SearchParameters(sel=faiss.IDSelectorRange(0, 2))
    with pytest.raises(RuntimeError, match="sel"):
        index.search(x, 1, params=params)
    with pytest.raises(RuntimeError, match="ids|add_with_ids"):
        index.add_with_ids(x, np.arange(5))
    with pytest.raises((RuntimeError, TypeError)):
        pickle.dumps(index)  # FAISS does not know the class


def test_bad_constructors():
    with pytest.raises(RuntimeError, match="bucketSize = 0"):
        faiss_bits.IndexListOfClusters(4, faiss.METRIC_L2, 0)
    with pytest.raises(RuntimeError, match="metric = 0"):
        faiss_bits.IndexSSS(4, faiss.METRIC_INNER_PRODUCT)
    with pytest.raises(RuntimeError, match="alpha = 0"):
        faiss_bits.IndexSSS(4, faiss.METRIC_L2, 0)
    with pytest.raises(RuntimeError, match="d = 0"):
        faiss_bits.IndexSSS(0)
    assert "bucketSize" in faiss_bits.IndexListOfClusters.__init__.__doc__


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS[2:])
def test_tensors_stay_on_the_gpu(torch, kind, metric):
    rng = np.random.default_rng(6)
    xb = rng.integers(0, 9, (4000, 3)).astype(np.float32)
    xq = rng.integers(0, 9, (333, 3)).astype(np.float32)
    index, d = index_of(kind, 3, METRICS[metric]), xb.shape[1]
    true = oracle.distances(xq, xb, metric=metric).astype(np.float32)
    x = torch.from_numpy(xb).cuda()
    index.add(x)
    side = torch.cuda.Stream()
    for radius in (-1.0, 0.0, 1.0, 7.0, np.inf):
        with torch.cuda.stream(side):
            # What torch still has to do on this stream comes first.
            queries = torch.from_numpy(xq).pin_memory().cuda(non_blocking=True)
            lims, D, I = index.range_search(queries + 0, radius)
            lims, D, I = (one + 0 for one in (lims, D, I))
        side.synchronize()
        rows, ids = np.nonzero(true < radius)
        counts = np.bincount(rows, minlength=len(xq))
        assert lims.is_cuda and D.is_cuda and I.is_cuda
        assert (lims.dtype, D.dtype, I.dtype) == (
            torch.int64, torch.float32, torch.int64
        )
        np.testing.assert_array_equal(
            lims.cpu(), np.concatenate([[0], counts.cumsum()])
        )
        np.testing.assert_array_equal(I.cpu(), ids)
        np.testing.assert_array_equal(D.cpu(), true[rows, ids])
    # On the CPU, as numpy arrays are searched.
    for got, want in zip(
        index.range_search(torch.from_numpy(xq), 7.0), index.range_search(xq, 7.0)
    ):
        assert not got.is_cuda
        np.testing.assert_array_equal(got.numpy(), want)
    lims, D, I = index.range_search(queries[:0], 1.0)
    assert lims.tolist() == [0] and len(D) == len(I) == 0 and I.is_cuda
    with pytest.raises(ValueError, match="x has shape"):
        index.range_search(torch.zeros(4, d + 1, device="cuda"), 1.0)
    with pytest.raises(TypeError, match="float64"):
        index.range_search(queries.double(), 1.0)
    with pytest.raises(ValueError, match="thresh is NaN"):
        index.range_search(queries, np.nan)


@pytest.mark.parametrize("kind", KINDS[2:])
def test_limit_tells_the_total(torch, kind):
    xb = np.random.default_rng(7).random((2000, 3), dtype=np.float32)
    index = index_of(kind, 3)
    index.add(xb)
    on_gpu = torch.from_numpy(xb[:50]).cuda()
    lims, _, I = index.range_search(xb[:50], 0.05)
    total = int(lims[-1])
    assert total > 50
    for x in (xb[:50], on_gpu):
        found = index.range_search(x, 0.05, max_results=total)
        np.testing.assert_array_equal(torch.as_tensor(found[2]).cpu(), I)
        for most in (1, total - 1):
            with pytest.raises(
                RuntimeError, match=f"max_results = {most}, but {total} "
            ):
                index.range_search(x, 0.05, max_results=most)
    sel = faiss.SearchParameters(sel=faiss.IDSelectorRange(0, 2))
    for more in ({}, {"max_results": 5}):
        with pytest.raises(RuntimeError, match="sel"):
            index.range_search(on_gpu, 0.05, params=sel, **more)


@pytest.mark.gpu
def test_copies_between_cpu_and_gpu():
    xb = np.random.default_rng(4).random((300, 5), dtype=np.float32)
    cpu = faiss_bits.IndexSSS(5)
    cpu.add(xb)
    index = faiss_bits.GpuIndexBitsSSS(faiss.StandardGpuResources(), cpu)
    gc.collect()
    back = faiss_bits.IndexSSS(5)
    index.build()
    index.copyTo(back)
    assert back.isBuilt() and back.numPivots() == index.numPivots()
    for a, b in zip(index.search(xb[:9], 4), back.search(xb[:9], 4)):
        np.testing.assert_array_equal(a, b)
    index.query_major = True
    for a, b in zip(index.range_search(xb, 0.2), back.range_search(xb, 0.2)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["list", "sss", "gpu_list", "gpu_sss"])
def test_several_gpus_are_one(kind):
    rng = np.random.default_rng(5)
    xb = rng.integers(0, 50, (3000, 3)).astype(np.float32)
    xq = rng.integers(0, 50, (70, 3)).astype(np.float32)
    index = index_of(kind, 3)
    index.add(xb)
    resources = [faiss.StandardGpuResources() for _ in range(3)]
    for one in resources:
        one.setTempMemory(64 << 20)
    many = faiss_bits.GpuIndexBitsMetricSpaceShards(
        [0, 0, 0], index, resources=resources
    )
    del resources
    gc.collect()  # these must not go
    assert (many.ntotal, many.count(), many.stages) == (3000, 3, "1")
    for stages in ("1", "1.5", "2"):
        many.stages = stages
        assert many.stages == stages
        expect_exact(many, xb, xq, "l2")
        assert many.numDistances() > 0
    for got, want in zip(
        many.range_search(xq, 30.0), index.range_search(xq, 30.0)
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.gpu
def test_several_gpus_name_what_is_wrong():
    index = index_of("list", 3)
    index.add(np.zeros((9, 3), np.float32))
    shards = faiss_bits.GpuIndexBitsMetricSpaceShards
    with pytest.raises(TypeError, match="index is a int"):
        shards([0], 3)
    with pytest.raises(ValueError, match="resources has 0 entries"):
        shards([0], index, resources=[])
    with pytest.raises(RuntimeError, match="useFloat16"):
        shards([0], index, faiss_bits.GpuIndexBitsManyConfig(useFloat16=True))
    many = shards([0], index)
    with pytest.raises(ValueError, match="stages = '3'"):
        many.stages = "3"
    with pytest.raises(TypeError, match="stages is a float"):
        many.stages = 1.5
    with pytest.raises(RuntimeError, match="add"):
        many.add(np.zeros((1, 3), np.float32))
