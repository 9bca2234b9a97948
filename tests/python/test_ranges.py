"""Range searches: without an index on whichever backend there is, and of the GPU
index, against distances in float64."""

import faiss
import numpy as np
import oracle
import pytest
from conftest import CPU_METRICS, GPU_METRICS, KINDS, for_metric, index_of, make
from hypothesis import given
from hypothesis import strategies as st

import faiss_bits
from faiss_bits import ranges

IP = faiss.METRIC_INNER_PRODUCT


def check(xq, xb, radius, name, argument, lims, D, I):
    """Every pair that is in range by more than the rounding to float32 is there,
    none that is not by more, in order, with its distance."""
    truth = oracle.distances(xq, xb, metric=name, p=argument)
    error = 1e-5 * (1 + np.abs(truth))
    assert lims.shape == (len(xq) + 1,) and lims[0] == 0 and lims[-1] == len(I)
    for i in range(len(xq)):
        ids, distances = I[lims[i] : lims[i + 1]], D[lims[i] : lims[i + 1]]
        assert (np.diff(ids) > 0).all()
        sign = -1 if name in oracle.SIMILARITIES else 1
        assert (sign * distances < sign * radius).all()
        inside = sign * truth[i] + error[i] < sign * radius
        outside = sign * truth[i] - error[i] >= sign * radius
        is_found = np.isin(np.arange(len(xb)), ids)
        assert is_found[inside].all() and not is_found[outside].any()
        assert np.allclose(distances, truth[i][ids], rtol=1e-5, atol=1e-5)


def some_radius(xq, xb, name, argument, part):
    truth = np.sort(
        oracle.distances(xq, xb, metric=name, p=argument).ravel()
    )
    if name in oracle.SIMILARITIES:
        truth = truth[::-1]
    return float(np.float32(truth[int(part * (len(truth) - 1))]))


