"""python -m faiss_bits.contrib.search: files in, neighbours out."""

import numpy as np
import pytest
from oracle import check_knn

import faiss_bits.contrib.search as program

@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    np.save("own.npy", rng.standard_normal((300, 7)))
    np.save("asked.npy", rng.standard_normal((41, 7)).astype("f"))
    return tmp_path


@pytest.mark.parametrize("metric", ["L2", "IP", "L1", "Linf"])
def test_own_file(folder, capsys, metric):
    arguments = ["own.npy", "--queries", "asked.npy", "-k", "4"]
    assert program.main([*arguments, "--metric", metric, "--out", "near"]) == 0
    assert "41 queries, 300 vectors of dimension 7" in capsys.readouterr().out
    found = np.load("near")
    xb, xq = np.load("own.npy").astype("f"), np.load("asked.npy")
    check_knn(xq, xb, 4, found["D"], found["I"], metric=metric.lower())


def test_searches_itself(folder, capsys):
    assert program.main(["own.npy"]) == 0
    found = np.load("neighbours.npz")
    assert found["I"].shape == (300, 10) and found["D"].dtype == np.float32
    assert (found["I"][:, 0] == np.arange(300)).all()


@pytest.mark.parametrize("block", [1, 40, 41, 1000])
def test_blocks_change_nothing(folder, block):
    xb, xq = np.load("own.npy").astype("f"), np.load("asked.npy")
    whole = program.search(xq, xb, 5, progress=False)
    parts = program.search(xq, xb, 5, block=block, progress=False)
    assert (parts[0] == whole[0]).all() and (parts[1] == whole[1]).all()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["none.npy"], "none.npy"),
        (["bad.npy"], "bad.npy"),
        (["own.npy", "--queries", "wide.npy"], "dimension 6, vectors 7"),
        (["own.npy", "--out", "none/near.npz"], "--out none/near.npz"),
        (["own.npy", "--out", "."], "--out .: is a folder"),
        (["own.npy", "--out", "./own.npy"], "own.npy: would replace what is read"),
        (
            ["own.npy", "--queries", "asked.npy", "--out", "link.npy"],
            "link.npy: would replace what is read",
        ),
        (["own.npy", "-k", "3000000000"], "k = 3000000000 is more than"),
        (["flat.npy"], "d = 0"),
    ],
)
def test_bad_files(folder, capsys, arguments, words):
    np.save("wide.npy", np.eye(6))
    np.save("flat.npy", np.zeros((3, 0)))
    (folder / "bad.npy").write_text("bad")
    (folder / "link.npy").symlink_to("asked.npy")
    assert program.main(arguments) == 1
    assert words in capsys.readouterr().err
    assert not (folder / "neighbours.npz").exists()
    assert np.load("own.npy").shape == (300, 7) and len(np.load("asked.npy")) == 41


def test_bad_arguments(folder, capsys):
    with pytest.raises(SystemExit):
        program.main(["own.npy", "-k", "0"])
    assert "-k 0" in capsys.readouterr().err


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("no device memory")])
def test_failures_of_the_search_are_one_line(folder, capsys, monkeypatch, error):
    def failing(*_):
        raise error

    monkeypatch.setattr(program, "search", failing)
    assert program.main(["own.npy"]) == 1
    assert capsys.readouterr().err.strip() in ("MemoryError", "no device memory")


def test_interrupt(folder, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "search", interrupted)
    assert program.main(["own.npy"]) == 130
    assert "was not written" in capsys.readouterr().err
