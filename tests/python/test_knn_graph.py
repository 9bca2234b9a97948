"""contrib/knn_graph.py: the graph against float64, its file, bad arguments."""

import faiss
import numpy as np
import pytest
from conftest import make

from faiss_bits.contrib import knn_graph as module
from faiss_bits.contrib.knn_graph import knn_graph, open_graph


def reference(x, k, metric):
    """Ids [n, k] by float64 and stable sorts: of equal distances the lower."""
    x = x.astype(np.float64)
    n = len(x)
    if metric == faiss.METRIC_L2:
        keys = ((x[:, None, :] - x[None, :, :]) ** 2).sum(2)
    else:
        keys = -(x @ x.T)
    ids = np.full((n, k), -1)
    for i in range(n):
        order = np.argsort(keys[i], kind="stable")
        order = order[order != i][:k]
        ids[i, : len(order)] = order
    return ids


@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
@pytest.mark.parametrize("n, k", [(1, 3), (2, 1), (5, 9), (300, 10), (1000, 1)])
def test_graph_is_the_reference(n, k, metric):
    x = np.random.default_rng(n).integers(-50, 50, (n, 6)).astype(np.float32)
    D, I = knn_graph(x, k, metric=metric, progress=False)
    np.testing.assert_array_equal(I, reference(x, k, metric))
    there = I >= 0
    rows = np.broadcast_to(np.arange(n)[:, None], I.shape)[there]
    a, b = x[rows].astype(np.float64), x[I[there]].astype(np.float64)
    exact = ((a - b) ** 2).sum(1) if metric == faiss.METRIC_L2 else (a * b).sum(1)
    np.testing.assert_array_equal(D[there], exact.astype(np.float32))


@pytest.mark.parametrize("kind", ["equal", "ties"])
def test_no_vector_is_its_own_neighbour(kind):
    x = make(kind, 90, 4, 1)
    _, I = knn_graph(x, 5, progress=False)
    assert not (I == np.arange(90)[:, None]).any()
    np.testing.assert_array_equal(I, reference(x, 5, faiss.METRIC_L2))


def test_blocks_do_not_matter(tmp_path):
    x = make("normal", 257, 9, 2)
    D, I = knn_graph(x, 7, progress=False)
    for block in (1, 100, 256, 257, 1000):
        graph = knn_graph(x, 7, tmp_path / "graph.npy", block=block,
                          progress=False)
        np.testing.assert_array_equal(graph["distance"], D)
        np.testing.assert_array_equal(graph["id"], I)
        again = open_graph(tmp_path / "graph.npy")
        np.testing.assert_array_equal(again["id"], I)


def test_no_vectors(tmp_path):
    D, I = knn_graph(np.empty((0, 4), np.float32), 3, progress=False)
    assert D.shape == I.shape == (0, 3)


def test_program(tmp_path, capsys):
    x = make("normal", 50, 3, 3)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "graph.npy"
    assert module.main([str(tmp_path / "x.npy"), "--k", "4", "--out", str(out),
                        "--block", "20", "--metric", "ip"]) == 0
    assert "50 vectors, 4 neighbours" in capsys.readouterr().out
    expected = knn_graph(x, 4, metric=faiss.METRIC_INNER_PRODUCT, progress=False)
    np.testing.assert_array_equal(open_graph(out)["id"], expected[1])


def test_interrupted_file_names_what_is_missing(tmp_path, monkeypatch):
    calls = []

    def stop(D, I, first):
        if calls:
            raise KeyboardInterrupt
        calls.append(first)
        return D[:, 1:], I[:, 1:]

    monkeypatch.setattr(module, "without_self", stop)
    with pytest.raises(KeyboardInterrupt):
        knn_graph(make("normal", 50, 3, 3), 4, tmp_path / "graph.npy", block=20,
                  progress=False)
    ids = open_graph(tmp_path / "graph.npy")["id"]
    assert (ids[:20] >= 0).all() and (ids[20:] == -1).all()


@pytest.mark.parametrize("arguments, kind, message", [
    ({"k": 0}, ValueError, "k = 0"),
    ({"k": 2.5}, TypeError, "k = 2.5"),
    ({"k": 2, "block": 0}, ValueError, "block = 0"),
])
def test_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        knn_graph(np.zeros((3, 2), np.float32), progress=False, **arguments)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (3, 0)])
def test_shapes(shape):
    with pytest.raises(ValueError, match="x has shape"):
        knn_graph(np.zeros(shape, np.float32), 2, progress=False)


@pytest.mark.gpu
def test_tensors(torch, tmp_path):
    x = make("normal", 20000, 16, 4)
    D, I = knn_graph(x, 10, progress=False)
    tensor = torch.from_numpy(x).cuda()
    tensorD, tensorI = knn_graph(tensor, 10, block=6000, progress=False)
    assert tensorD.is_cuda and tensorI.is_cuda
    np.testing.assert_array_equal(tensorI.cpu().numpy(), I)
    np.testing.assert_array_equal(tensorD.cpu().numpy(), D)
    with pytest.raises(ValueError, match="path"):
        knn_graph(tensor, 10, tmp_path / "g.npy")
    with pytest.raises(ValueError, match="x is on cpu"):
        knn_graph(tensor.cpu(), 10)
