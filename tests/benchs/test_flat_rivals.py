"""Rivals of bench_flat: what runs without a GPU."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import flat_rivals  # noqa: E402
import merge  # noqa: E402
import plot  # noqa: E402
import readme_table  # noqa: E402
import result_file  # noqa: E402

META = {"gpu": "NVIDIA H200", "compute_capability": 90, "driver": "580.1",
        "cuda": "13.0", "faiss": "1.7.3", "commit": "0123456789ab",
        "date": "2026-01-31", "read_bw_gbps": 4500.0}
ALL = {field: None for field in flat_rivals.FIELDS[:-1]}


def row(method, ms, q=1024, **other):
    cell = {"bench": "flat", "method": method, "n": 1 << 20, "d": 128, "q": q,
            "k": 10, "metric": "L2", "dtype": "float32", "ms": ms}
    return cell | ({"gdist_s": 1.0} if ms else {}) | other


ROWS = [row("faiss_bits", 4.0), row("faiss_flat", 8.0),
        row("faiss_bits", 1.0, q=1), row("faiss_flat", 2.0, q=1)]


def test_every_cell_gets_the_rivals_that_it_lacks():
    rows = ROWS + [row("torch_fp32", 9.0), row("faiss_bits", 9.0, forced=1, k=7)]
    found = flat_rivals.cells_to_measure(rows, ["uniform"], ALL)
    assert [(cell["q"], lacking) for cell, lacking in found] == [
        (1, list(flat_rivals.RIVALS)), (1024, list(flat_rivals.RIVALS[1:]))]


def test_cells_of_other_data_are_measured_once():
    found = flat_rivals.cells_to_measure(ROWS, ["sift"], ALL)
    assert len(found) == 3 * len(flat_rivals.KS)
    every = list(flat_rivals.INDEXES + flat_rivals.RIVALS)
    assert all(lacking == every and cell["data"] == "sift"
               for cell, lacking in found)
    done = [{"bench": "flat", "method": method, **cell, "ms": 1.0}
            for cell, lacking in found for method in lacking]
    assert flat_rivals.cells_to_measure(ROWS + done, ["sift"], ALL) == []
    # The same sizes of uniform data are another cell.
    bare = [{k: v for k, v in r.items() if k != "data"} for r in done]
    assert len(flat_rivals.cells_to_measure(bare, ["sift"], ALL)) == len(found)


def test_cells_with_the_same_vectors_stand_together():
    rows = [row("faiss_bits", 1.0, q=q, d=d, metric=metric)
            for q in (10240, 1) for metric in ("L2", "IP") for d in (128, 16)]
    groups = [flat_rivals.group_of(cell) for cell, _ in
              flat_rivals.cells_to_measure(rows, ["uniform", "sift"], ALL)]
    changes = sum(a != b for a, b in zip(groups, groups[1:]))
    assert changes == len(set(groups)) - 1 == 4


@pytest.mark.parametrize("field, value, count", [
    ("q", {1}, 1), ("d", {64}, 0), ("metric", ["L2"], 2), ("k", {10, 100}, 2)])
def test_chosen_cells(field, value, count):
    found = flat_rivals.cells_to_measure(
        ROWS, ["uniform"], ALL | {field: value})
    assert len(found) == count


def test_what_will_be_too_slow_is_known_before():
    cell = {"q": 10240, "k": 10}
    assert flat_rivals.too_slow({(1024, 10): 400.0}, cell, 3000) == 4000.0
    assert flat_rivals.too_slow({(1024, 10): 200.0}, cell, 3000) is None
    assert flat_rivals.too_slow({(1024, 100): 400.0}, cell, 3000) is None
    # Few queries take as long as reading the vectors does.
    assert flat_rivals.too_slow({(16, 10): 400.0}, cell, 3000) is None
    assert flat_rivals.too_slow({}, cell, 3000) is None


def test_shares_of_the_peak():
    data = {"meta": META, "rows": [row("faiss_bits", 7.0, q=10240),
                                   row("cuvs", None, why="k above n")]}
    flat_rivals.add_shares(data)
    share = 2 * 10240 * 2**20 * 128 / 790e12 / 7e-3
    assert data["rows"][0]["frac_peak"] == pytest.approx(share, rel=1e-3)
    assert "frac_peak" not in data["rows"][1]
    other = {"meta": META | {"gpu": "another"}, "rows": [row("faiss_bits", 7.0)]}
    flat_rivals.add_shares(other)
    assert "frac_peak" not in other["rows"][0]


@pytest.mark.parametrize("arguments, message", [
    (["f.json", "--methods", "torch_fp8"], "torch_fp8"),
    (["f.json", "--data", "sift,glove"], "glove"),
    ([], "file")])
def test_wrong_options_are_named(capsys, arguments, message):
    with pytest.raises(SystemExit):
        flat_rivals.parse(arguments)
    assert message in capsys.readouterr().err


# ---- the other scripts on such files --------------------------------------------

RIVALS = [row("torch_tf32", 6.0, recall=0.99, repeats=7),
          row("faiss_bits_fp32", 3.0), row("cuvs", None, why="k above n"),
          row("faiss_bits", 40.0, data="clustered_sorted", recall=1.0),
          row("torch_tf32", 50.0, data="clustered_sorted", recall=1.0)]


def write(path, rows, **meta):
    result_file.save(path, {"meta": META | meta, "rows": rows})
    return str(path)


def test_merge_keeps_data_apart_and_says_what_is_missing(tmp_path):
    first = write(tmp_path / "a.json", ROWS,
                  missing={"torch_tf32": "no torch", "cuvs": "no cuvs",
                           "flashlib_fp32": "no flashlib"})
    second = write(tmp_path / "b.json", RIVALS, torch="2.11.0")
    out = tmp_path / "out.json"
    assert merge.main([str(out), first, second]) == 0
    merged = result_file.load(out)
    assert merged["rows"] == ROWS + RIVALS
    assert merged["meta"] == META | {
        "torch": "2.11.0", "missing": {"flashlib_fp32": "no flashlib"}}


def test_check_holds_us_against_rivals_alone(tmp_path, capsys):
    path = write(tmp_path / "flat.json", ROWS + RIVALS)
    assert check.main([path, "--min-q", "1024"]) == 0
    out = capsys.readouterr().out
    assert "torch_tf32         6 ms  1.50x" in out and "data=clustered" in out


def test_table_and_plot_are_of_uniform_data(tmp_path):
    select = {"bench": "select", "method": "faiss_bits", "rows": 64,
              "cols": 1 << 24, "k": 10, "dtype": "float32", "order": "random",
              "ms": 1.0, "frac_read": 0.9}
    write(tmp_path / "select.json", [select])
    write(tmp_path / "flat.json", ROWS)
    before = readme_table.section(tmp_path)
    assert "4 ms, 8 ms, **2.0**" in before
    more = [r | {"n": 99000} if "data" in r else r for r in RIVALS]
    path = write(tmp_path / "flat.json", ROWS + more)
    assert readme_table.section(tmp_path) == before
    pytest.importorskip("matplotlib")
    assert plot.main([path]) == 0
    assert (tmp_path / "flat.png").exists()


# ---- torch on the CPU -------------------------------------------------------------


def test_a_run_on_the_cpu(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    rows = [row("faiss_bits", 1.0, n=300, d=9, q=q, k=k, metric=metric)
            for q in (1, 40) for k in (1, 300, 301) for metric in ("L2", "IP")]
    path = tmp_path / "flat.json"
    write(path, rows)
    with pytest.warns(UserWarning, match="torch_tf32 is left out"):
        assert flat_rivals.main([
            str(path), "--device", "cpu", "--data", "uniform", "--methods",
            "torch_fp32,torch_tf32"]) == 0
    result = result_file.load(path)
    assert result["meta"]["torch"] == torch.__version__
    assert result["meta"]["missing"] == {"torch_tf32": "runs on a GPU only"}
    added = result["rows"][len(rows):]
    assert len(added) == len(rows)
    assert all(r["method"] == "torch_fp32" and r["recall"] > 0.99 and r["ms"] > 0
               for r in added)
    assert capsys.readouterr().out.count("recall 1.0") >= len(rows) - 2
    # Nothing is left to do.
    with pytest.warns(UserWarning):
        flat_rivals.main([str(path), "--device", "cpu", "--data", "uniform",
                          "--methods", "torch_fp32,torch_tf32"])
    assert result_file.load(path) == json.loads(json.dumps(result))
