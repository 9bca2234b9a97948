"""The random sweep of flat search: what runs without a GPU."""

import math
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import bench_flat_sweep  # noqa: E402
import check  # noqa: E402
import flat_data  # noqa: E402
import merge  # noqa: E402
import result_file  # noqa: E402
import sweep_cells  # noqa: E402

CELL = {"n": 5000, "d": 33, "q": 7, "k": 10, "metric": "L2",
        "dtype": "float32", "data": "uniform"}


def row(method, ms, **other):
    return {"bench": "flat_sweep", "method": method, **CELL, "ms": ms, **other}


# ---- the cells -----------------------------------------------------------------


def test_cells_are_those_of_their_seed():
    assert sweep_cells.random_cells(50, 7) == sweep_cells.random_cells(50, 7)
    assert sweep_cells.random_cells(50, 7) != sweep_cells.random_cells(50, 8)
    # A longer run begins as a shorter one.
    assert sweep_cells.random_cells(60, 7)[:50] == \
        sweep_cells.random_cells(50, 7)


def test_cells_keep_to_their_bounds():
    cells = sweep_cells.random_cells(3000, 1)
    assert len(cells) == 3000
    for cell in cells:
        assert sweep_cells.fits(cell), cell
        for name, (least, most) in sweep_cells.RANGES.items():
            assert least <= cell[name] <= most, cell
        assert cell["metric"] in sweep_cells.METRICS
        assert cell["dtype"] in sweep_cells.DTYPES
        if cell["data"] in flat_data.REAL:
            d, n, q = flat_data.REAL[cell["data"]]
            assert cell["d"] == d and cell["n"] <= n and cell["q"] <= q


def test_cells_are_of_every_kind():
    cells = sweep_cells.random_cells(3000, 2)
    assert {cell["data"] for cell in cells} == set(sweep_cells.DATA)
    kinds = {(cell["metric"], cell["dtype"]) for cell in cells}
    assert len(kinds) == 3 * 3 - 1 and ("cosine", "bfloat16") not in kinds
    for name in ("n", "d", "q", "k"):
        values = {cell[name] for cell in cells}
        odd = sum(value % 2 for value in values)
        assert odd > len(values) / 4, name
        # As many of each power of two, within reason.
        assert max(values) / min(values) > sweep_cells.RANGES[name][1] / 16 / \
            sweep_cells.RANGES[name][0], name
    assert any(cell["q"] * cell["n"] > 1e9 for cell in cells)
    assert any(cell["k"] > cell["n"] for cell in cells)


@pytest.mark.parametrize("change", [
    {"n": 1 << 22, "d": 129}, {"q": 1 << 16, "k": 257},
    {"n": 1 << 20, "q": 12000, "d": 1}, {"n": 1 << 20, "q": 3000, "d": 500}])
def test_what_does_not_fit(change):
    cell = CELL | {"k": 1} | change
    assert not sweep_cells.fits(cell)
    half = max(("q", "n", "d", "k"), key=lambda name: cell[name])
    assert sweep_cells.fits(cell | {half: cell[half] // 8})


# ---- results -----------------------------------------------------------------------


def test_results_can_be_merged_and_checked(tmp_path, capsys):
    meta = {"gpu": "x", "commit": "0123456789ab", "date": "2026-01-31",
            "seed": 5, "cells": 2}
    rows = [row("faiss_bits", 2.0, places=70, places_wrong=0, ratio=2.0),
            row("faiss_flat", 4.0, recall=1.0)]
    other = [r | {"data": "integers", "ms": r["ms"] if r["method"] == "faiss_bits"
                  else 1.0} for r in rows]
    for name, part in (("a", rows), ("b", other)):
        result_file.save(tmp_path / f"{name}.json", {"meta": meta, "rows": part})
    out = str(tmp_path / "out.json")
    parts = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    assert merge.main([out, *parts]) == 0
    assert result_file.load(out) == {"meta": meta, "rows": rows + other}
    assert check.main([out]) == 1
    said = capsys.readouterr().out
    assert "2 cells, 1 below 1x" in said and "data=integers" in said
    # Another seed is another run.
    result_file.save(parts[1], {"meta": meta | {"seed": 6}, "rows": other})
    assert merge.main([out, *parts]) == 1


@pytest.mark.parametrize("rows, good, said", [
    ([row("faiss_bits", 2.0, places=70, places_wrong=0, ratio=2.0, best="a")],
     True, "behind in 0 of 1"),
    ([row("faiss_bits", 2.0, places=70, places_wrong=0, ratio=0.5, best="a")],
     True, "behind: n=5000 d=33 q=7 k=10 metric=L2 dtype=float32 "
           "data=uniform: 0.50 of a"),
    ([row("faiss_bits", 2.0, places=70, places_wrong=3, ratio=2.0, best="a")],
     False, "3 of 70 places"),
    ([row("faiss_bits", 2.0, places=70, places_wrong=0),
      row("faiss_flat", None, why="out of memory")],
     False, "faiss_flat: out of memory"),
    ([], False, "0 cells"),
])
def test_report(capsys, rows, good, said):
    assert bench_flat_sweep.report(rows) == good
    assert said in capsys.readouterr().out


def test_parts_of_a_run():
    of = bench_flat_sweep.parse
    assert of([]).part == (0, 1)
    assert of(["--part", "3/4"]).part == (3, 4)
    cells = sweep_cells.random_cells(10, 7)
    parts = [cells[i::4] for i in range(4)]
    assert sorted(map(str, sum(parts, []))) == sorted(map(str, cells))
    for wrong in ("4/4", "1", "/4", "-1/4", "a/b", "0/0"):
        with pytest.raises(SystemExit):
            of([f"--part={wrong}"])
    metas = [{"gpu": "x", "seed": 7}, {"gpu": "x", "seed": 7, "left_out": 2},
             {"gpu": "x", "seed": 7, "left_out": 3}]
    assert merge.merged_meta(metas)["left_out"] == 5
    with pytest.raises(ValueError, match="seed is 7 in one part"):
        merge.merged_meta([*metas, {"gpu": "x", "seed": 8}])


def test_a_fresh_seed_each_run(capsys):
    seeds = {bench_flat_sweep.parse([]).seed for _ in range(5)}
    assert len(seeds) == 5
    assert bench_flat_sweep.parse(["--seed", "3"]).seed == 3
    with pytest.raises(SystemExit):
        bench_flat_sweep.parse(["--cells", "0"])
    assert "not 0" in capsys.readouterr().err


def test_data_that_nobody_has():
    with pytest.raises(ValueError, match="glove"):
        flat_data.Data("cpu").why_missing("glove")


# ---- torch on the CPU: data, the reference, a run --------------------------------


def canonical(x, q, metric):
    """One pair, by the words of docs/exact.md, in Python's own floats."""
    def total(terms):
        s = [0.0] * 8
        for i, term in enumerate(terms):
            s[i % 8] += term
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))

    if metric == "L2":
        return total([(a - b) * (a - b) for a, b in zip(x, q)])
    product = total([a * b for a, b in zip(x, q)])
    if metric == "IP":
        return product
    norms = total([a * a for a in x]) * total([b * b for b in q])
    return product / math.sqrt(norms) if norms else 0.0


