"""benchs/points_table.py, on results made up for the test."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchs"))
import points_table  # noqa: E402


def row(method, index, ms, **more):
    return {"bench": "range", "method": method, "index": index, "metric": "l2",
            "n": 1000, "d": 3, "q": 16, "selectivity": 0.001, "ms": ms, **more}


DATA = {
    "meta": {"gpu": "a GPU", "date": "2026-01-01", "commit": "0123456789abcdef"},
    "rows": [
        row("faiss_bits", "flat", 0.25, build_ms=1.5),
        row("faiss_bits", "sss", 0.5),
        row("cuml", "flat", 0.125, build_ms=30),
        row("cuml", "flat", 9, d=4),
        row("faiss_bits", "flat", 0.75, q=1),
        row("open3d", "flat", 7.5, q=1, build_ms=0.25),
        row("open3d", "flat", 0.75, build_ms=1.25),
    ],
}


def test_lines_and_the_fastest():
    lines = points_table.table(DATA).splitlines()
    assert lines[0].count("|") == 8 and "torch" not in lines[0]
    assert lines[2] == "| 1,000 | 1 | 0.1% | **0.75 ms** | - | - | 7.5 ms, 10 |"
    assert lines[3] == (
        "| 1,000 | 16 | 0.1% | 0.25 ms | 0.5 ms, 2 | **0.125 ms, 0.5** "
        "| 0.75 ms, 3 |")
    text = "\n".join(lines)
    assert "1,000 points: `GpuIndexBitsFlat` 1.5; cuML" in text
    assert "Open3D, hash table, not sorted 0.75." in text
    assert "commit 0123456789)" in lines[-1]


def test_writes_between_the_marks(tmp_path, capsys):
    results, page = tmp_path / "points.json", tmp_path / "page.md"
    results.write_text(json.dumps(DATA))
    page.write_text("a\n<!-- points: begin (x) -->\nold\n<!-- points: end -->\nb\n")
    for _ in range(2):
        assert points_table.main([str(results), str(page)]) == 0
        text = page.read_text()
        assert text.startswith("a\n<!-- points") and text.endswith("end -->\nb\n")
        assert "old" not in text and text.count("| 1,000 | 16 |") == 1
    page.write_text("nothing")
    assert points_table.main([str(results), str(page)]) == 1
    assert "no marks" in capsys.readouterr().err


def test_marks_that_name_another_file_stay(tmp_path, capsys):
    results, page = tmp_path / "points.json", tmp_path / "page.md"
    results.write_text(json.dumps(DATA))
    other = "<!-- points: begin (other/points.json) -->\nold\n<!-- points: end -->\n"
    page.write_text(other)
    assert points_table.main([str(results), str(page)]) == 1
    assert page.read_text() == other
    assert f"no marks of points for {results}" in capsys.readouterr().err
    page.write_text(
        other + f"<!-- points: begin ({results}) -->\nold\n<!-- points: end -->\n")
    assert points_table.main([str(results), str(page)]) == 0
    assert page.read_text().startswith(other) and page.read_text().count("old") == 1
