"""benchs/cpu/bench_sweep_cpu.py: its cells, its checks, and a short run."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchs" / "cpu" / "bench_sweep_cpu.py"
sys.path[:0] = [str(SCRIPT.parent), str(SCRIPT.parent.parent)]

import bench_sweep_cpu  # noqa: E402
import cpu_sweep_cells  # noqa: E402


def test_cells_of_a_seed():
    cells = cpu_sweep_cells.random_cells(300, 5)
    assert cells == cpu_sweep_cells.random_cells(300, 5)
    assert cells != cpu_sweep_cells.random_cells(300, 6)
    kinds = {(cell["index"], cell["call"], "selector" in cell)
             for cell in cells}
    assert len(kinds) == 6
    for cell in cells:
        assert cpu_sweep_cells.fits(cell)
        assert ("k" in cell) != ("hits" in cell)
        assert ("nlist" in cell) == (cell["index"] == "ivf")
        assert 1 <= cell.get("nprobe", 1) <= cell.get("nlist", 1) <= cell["n"]


@pytest.mark.parametrize("data", cpu_sweep_cells.DATA)
def test_vectors_of_a_cell(data):
    cell = {"n": 40, "d": 3, "q": 7, "data": data, "data_seed": 1}
    x, xq = cpu_sweep_cells.vectors_of(cell)
    assert x.shape == (40, 3) and xq.shape == (7, 3) and x.dtype == np.float32
    np.testing.assert_array_equal(x, cpu_sweep_cells.vectors_of(cell)[0])


@pytest.mark.parametrize("selector", cpu_sweep_cells.SELECTORS)
def test_selected_ids(selector):
    cell = {"n": 50, "data_seed": 3, "selector": selector, "allowed": 0.5}
    ids = cpu_sweep_cells.selected_ids(cell)
    assert len(ids) == 25 and (np.diff(ids) > 0).all()
    assert 0 <= ids[0] and ids[-1] < 50
    assert cpu_sweep_cells.selected_ids({"n": 50}) is None


CELL = {"index": "flat", "n": 30, "d": 4, "q": 2, "k": 3, "metric": "L2",
        "data": "uniform", "data_seed": 9}


def exact(ids=slice(None)):
    x, xq = (part.astype(np.float64) for part in cpu_sweep_cells.vectors_of(CELL))
    return np.square(x[None, ids] - xq[:, None]).sum(2)


def test_wrong_places_are_counted():
    near = exact()
    right = np.argsort(near, 1)[:, :3].tolist()
    assert bench_sweep_cpu.places_wrong(CELL, right) == 0
    wrong = [[right[0][1], right[0][0], right[0][2]], right[1]]
    assert bench_sweep_cpu.places_wrong(CELL, wrong) == 2
    assert bench_sweep_cpu.places_wrong(CELL, [[*right[0][:2], -1]]) == 1
    one = CELL | {"selector": "range", "allowed": 0.01}
    only = int(cpu_sweep_cells.selected_ids(one)[0])
    assert bench_sweep_cpu.places_wrong(one, [[only, -1, -1]]) == 0
    assert bench_sweep_cpu.places_wrong(one, [[only, right[0][0], -1]]) == 1


def test_wrong_ids_are_counted():
    near = exact()
    radius = float(np.sort(near[0])[4:6].mean())
    right = [np.flatnonzero(row < radius).tolist() for row in near]
    assert bench_sweep_cpu.ids_wrong(CELL, right, radius) == 0
    assert bench_sweep_cpu.ids_wrong(CELL, [right[0][1:], right[1]],
                                     radius) == 1
    more = int(near[1].argmax())
    assert bench_sweep_cpu.ids_wrong(CELL, [right[0], [*right[1], more]],
                                     radius) == 1


def test_a_short_run(tmp_path):
    # Not faiss_bits itself, which is also a folder of the tree.
    pytest.importorskip("faiss_bits.compiled")
    out = tmp_path / "sweep.json"
    done = subprocess.run(
        [sys.executable, "-B", str(SCRIPT), "--out", str(out), "--cells", "12",
         "--seed", "7", "--commit", "abc"],
        capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert result["meta"]["seed"] == 7 and result["meta"]["commit"] == "abc"
    rows = result["rows"]
    assert len(rows) == 24
    for ours, rival in zip(rows[::2], rows[1::2]):
        assert ours["method"] == "faiss_bits" != rival["method"]
        assert ours["ratio"] == pytest.approx(rival["ms"] / ours["ms"], rel=1e-3)
        assert ours.get("places_wrong", 0) == 0
        assert ours.get("same_places", 1) >= bench_sweep_cpu.SAME
    assert "12 cells" in done.stdout


def test_what_is_left_out_is_said(tmp_path):
    pytest.importorskip("faiss_bits.compiled")
    out = tmp_path / "sweep.json"
    assert bench_sweep_cpu.main(
        ["--out", str(out), "--cells", "5", "--max-seconds", "-1"]) == 0
    result = json.loads(out.read_text())
    assert result["meta"]["left_out"] == 5 and result["rows"] == []


def test_bad_arguments():
    with pytest.raises(SystemExit):
        bench_sweep_cpu.parse(["--out", "x", "--cells", "0"])
