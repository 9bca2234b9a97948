"""Range searches of inverted lists on the GPU: arrays and tensors, limits and
parameters, against distances in float64 of the vectors that the lists hold."""

import faiss
import numpy as np
import oracle
import pytest
from test_ivf_vectors import KINDS, NLIST, D, N, Q

import faiss_bits

L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT
KEPT = ("INDICES_64_BIT", "INDICES_CPU")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    xb = rng.random((N, D), dtype="float32")
    xq = rng.random((Q, D), dtype="float32")
    ids = rng.permutation(N).astype("int64") * 7 + 5
    return xb, xq, ids


def make(res, data, kind, metric=L2, kept="INDICES_64_BIT"):
    xb, _, ids = data
    name = {"Flat": "IVFFlat", "PQ": "IVFPQ"}.get(kind, "IVFScalarQuantizer")
    args = {"IVFFlat": (), "IVFPQ": (8, 8)}.get(name)
    if args is None:
        args = (getattr(faiss.ScalarQuantizer, kind),)
    config = getattr(faiss, f"GpuIndex{name}Config")()
    config.indicesOptions = getattr(faiss, kept)
    args += (metric, True, config) if "QT" in kind else (metric, config)
    index = getattr(faiss_bits, f"GpuIndexBits{name}")(res, D, NLIST, *args)
    index.train(xb)
    index.add_with_ids(xb, ids)
    index.nprobe = NLIST
    return index


def some_radius(index, data, part, metric=L2):
    d = oracle.distances(
        data[1], index.reconstruct_batch(data[2]), inner_product=metric == IP
    )
    return float(np.float32(np.quantile(d, 1 - part if metric == IP else part)))


def check(index, data, found, radius, metric=L2, chosen=None):
    """What is in range of the vectors in all lists, and nothing else."""
    lims, D_, I = found
    _, xq, ids = data
    d = oracle.distances(
        xq, index.reconstruct_batch(ids), inner_product=metric == IP
    )
    assert lims.shape == (Q + 1,) and lims[0] == 0 and lims[-1] == len(D_) == len(I)
    sign = -1 if metric == IP else 1
    where = dict(zip(ids, range(N)))
    for i in range(Q):
        part = slice(lims[i], lims[i + 1])
        wanted = ids[sign * d[i] < sign * radius]
        if chosen is not None:
            wanted = wanted[np.isin(wanted, chosen)]
        # Next to the radius float32 may round to either side.
        doubtful = np.abs(d[i] - radius) < 1e-6 * max(abs(radius), 1)
        assert set(I[part]) ^ set(wanted) <= set(ids[doubtful])
        assert len(set(I[part])) == len(I[part])
        true = [d[i][where[one]] for one in I[part]]
        np.testing.assert_allclose(D_[part], true, rtol=1e-6)


def on_host(found):
    return tuple(one.cpu().numpy() for one in found)


