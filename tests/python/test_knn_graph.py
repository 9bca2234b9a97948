"""contrib/knn_graph.py: the graph against float64, its file, bad arguments."""

import sys

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


def test_program_reads_other_files(tmp_path, capsys):
    x = make("normal", 30, 3, 3)
    records = np.hstack([np.full((30, 1), 3, np.int32).view(np.float32), x])
    records.tofile(tmp_path / "x.fvecs")
    out = tmp_path / "graph.npy"
    assert module.main([str(tmp_path / "x.fvecs"), "--out", str(out)]) == 0
    expected = knn_graph(x, 10, progress=False)
    np.testing.assert_array_equal(open_graph(out)["id"], expected[1])


@pytest.mark.parametrize("arguments, words", [
    (["none.npy"], "none.npy: no such file"),
    (["none.npy", "--out", "x.npy"], "none.npy: no such file"),
    (["bad.npy"], "bad.npy"),
    (["x.npz"], "unknown kind of file '.npz'"),
    (["flat.npy"], "x has shape (9,)"),
    (["x.npy", "--k", "0"], "k = 0"),
    (["x.npy", "--k", "3000000000"], "k = 3000000000 is more than"),
    (["x.npy", "--block", "0"], "block = 0"),
    (["x.npy", "--out", "none/g.npy"], "there is no such folder"),
    (["x.npy", "--out", "./x.npy"], "would replace what is read"),
])
def test_program_says_what_is_wrong(tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    x = make("normal", 20, 3, 3)
    np.save("x.npy", x)
    np.save("flat.npy", np.zeros(9))
    np.savez("x.npz", x=x)
    (tmp_path / "bad.npy").write_text("bad")
    assert module.main(["--out", "graph.npy", *arguments]) == 1
    assert words in capsys.readouterr().err
    np.testing.assert_array_equal(np.load("x.npy"), x)


def test_progress_is_shown_unless_it_is_unwanted(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    x = make("normal", 20, 3, 3)
    knn_graph(x, 2)
    assert capsys.readouterr().err == "knn_graph: no progress bar without tqdm\n"
    knn_graph(x, 2, progress=False)
    assert capsys.readouterr().err == ""


def test_program_interrupted(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    monkeypatch.setattr(module, "knn_graph", stop)
    out = tmp_path / "g.npy"
    assert module.main([str(tmp_path / "x.npy"), "--out", str(out)]) == 130
    assert "g.npy is not whole" in capsys.readouterr().err


def test_vectors_are_not_written_over(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, make("normal", 20, 3, 3))
    x = np.load(path, mmap_mode="r")
    for part in (x, x[5:]):
        with pytest.raises(ValueError, match="which is the file of x"):
            knn_graph(part, 2, path, progress=False)
    np.testing.assert_array_equal(x, make("normal", 20, 3, 3))


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
    ({"k": 2**31}, ValueError, "k = 2147483648"),
    ({"k": 2, "device": "a"}, TypeError, "device = 'a'"),
    ({"k": 2, "device": 0.0}, TypeError, "device = 0.0"),
    ({"k": 2, "device": -5}, ValueError, "device = -5"),
    ({"k": 2, "device": 99}, (RuntimeError, ValueError), "device = 99"),
])
def test_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        knn_graph(np.zeros((3, 2), np.float32), progress=False, **arguments)


@pytest.mark.cpu
def test_a_gpu_that_is_not_there(tmp_path, capsys):
    x, out = np.zeros((3, 2), np.float32), tmp_path / "g.npy"
    with pytest.raises(RuntimeError, match="device = 0 needs a GPU"):
        knn_graph(x, 2, out, device=0, progress=False)
    knn_graph(x, 2, device=-1, progress=False)
    np.save(tmp_path / "x.npy", x)
    arguments = [str(tmp_path / "x.npy"), "--k", "1", "--out", str(out)]
    assert module.main([*arguments, "--device", "0"]) == 1
    assert "device = 0 needs a GPU" in capsys.readouterr().err
    assert not out.exists()
    assert module.main(arguments) == 0


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="x is complex128"):
        knn_graph(np.ones((3, 2)) + 1j, 2, progress=False)


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
    for out in (knn_graph(x, 10, device=0, progress=False),
                knn_graph(tensor, 10, device=0, progress=False)):
        np.testing.assert_array_equal(np.array(out[1].tolist()), I)
    with pytest.raises(ValueError, match="device = 1.*"):
        knn_graph(tensor, 10, device=1)
    with pytest.raises(ValueError, match="path"):
        knn_graph(tensor, 10, tmp_path / "g.npy")
    with pytest.raises(ValueError, match="x is on cpu"):
        knn_graph(tensor.cpu(), 10)