@pytest.mark.parametrize("part", (0, 0.01, 0.3, 1))
@pytest.mark.parametrize("metric, argument, name", CPU_METRICS)
def test_every_metric(metric, argument, name, part):
    for q, n, d in ((1, 300, 3), (16, 200, 8), (33, 400, 17)):
        xq, xb = for_metric(name, make("normal", q, d, 1), make("normal", n, d, 2))
        radius = some_radius(xq, xb, name, argument, part)
        found = faiss_bits.range_search(
            xq, xb, radius, metric=metric, metric_arg=argument
        )
        check(xq, xb, radius, name, argument, *found)
        assert found[1].dtype == np.float32 and found[2].dtype == np.int64
        on_cpu = faiss_bits.range_search(
            xq, xb, radius, metric=metric, metric_arg=argument, backend="cpu"
        )
        for a, b in zip(found, on_cpu):
            assert np.array_equal(a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("metric, argument, name", GPU_METRICS)
def test_metrics_of_the_gpu(metric, argument, name):
    xq, xb = np.abs(make("normal", 20, 9, 1)), np.abs(make("normal", 500, 9, 2))
    radius = some_radius(xq, xb, name, argument, 0.1)
    found = faiss_bits.range_search(
        xq, xb, radius, metric=metric, metric_arg=argument, backend="gpu"
    )
    check(xq, xb, radius, name, argument, *found)


@given(
    q=st.integers(0, 20),
    n=st.integers(0, 150),
    d=st.integers(1, 20),
    kind=st.sampled_from(KINDS),
    radius=st.floats(-5, 60, width=32),
    seed=st.integers(0, 1000),
)
def test_any_size_and_kind_as_the_index(q, n, d, kind, radius, seed):
    xq, xb = make(kind, q, d, seed + 1), make(kind, n, d, seed)
    lims, D, I = faiss_bits.range_search(xq, xb, radius)
    wanted = index_of(xb).range_search(xq, radius)
    assert np.array_equal(lims, wanted[0])
    assert np.array_equal(D, wanted[1]) and np.array_equal(I, wanted[2])


def test_float64_float16_and_columns():
    xq, xb = make("normal", 5, 6, 1), make("normal", 80, 6, 2)
    wanted = faiss_bits.range_search(xq, xb, 8)
    lims, D, I = faiss_bits.range_search(np.float64(xq), np.float64(xb), 8)
    assert D.dtype == np.float64 and np.array_equal(I, wanted[2])
    for a, b in (
        (np.asfortranarray(xq), xb),
        (xq, np.asfortranarray(xb)),
    ):
        for got, want in zip(faiss_bits.range_search(a, b, 8), wanted):
            assert np.array_equal(got, want)
    half = faiss_bits.range_search(np.float16(xq), np.float16(xb), 8)
    wide = faiss_bits.range_search(
        np.float32(np.float16(xq)), np.float32(np.float16(xb)), 8
    )
    for got, want in zip(half, wide):
        assert np.array_equal(got, want)


def test_limit_of_results_tells_the_total():
    xq, xb = make("normal", 5, 6, 1), make("normal", 80, 6, 2)
    lims, D, I = faiss_bits.range_search(xq, xb, 8)
    same = faiss_bits.range_search(xq, xb, 8, max_results=int(lims[-1]))
    assert np.array_equal(same[2], I)
    with pytest.raises(RuntimeError, match=f"max_results.*{lims[-1]}"):
        faiss_bits.range_search(xq, xb, 8, max_results=int(lims[-1]) - 1)


def test_a_radius_beyond_float32_is_one_of_float64():
    x = np.array([[0.0], [2.0**500]])
    lims, D, I = faiss_bits.range_search(x, x, 2.0**1000)
    assert lims.tolist() == [0, 1, 2] and I.tolist() == [0, 1]
    lims, D, I = faiss_bits.range_search(x, x, 2.0**1001)
    assert lims.tolist() == [0, 2, 4]
    assert D.tolist() == [0, 2.0**1000, 2.0**1000, 0]


@pytest.mark.parametrize(
    "change, kind, text",
    (
        ({"radius": float("nan")}, ValueError, "radius is NaN"),
        ({"radius": "near"}, TypeError, "radius"),
        ({"radius": -1e39}, ValueError, r"radius = -1e\+39 is beyond float32"),
        ({"radius": 10**400}, ValueError, "radius"),
        ({"xb": np.zeros((4, 3), "f4")}, ValueError, "dimension"),
        ({"xq": np.zeros(3, "f4")}, ValueError, "xq"),
        (
            {"xq": np.zeros((2, 0), "f4"), "xb": np.zeros((2, 0), "f4")},
            ValueError,
            r"xq has shape \(2, 0\), expected at least one column",
        ),
        ({"metric": 77}, ValueError, "metric"),
        ({"max_results": 0}, ValueError, "max_results"),
        ({"max_results": 1.5}, TypeError, "max_results"),
        ({"backend": "tpu"}, ValueError, "backend"),
        ({"metric_arg": 3}, ValueError, "metric_arg"),
    ),
)
def test_bad_arguments_are_named(change, kind, text):
    arguments = {
        "xq": np.zeros((2, 2), "f4"),
        "xb": np.zeros((4, 2), "f4"),
        "radius": 1,
        **change,
    }
    with pytest.raises(kind, match=text):
        faiss_bits.range_search(**arguments)


# ---- the GPU index ----------------------------------------------------------------


def gpu_index(res, xb, metric=faiss.METRIC_L2):
    index = faiss_bits.GpuIndexBitsFlat(res, xb.shape[1], metric)
    index.add(xb)
    return index


@pytest.mark.gpu
@pytest.mark.parametrize("metric", (faiss.METRIC_L2, IP))
def test_index_as_on_the_cpu(res, metric):
    xq, xb = make("normal", 50, 24, 1), make("normal", 3000, 24, 2)
    index = gpu_index(res, xb, metric)
    name = "ip" if metric == IP else "l2"
    for part in (0, 0.01, 1):
        radius = some_radius(xq, xb, name, 0, part)
        wanted = index_of(xb, metric).range_search(xq, radius)
        for got, want in zip(index.range_search(xq, radius), wanted):
            assert np.array_equal(got, want)
    selected = faiss.SearchParameters(sel=faiss.IDSelectorRange(10, 700))
    wanted = index_of(xb, metric).range_search(xq, radius, params=selected)
    got = index.range_search(xq, radius, params=selected)
    for a, b in zip(got, wanted):
        assert np.array_equal(a, b)
    total = int(wanted[0][-1])
    with pytest.raises(RuntimeError, match=f"max_results.*{total}"):
        index.range_search(xq, radius, params=selected, max_results=total - 1)
    got = index.range_search(xq, radius, params=selected, max_results=total)
    assert np.array_equal(got[2], wanted[2])


@pytest.mark.gpu
def test_index_names_bad_arguments(res):
    xb = make("normal", 30, 4, 1)
    index = gpu_index(res, xb)
    for x, radius, kind, text in (
        (xb, float("nan"), ValueError, "thresh is NaN"),
        (xb, None, TypeError, "thresh"),
        (xb[:, :3], 1, ValueError, "x has shape"),
        (xb[0], 1, ValueError, "x has shape"),
    ):
        with pytest.raises(kind, match=text):
            index.range_search(x, radius)
    limited = faiss_bits.SearchParametersBitsFlat(max_results=5)
    with pytest.raises(RuntimeError, match="max_results"):
        index.search(xb, 3, params=limited)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", (faiss.METRIC_L2, IP))
def test_tensors_stay_on_the_gpu(res, torch, metric):
    xq, xb = make("normal", 50, 24, 1), make("normal", 3000, 24, 2)
    index = gpu_index(res, xb, metric)
    x = torch.from_numpy(xq).cuda()
    for radius in (-50, 0, 20, 200):
        wanted = index.range_search(xq, radius)
        for found in (
            index.range_search(x, radius),
            faiss_bits.range_search(
                x, torch.from_numpy(xb).cuda(), radius, metric=metric
            ),
        ):
            for got, want in zip(found, wanted):
                assert got.is_cuda
                assert np.array_equal(got.cpu().numpy(), want)
        for got, want in zip(index.range_search(x.cpu(), radius), wanted):
            assert np.array_equal(got.numpy(), want)


# ---- neighbourhoods ------------------------------------------------------------------


def plain_graph(X, others, radius):
    X, others = X.astype(np.float64), others.astype(np.float64)
    distances = np.sqrt(((X[:, None] - others[None]) ** 2).sum(2))
    return distances, distances <= radius


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_radius_neighbors_graph(dtype):
    pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    X = make("normal", 60, 5, 1).astype(dtype)
    others = make("normal", 90, 5, 2).astype(dtype)
    for radius in (0, 0.7, 2.2, 100):
        for xb in (None, others):
            distances, near = plain_graph(X, X if xb is None else xb, radius)
            graph = faiss_bits.radius_neighbors_graph(X, radius, xb)
            assert graph.shape == near.shape
            assert np.array_equal(graph.toarray() == 1, near)
            graph = faiss_bits.radius_neighbors_graph(
                X, radius, xb, mode="distance"
            )
            assert graph.nnz == near.sum() and graph.dtype == np.float64
            assert np.allclose(graph.toarray(), distances * near, rtol=1e-6)
        without = faiss_bits.radius_neighbors_graph(X, radius, include_self=False)
        _, near = plain_graph(X, X, radius)
        np.fill_diagonal(near, False)
        assert np.array_equal(without.toarray() == 1, near)


@pytest.mark.parametrize(
    "options, kind, text",
    [
        # The radius is Euclidean: of another metric it would mean nothing.
        ({"metric": faiss.METRIC_L1}, TypeError, "metric is none of"),
        ({"metric_arg": 3}, TypeError, "metric_arg is none of"),
        ({"foo": 1}, TypeError, "foo is none of"),
        ({"xb": np.zeros((3, 2)), "include_self": False}, ValueError, "include_self"),
        ({"mode": "distances"}, ValueError, "mode = 'distances'"),
        ({"radius": -1}, ValueError, "radius = -1"),
    ],
)
def test_graph_names_bad_arguments(options, kind, text):
    with pytest.raises(kind, match=text):
        faiss_bits.radius_neighbors_graph(
            **{"X": np.zeros((4, 2)), "radius": 1, **options}
        )


def test_graph_has_pairs_at_the_radius():
    pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    X = np.arange(6, dtype=np.float32)[:, None]
    graph = faiss_bits.radius_neighbors_graph(X, 2)
    assert graph[0].indices.tolist() == [0, 1, 2]
    graph = faiss_bits.radius_neighbors_graph(X, np.nextafter(2, 0))
    assert graph[0].indices.tolist() == [0, 1]
    for radius, mode, text in ((-1, "distance", "radius"), (1, "near", "mode")):
        with pytest.raises(ValueError, match=text):
            faiss_bits.radius_neighbors_graph(X, radius, mode=mode)


@given(
    radius=st.one_of(
        st.floats(0, 1e30), st.floats(0, 1e-20), st.floats(0, 10, width=32)
    ),
    dtype=st.sampled_from((np.float32, np.float64)),
)
def test_squared_radius_is_exact(radius, dtype):
    above = dtype(ranges.squared_radius(radius, dtype))
    below = np.nextafter(above, dtype(-1))
    assert np.sqrt(np.float64(below)) <= radius
    assert np.isinf(above) or np.sqrt(np.float64(above)) > radius