def expect_equal(found, wanted):
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", (L2, IP))
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_stay_on_the_gpu(res, torch, data, kind, kept, metric):
    xq = data[1]
    index = make(res, data, kind, metric, kept)
    x = torch.from_numpy(xq).cuda()
    for part in (0, 0.02, 0.6, 1):
        radius = some_radius(index, data, part, metric)
        wanted = index.range_search(xq, radius)
        check(index, data, wanted, radius, metric)
        found = index.range_search(x, radius)
        lims, D_, I = found
        assert all(one.is_cuda for one in found)
        assert (lims.dtype, D_.dtype, I.dtype) == (
            torch.int64,
            torch.float32,
            torch.int64,
        )
        expect_equal(on_host(found), wanted)
        found = index.range_search(x.cpu(), radius)
        assert not any(one.is_cuda for one in found)
        expect_equal(on_host(found), wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_another_stream(res, torch, data, kind):
    index = make(res, data, kind)
    radius = some_radius(index, data, 0.1)
    wanted = index.range_search(data[1], radius)
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.from_numpy(data[1]).cuda(non_blocking=True) * 2 / 2
        found = on_host(index.range_search(x, radius))
    expect_equal(found, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_limits_and_parameters(res, torch, data, kind):
    xq, ids = data[1:]
    index = make(res, data, kind)
    index.nprobe = 3
    low = faiss.IDSelectorRange(0, int(np.median(ids)))
    radius = some_radius(index, data, 0.2)
    ours = faiss_bits.SearchParametersBitsIVF
    ivf = faiss.SearchParametersIVF(nprobe=7, sel=low)
    tensor = torch.from_numpy(xq).cuda()
    for params, same in (
        (None, faiss.SearchParametersIVF(nprobe=3)),
        (faiss.SearchParameters(sel=low), faiss.SearchParametersIVF(nprobe=3, sel=low)),
        (faiss_bits.SearchParametersBitsFlat(), faiss.SearchParametersIVF(nprobe=3)),
        (ivf, ivf),
        (ours(nprobe=7, sel=low), ivf),
        (ours(ivf), ivf),
    ):
        wanted = index.range_search(xq, radius, params=same)
        total = int(wanted[0][-1])
        assert total > 1
        for x in (xq, tensor):
            for most in (None, total, total + 1):
                found = index.range_search(x, radius, params=params, max_results=most)
                expect_equal(found if x is xq else on_host(found), wanted)
            for most in (1, total - 1):
                with pytest.raises(
                    RuntimeError, match=f"max_results = {most}, but {total} results"
                ):
                    index.range_search(x, radius, params=params, max_results=most)
    for limited in (
        ours(nprobe=3, max_results=1),
        faiss_bits.SearchParametersBitsFlat(max_results=1),
    ):
        with pytest.raises(RuntimeError, match="max_results = 1, but"):
            index.range_search(tensor, radius, params=limited)
        with pytest.raises(RuntimeError, match="max_results = 1"):
            index.search(xq, 3, params=limited)


@pytest.mark.gpu
def test_filters_on_the_gpu(res, torch, data):
    _, xq, ids = data
    index = make(res, data, "Flat")
    radius = some_radius(index, data, 0.3)
    tensor = torch.from_numpy(xq).cuda()
    chosen = np.sort(ids)[::3].copy()
    for sel in (faiss.IDSelectorBatch(chosen), faiss.IDSelectorArray(chosen)):
        params = faiss.SearchParametersIVF(nprobe=NLIST, sel=sel)
        found = on_host(index.range_search(tensor, radius, params=params))
        check(index, data, found, radius, chosen=chosen)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments_are_named(res, torch, data, kind):
    index = make(res, data, kind)
    for x in (data[1], torch.from_numpy(data[1]).cuda()):
        for arguments, error, text in (
            ((x, float("nan")), ValueError, "thresh is NaN"),
            ((x, None), TypeError, "thresh"),
            ((x[:, :3], 1), ValueError, "x has shape"),
            ((x[0], 1), ValueError, "x has shape"),
        ):
            with pytest.raises(error, match=text):
                index.range_search(*arguments)
        for most, error in ((0, ValueError), (-1, ValueError), ("two", TypeError)):
            with pytest.raises(error, match="max_results"):
                index.range_search(x, 1, max_results=most)
        resources = faiss_bits.SearchParametersBitsFlat(resources=res)
        with pytest.raises(RuntimeError, match="resources"):
            index.range_search(x, 1, params=resources)


@pytest.mark.skipif(
    not hasattr(faiss_bits, "SearchParametersBitsIVF"),
    reason="this build holds the CPU part only",
)
def test_parameters_without_a_gpu():
    kind = faiss_bits.SearchParametersBitsIVF
    assert issubclass(kind, faiss.SearchParametersIVF)
    assert (kind().nprobe, kind().max_results) == (1, 0)
    sel = faiss.IDSelectorRange(2, 5)
    params = kind(nprobe=6, sel=sel, max_results=9)
    assert (params.nprobe, params.max_results) == (6, 9)
    assert params.sel.is_member(3) and not params.sel.is_member(7)
    copied = kind(params, max_results=4)
    assert (copied.nprobe, copied.max_results) == (6, 4)
    assert kind(params).max_results == 9  # its limit too
    del params
    assert copied.sel.is_member(3) and sel.thisown
    copied.sel = None
    assert copied.sel is None
    for_lists = faiss.SearchParameters()
    copied.quantizer_params = for_lists
    assert copied.quantizer_params is not None and for_lists.thisown
    copied.quantizer_params = None
    assert copied.quantizer_params is None
    for call, error, text in (
        (lambda: kind(max_results=-1), ValueError, "max_results"),
        (lambda: kind(nprobes=3), TypeError, "nprobes is none of the fields"),
        (lambda: kind(sel=3), TypeError, "sel is a int"),
        (lambda: kind(faiss.SearchParameters()), TypeError, "params is a Search"),
    ):
        with pytest.raises(error, match=text):
            call()
