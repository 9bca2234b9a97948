"""DBSCAN against a plain one, point by point."""

import numpy as np
import pytest

pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

from faiss_bits.contrib.dbscan import dbscan  # noqa: E402


def plain(x, eps, min_samples):
    """The core points and labels, as the paper's algorithm goes: a cluster is
    grown from every core point that has none yet, in their order."""
    x = x.astype(np.float64)
    near = [
        np.flatnonzero(np.sqrt(((x - one) ** 2).sum(1)) <= eps) for one in x
    ]
    is_core = np.array([len(ids) >= min_samples for ids in near], bool)
    labels = np.full(len(x), -1)
    cluster = 0
    for i in range(len(x)):
        if labels[i] != -1 or not is_core[i]:
            continue
        stack = [i]
        while stack:
            point = stack.pop()
            if labels[point] != -1:
                continue
            labels[point] = cluster
            if is_core[point]:
                stack.extend(near[point])
        cluster += 1
    return np.flatnonzero(is_core), labels


def blobs(n, d, seed, dtype):
    """Clusters of several sizes that touch, and noise."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((6, d))
    x = centres[rng.integers(0, 6, n)] + 0.6 * rng.standard_normal((n, d))
    x[:: 7] = 10 * rng.standard_normal((len(x[::7]), d))
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("block", (37, 400, 100000))
@pytest.mark.parametrize("d, eps", ((1, 0.05), (2, 0.3), (3, 0.6), (8, 1.7)))
def test_labels_are_those_of_the_plain_one(d, eps, block, dtype):
    for min_samples in (1, 2, 5, 12):
        x = blobs(400, d, min_samples, dtype)
        core, labels = dbscan(x, eps, min_samples, block=block)
        wanted_core, wanted = plain(x, eps, min_samples)
        assert np.array_equal(core, wanted_core)
        assert np.array_equal(labels, wanted)
        assert labels.dtype == core.dtype == np.int64
        assert 0 < min_samples == 1 or (labels == -1).any()


@pytest.mark.parametrize("d, eps", ((1, 0.05), (2, 0.3), (3, 0.6), (8, 1.7)))
def test_labels_are_those_of_scikit_learn(d, eps):
    cluster = pytest.importorskip(
        "sklearn.cluster", reason="scikit-learn is not installed")
    for min_samples in (1, 2, 5, 12):
        x = blobs(400, d, min_samples, np.float64)
        core, labels = dbscan(x, eps, min_samples)
        wanted_core, wanted = cluster.dbscan(x, eps=eps, min_samples=min_samples)
        assert np.array_equal(core, wanted_core)
        assert np.array_equal(labels, wanted)


def test_points_at_the_radius_are_neighbours():
    x = np.arange(5, dtype=np.float32)[:, None]
    core, labels = dbscan(x, eps=1, min_samples=3)
    assert core.tolist() == [1, 2, 3] and labels.tolist() == [0] * 5
    core, labels = dbscan(x, eps=0.999, min_samples=2)
    assert core.size == 0 and labels.tolist() == [-1] * 5
    core, labels = dbscan(np.zeros((4, 3), np.float32), eps=0, min_samples=4)
    assert labels.tolist() == [0] * 4


def test_a_border_point_is_of_the_first_cluster():
    # Point 3 is near a core point of each of two clusters.
    x = np.array([[5], [4.5], [4], [3], [2], [1.5], [1]], np.float32)
    core, labels = dbscan(x, eps=1, min_samples=4)
    wanted = plain(x, 1, 4)
    assert np.array_equal(core, wanted[0]) and np.array_equal(labels, wanted[1])


def test_no_points():
    core, labels = dbscan(np.zeros((0, 3), np.float32))
    assert core.size == labels.size == 0


@pytest.mark.parametrize(
    "change, kind, text",
    (
        ({"eps": -1}, ValueError, "eps"),
        ({"eps": float("nan")}, ValueError, "eps"),
        ({"min_samples": 0}, ValueError, "min_samples"),
        ({"block": 0}, ValueError, "block"),
        ({"x": np.zeros(3, np.float32)}, ValueError, "x has shape"),
        ({"x": np.zeros((3, 0), np.float32)}, ValueError, r"x has shape \(3, 0\)"),
        ({"x": np.zeros((3, 2), np.int32)}, TypeError, "x is int32"),
        ({"device": "a"}, TypeError, "device = 'a'"),
        ({"device": 0.0}, TypeError, "device = 0.0"),
        ({"device": -5}, ValueError, "device = -5"),
        ({"device": 99}, (RuntimeError, ValueError), "device = 99"),
        ({"device": 0, "x": np.zeros((3, 2))}, (RuntimeError, TypeError), "device = 0"),
    ),
)
def test_bad_arguments_are_named(change, kind, text):
    arguments = {"x": np.zeros((3, 2), np.float32), **change}
    with pytest.raises(kind, match=text):
        dbscan(**arguments)


@pytest.mark.cpu
def test_a_gpu_that_is_not_there():
    x = np.zeros((3, 2), np.float32)
    with pytest.raises(RuntimeError, match="device = 0 needs a GPU"):
        dbscan(x, device=0)
    dbscan(x, device=-1)


@pytest.mark.gpu
def test_the_gpu_that_is_named():
    x = np.random.default_rng(1).random((500, 3), np.float32)
    for a, b in zip(dbscan(x, 0.1, device=0), dbscan(x, 0.1)):
        np.testing.assert_array_equal(a, b)