@pytest.mark.parametrize("metric", ["L2", "IP", "cosine"])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("ties", [False, True])
def test_reference(metric, d, ties):
    torch = pytest.importorskip("torch")
    from flat_reference import Reference

    rng = random.Random(d)
    def vectors(count):
        return torch.tensor([[float(rng.randrange(3)) if ties else rng.gauss(0, 1)
                              for _ in range(d)] for _ in range(count)])
    x, xq = vectors(50), vectors(4)
    reference = Reference(x, xq, metric)
    for i, q in enumerate(xq.tolist()):
        exact = torch.tensor([canonical(v, q, metric) for v in x.tolist()])
        assert torch.equal(reference.distances[i], exact)
        keys = exact.tolist()
        order = sorted(range(50), key=lambda j: (
            keys[j] if metric == "L2" else -keys[j], j))
        for k in (1, 49, 50, 51):
            best, ids = reference.nearest(k)
            assert ids[i].tolist() == order[:k]
            assert best[i].tolist() == [keys[j] for j in order[:k]]


def test_wrong_places_and_recall():
    torch = pytest.importorskip("torch")
    from flat_reference import Reference

    x = torch.tensor([[0.0], [1.0], [1.0], [3.0]])
    reference = Reference(x, torch.tensor([[0.0]]), "L2")
    distances = torch.tensor([[0.0, 1.0, 1.0, 9.0, 3e38]])
    right = torch.tensor([[0, 1, 2, 3, -1]])
    assert reference.wrong_places(distances, right) == 0
    assert reference.wrong_places(distances, right[:, [0, 2, 1, 3, 4]]) == 2
    assert reference.wrong_places(distances[:, :2] + 0.5, right[:, :2]) == 2
    assert reference.wrong_places(distances, torch.tensor([[0, 1, 2, 3, 3]])) == 1
    for ids, recall in (([0, 1], 1.0), ([0, 2], 1.0), ([0, 3], 0.5),
                        ([0, 0], 0.5), ([-1, 0], 0.5), ([9, 1], 0.5),
                        ([3, 2, 1, 0, -1], 1.0), ([3, 3, -1, -1, 0], 0.5)):
        assert reference.recall(torch.tensor([ids])) == recall, ids
    with pytest.raises(ValueError, match="'L7' is not"):
        Reference(x, x, "L7")


@pytest.mark.parametrize("name", sorted(flat_data.SYNTHETIC))
def test_data_is_that_of_its_seed(name):
    torch = pytest.importorskip("torch")
    data = flat_data.Data("cpu")
    for n, q, d in ((1, 1, 1), (1000, 9, 5)):
        x, xq = data.make(name, n, q, d, 4)
        assert x.shape == (n, d) and xq.shape == (q, d)
        assert x.dtype == xq.dtype == torch.float32
        assert x.isfinite().all() and x.is_contiguous()
        again = data.make(name, n, q, d, 4)
        assert torch.equal(again[0], x) and torch.equal(again[1], xq)
    assert not torch.equal(data.make(name, 1000, 9, 5, 5)[0], x)


def test_a_run_on_the_cpu(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(sweep_cells, "MOST_OPERATIONS", 1e8)
    monkeypatch.setattr(sweep_cells, "MOST_BYTES", 1 << 22)
    out = tmp_path / "sweep.json"
    with pytest.warns(UserWarning, match="torch_tf32"):
        status = bench_flat_sweep.main([
            "--device", "cpu", "--cells", "6", "--seed", "1", "--methods",
            "torch_fp32,torch_tf32", "--out", str(out)])
    assert status == 1  # nothing of ours was checked
    result = result_file.load(out)
    assert result["meta"]["seed"] == 1 and result["meta"]["cells"] == 6
    assert result["rows"] and all(
        r["method"] == "torch_fp32" and r["ms"] > 0
        and (r["recall"] > 0.99 or r["data"] == "far")
        for r in result["rows"])
    assert "6/6" in capsys.readouterr().out
