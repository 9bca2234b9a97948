"""What becomes of the rows of the race of inverted lists: the figure, and those that
are published."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import ivf_rivals  # noqa: E402
import plot  # noqa: E402
import plot_ivf  # noqa: E402
import result_file  # noqa: E402

PUBLISHED = ROOT / "benchs/results/h200/ivf_rivals.json"

# ---- figure and table -------------------------------------------------------------


def row(method, ms, recall, nprobe=1, **other):
    return {"bench": "ivf", "method": method, "index": "ivf_flat",
            "data": "sift", "n": 99000, "d": 128, "nlist": 1024,
            "nprobe": nprobe, "q": 1000, "k": 10, "pairs": 5, "ms": ms,
            "repeats": 5, "recall": recall} | other


ROWS = [row("faiss_bits", 2.0, 0.9, 4), row("faiss_bits", 1.0, 0.5),
        row("faiss_115", 3.0, 0.9), row("faiss_115", 5.0, 1.0, 8),
        row("faiss_115", None, None, 16, why="about 9 ms a call"),
        row("cuvs", 0.1, 0.4, q=1), row("faiss_bits", 0.2, 0.4, q=8),
        row("faiss_bits", 1.5, 0.3, index="ivf_pq32")]


def test_panels_are_of_most_queries_and_one():
    found = plot_ivf.panels(ROWS)
    assert {key: series for key, (_, series) in found.items()} == {
        ("sift", "ivf_flat", "many"): {
            "faiss_bits": [(1, 0.5, 1.0), (4, 0.9, 2.0)],
            "faiss_115": [(1, 0.9, 3.0), (8, 1.0, 5.0)]},
        ("sift", "ivf_flat", "one"): {"cuvs": [(1, 0.4, 0.1)]},
        ("sift", "ivf_pq", "many"): {"faiss_bits": [(1, 0.3, 1.5)]}}


def test_what_is_fastest_at_a_recall(tmp_path, capsys):
    cell = ("sift", "ivf_flat", 1000)
    assert plot_ivf.at_recall(ROWS, 0.9)[cell] == {
        "faiss_bits": 2.0, "faiss_115": 3.0}
    assert plot_ivf.at_recall(ROWS, 0.91)[cell] == {"faiss_115": 5.0}
    path = tmp_path / "a.json"
    result_file.save(path, {"meta": {}, "rows": ROWS})
    assert plot_ivf.main([str(path)]) == 0
    assert "recall 0.9   1.50 sift ivf_flat q=1000: " in capsys.readouterr().out


@pytest.mark.parametrize("left, right, ticks", [
    (0.12, 0.0009, [0.001, 0.01, 0.02, 0.05, 0.1]),
    (0.25, 0.18, [0.2]), (0.6, 0.3, [0.3, 0.4, 0.5]), (0.3, 0.25, [0.3])])
def test_ticks(left, right, ticks):
    assert plot_ivf.ticks_between(left, right) == ticks


def test_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    meta = {"gpu": "a", "cuda": "b", "faiss": "c", "date": "d", "commit": "e"}
    path = tmp_path / "a.json"
    result_file.save(path, {"meta": meta, "rows": ROWS})
    assert plot.main([str(path)]) == 0
    assert path.with_suffix(".png").exists()
    # Rows of bench_ivf have a recall of another kind.
    bare = [{k: v for k, v in r.items() if k != "repeats"} for r in ROWS]
    other = tmp_path / "b.json"
    result_file.save(other, {"meta": meta, "rows": bare})
    assert plot.main([str(other)]) == 0
    assert not other.with_suffix(".png").exists()


# ---- what is published ------------------------------------------------------------


def test_published_rows():
    data = result_file.load(PUBLISHED)
    cells = {}
    for r in data["rows"]:
        assert r["method"] in ivf_rivals.METHODS
        assert ("pairs" in r) != bool(r.get("own_lists"))
        assert (r["ms"] is None) == ("why" in r) != ("recall" in r)
        assert r["ms"] is None or (r["ms"] > 0 and r["repeats"] >= 5)
        key = (r["data"], r["index"], r["q"], r["nprobe"])
        cells.setdefault(key, {})[r["method"]] = r
    for key, rows in cells.items():
        # The same lists: the same recall, but for how codes are compared.
        ours, stock = rows["faiss_bits"], rows["faiss_115"]
        if stock["ms"] is not None:
            assert ours["recall"] == pytest.approx(stock["recall"], abs=3e-3)
        wider = cells.get((*key[:3], 2 * key[3]))
        if wider:
            assert wider["faiss_bits"]["recall"] > ours["recall"] - 3e-3
            assert wider["faiss_bits"]["pairs"] > ours["pairs"]
