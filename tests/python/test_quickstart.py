"""The quickstart on small data, end to end, and the shares that it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest
from test_datasets import small_fashion_mnist, small_sift

import faiss_bits
from faiss_bits.contrib import evaluation, quickstart

plt = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed")


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("FAISS_BITS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FAISS_BITS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    small_fashion_mnist(tmp_path / "data" / "fashion-mnist")
    small_sift(tmp_path / "data")
    return tmp_path


def check_picture(path, least_height):
    picture = plt.imread(path)
    assert picture.shape[0] > least_height and picture.shape[1] > 600
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 50


def test_whole_run(data, capsys):
    assert quickstart.main(["--json", "rows.json"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split()[:7] == ["data", "metric", "backend", "n", "d", "q", "k"]
    body = [line.split() for line in lines[2:6]]
    backend = faiss_bits.backend()
    assert [cells[:7] for cells in body] == [
        ["Fashion-MNIST", "L2", backend, "200", "784", "30", "10"],
        ["Fashion-MNIST", "IP", backend, "200", "784", "30", "10"],
        ["SIFT", "L2", backend, "300", "128", "20", "10"],
        ["SIFT", "IP", backend, "300", "128", "20", "10"],
    ]
    rows = json.loads((data / "rows.json").read_text())
    assert [row["recall"] for row in rows] == [None, None, 1.0, None]
    assert body[2][10] == "1.0000" and body[0][10] == "-"
    for row in rows:
        assert row["same_or_tied"] == 1.0
        assert row["seconds"] > 0 and row["faiss_seconds"] > 0
        rate = row["queries_per_second"]
        assert rate == pytest.approx(row["q"] / row["seconds"])
        assert row["speed_up"] == pytest.approx(
            rate / row["faiss_queries_per_second"]
        )
    on_cpu = backend == "cpu"
    assert ("CPU index IndexFusedFlat" in out) == on_cpu
    ours = "IndexFusedFlat" if on_cpu else "GpuIndexBitsFlat"
    theirs = "IndexFlat" if on_cpu else "GpuIndexFlat"
    assert {(row["index"], row["faiss_index"]) for row in rows} == {(ours, theirs)}
    assert {row["faiss"] for row in rows} == {faiss.__version__}
    assert "reading sift" in err
    inverted = out[out.index("Inverted lists on the CPU") :].splitlines()
    assert "20 queries, the 10 nearest in 7 of 7 lists" in inverted[0]
    for line, name in zip(inverted[1:3], ("IndexFusedIVFFlat", "IndexIVFFlat")):
        assert line.split()[0] == name
        assert line.split()[-1] == "1.0000"  # all lists are searched
    assert "100.00 % of the ids are the same" in inverted[3]
    check_picture(data / "out" / "quickstart_neighbours.png", 1000)


def test_recall_of_a_wrong_truth_is_below_one(data, capsys):
    small_sift(data / "data", wrong=5)
    arguments = ["--only", "sift", "--metric", "L2", "--json", "rows.json"]
    assert quickstart.main(arguments) == 0
    (row,) = json.loads((data / "rows.json").read_text())
    assert row["recall"] == 0.75
    check_picture(data / "out" / "quickstart_neighbours.png", 100)


def test_says_what_is_missing_and_runs_the_rest(data, capsys):
    (data / "data" / "sift100K.h5").unlink()
    assert quickstart.main(["--metric", "L2"]) == 1
    out, err = capsys.readouterr()
    assert "Fashion-MNIST  L2" in out and "SIFT" not in out
    assert "sift left out" in err and "apt-get source" in err


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_own_file(data, capsys, suffix):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 6)).astype(np.float64)
    if suffix == ".npy":
        np.save("own.npy", x)
        np.save("asked.npy", x[:8])
        more = ["--queries", "asked.npy"]
    else:
        import h5py

        with h5py.File("own.h5", "w") as file:
            file["train"], file["test"] = x, x[:8]
        more = []
    arguments = [f"--data=own{suffix}", *more, "-k", "3", "--metric", "L2"]
    assert quickstart.main([*arguments, "--json", "r.json", "--out", "mine"]) == 0
    (row,) = json.loads((data / "r.json").read_text())
    assert (row["data"], row["n"], row["d"], row["q"], row["k"]) == (
        f"own{suffix}", 50, 6, 8, 3,
    )
    check_picture(data / "mine" / "quickstart_neighbours.png", 100)


def test_own_file_searches_itself(data, capsys):
    np.save("own.npy", np.eye(5))
    assert quickstart.main(["--data", "own.npy", "-k", "7"]) == 0
    assert "no queries given" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--data", "none.npy"], "none.npy"),
        (["--data", "bad.npy"], "bad.npy"),
        (["--data", "own.npy", "--queries", "wide.npy"], "dimension 6"),
        (["--data", "flat.npy"], "d = 0"),
        (["--data", "own.npy", "--out", "own.npy"], "own.npy"),
        (["--data", "own.npy", "--json", "own.npy"], "would replace what is read"),
        (["--data", "own.npy", "--json", "none/r.json"], "there is no such folder"),
    ],
)
def test_bad_files(data, capsys, arguments, words):
    np.save("own.npy", np.eye(5))
    np.save("wide.npy", np.eye(6))
    np.save("flat.npy", np.zeros((3, 0)))
    (data / "bad.npy").write_text("bad")
    assert quickstart.main(arguments) == 1
    assert words in capsys.readouterr().err
    assert np.load("own.npy").shape == (5, 5)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["-k", "0"], "-k 0"),
        (["--metric", "L1"], "L1"),
        (["--queries", "x.npy"], "--queries needs --data"),
        (["--data", "x.npy", "--only", "sift"], "--only"),
    ],
)
def test_bad_arguments(capsys, arguments, words):
    with pytest.raises(SystemExit) as caught:
        quickstart.main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_without_matplotlib(data, capsys, monkeypatch):
    """pip brings none: the table is there, and what is missing is said."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(
        sys.modules, "faiss_bits.contrib.quickstart_plot", raising=False
    )
    monkeypatch.delattr(
        "faiss_bits.contrib.quickstart_plot", raising=False
    )
    assert quickstart.main(["--only", "sift"]) == 0
    out, err = capsys.readouterr()
    assert "SIFT" in out and "picture:" not in out
    assert "no picture" in err and "matplotlib" in err


