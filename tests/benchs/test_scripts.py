"""benchs/check.py and benchs/plot.py on results made up for the test."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import plot  # noqa: E402

META = {"gpu": "NVIDIA H200", "driver": "580.1", "cuda": "13.0",
        "faiss": "1.7.3", "commit": "0123456789ab", "date": "2026-01-31",
        "read_bw_gbps": 4500.0}


def select_row(method, k, ms, **other):
    row = {"bench": "select", "method": method, "rows": 64, "cols": 1 << 24,
           "k": k, "dtype": "float32", "order": "random", "ms": ms,
           "frac_read": 0.95 / ms}
    return row | other


def flat_row(method, q, ms, **other):
    row = {"bench": "flat", "method": method, "n": 1 << 20, "d": 128, "q": q,
           "k": 10, "metric": "L2", "dtype": "float32", "ms": ms,
           "gdist_s": q * 1.0486 / ms}
    return row | other


@pytest.fixture
def save(tmp_path):
    def write(rows, name="rows.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"meta": META, "rows": rows}))
        return str(path)
    return write


SELECT = [
    select_row("faiss_bits", 10, 1.0),
    select_row("faiss_block", 10, 2.0),
    select_row("faiss_warp", 10, 4.0),
    select_row("faiss_bits", 2048, 3.0),
    select_row("faiss_block", 2048, 2.5),
    select_row("faiss_bits", 10, 9.0, order="descending"),
    select_row("faiss_block", 10, 9.0, order="descending"),
]
FLAT = [
    flat_row("faiss_bits", 1, 0.2),
    flat_row("faiss_flat", 1, 2.0),
    flat_row("faiss_bits", 1024, 4.0),
    flat_row("faiss_flat", 1024, 8.0),
]


def test_best_rival_counts():
    results = {dict(cell[1:])["k"]: (name, speedup) for
               cell, _, name, _, speedup in
               check.compare(check.times_by_cell(SELECT[:5]))}
    assert results == {10: ("faiss_block", 2.0),
                       2048: ("faiss_block", pytest.approx(2.5 / 3))}


def test_check_finds_the_slow_cell(save, capsys):
    assert check.main([save(SELECT)]) == 1
    out = capsys.readouterr().out
    missed = [line for line in out.splitlines() if line.startswith("MISS")]
    assert len(missed) == 1 and "k=2048" in missed[0]
    assert "3 cells, 1 below" in out


def test_check_passes_what_is_at_or_ahead(save):
    assert check.main([save(SELECT), "--max-k", "1024"]) == 0
    assert check.main([save(FLAT)]) == 0
    assert check.main([save(FLAT), "--min-speedup", "5", "--max-q", "16"]) == 0
    assert check.main([save(FLAT), "--min-speedup", "5"]) == 1


def test_check_fails_on_what_is_missing(save, capsys):
    assert check.main([save([FLAT[0]])]) == 1
    assert check.main([save([FLAT[1]])]) == 1
    assert "missing" in capsys.readouterr().out
    assert check.main([save([])]) == 1
    assert check.main([save(FLAT), "--min-d", "4096"]) == 1


def test_check_against_an_older_file(save):
    older = save([dict(FLAT[0], ms=0.1), dict(FLAT[2], ms=5.0)], "old.json")
    assert check.main([save(FLAT), "--against", older]) == 1
    assert check.main(
        [save(FLAT), "--against", older, "--min-speedup", "0.5"]) == 0


def test_check_filters_by_name(save):
    path = save(SELECT)
    assert check.main([path, "--order", "descending"]) == 0
    assert check.main([path, "--order", "ascending"]) == 1


def test_select_panels_are_apart():
    panels = plot.select_panels(SELECT)
    assert [len(lines) for _, lines in panels] == [3, 2]
    assert "descending" in panels[1][0] and "descending" not in panels[0][0]


def test_speedups_leave_gaps():
    rows = FLAT + [flat_row("faiss_bits", 16, 1.0)]
    assert plot.speedups(rows, 10) == {(128, 1): 10.0, (128, 1024): 2.0}


@pytest.mark.parametrize("rows", [
    SELECT,
    SELECT[:1],
    FLAT,
    FLAT[:1],
    [flat_row("faiss_bits", 1, 0.2, dtype="float16")],
    FLAT + [dict(FLAT[1], q=16, ms=None, gdist_s=None)],
])
def test_plot_writes_both_files(save, rows):
    path = pathlib.Path(save(rows))
    assert plot.main([str(path)]) == 0
    assert path.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in path.with_suffix(".svg").read_bytes()[:2000]


def test_plot_of_nothing(save, capsys):
    path = pathlib.Path(save([]))
    assert plot.main([str(path)]) == 0
    assert not path.with_suffix(".png").exists()
    assert "no rows" in capsys.readouterr().out