def test_interrupt_keeps_what_is_finished(data, capsys, monkeypatch):
    search = quickstart.search

    def interrupted(*args):
        if "IP" in args[-1].label:
            raise KeyboardInterrupt
        return search(*args)

    monkeypatch.setattr(quickstart, "search", interrupted)
    assert quickstart.main([]) == 130
    out, err = capsys.readouterr()
    assert "Fashion-MNIST  L2" in out and "Fashion-MNIST  IP" not in out
    assert "stopped" in err


def test_as_a_program(data, monkeypatch):
    packages = [Path(p.__file__).parents[1] for p in (faiss_bits, faiss, np)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, packages)))
    result = subprocess.run(
        [sys.executable, "-m", "faiss_bits.contrib.quickstart", "--only", "sift"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "SIFT" in result.stdout and "1.0000" in result.stdout
    result = subprocess.run(
        [sys.executable, quickstart.__file__, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0 and "--data" in result.stdout


# ---- evaluation ---------------------------------------------------------------

VECTORS = np.array([[0, 0], [2, 0], [0, 2], [9, 9]], np.float32)
QUERY = np.array([[0, 0]], np.float32)


@pytest.mark.parametrize(
    "ours, theirs, same, tied",
    [
        ([[0, 1, 2]], [[0, 1, 2]], 1, 1),
        ([[0, 2, 1]], [[0, 1, 2]], 1 / 3, 1),
        ([[0, 1, 3]], [[0, 1, 2]], 2 / 3, 2 / 3),
        ([[0, 1, -1]], [[0, 1, 2]], 2 / 3, 2 / 3),
        ([[0, 1, -1]], [[0, 1, -1]], 1, 1),
        ([[]], [[]], 1, 1),
    ],
)
def test_compare_ids(ours, theirs, same, tied):
    ours, theirs = (np.array(x, np.int64) for x in (ours, theirs))
    result = evaluation.compare_ids(ours, theirs, QUERY, VECTORS)
    assert result == pytest.approx((same, tied))


def test_compare_ids_by_inner_product():
    query = np.array([[1, 1]], np.float32)
    ours, theirs = np.array([[3, 1]]), np.array([[3, 2]])
    result = evaluation.compare_ids(ours, theirs, query, VECTORS, True)
    assert result == (0.5, 1.0)
    theirs = np.array([[3, 0]])
    result = evaluation.compare_ids(ours, theirs, query, VECTORS, True)
    assert result == (0.5, 0.5)
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        evaluation.compare_ids(ours, theirs[:, :1], query, VECTORS)


def test_true_distances():
    ids = np.array([[0, 1, 3, -1]])
    out = evaluation.true_distances(QUERY, VECTORS, ids)
    assert out[0, :3].tolist() == [0, 4, 162] and np.isnan(out[0, 3])
