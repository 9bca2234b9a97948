"""Rows of the benches of several GPUs, and the table that is made of them."""

import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import many_table  # noqa: E402
import merge  # noqa: E402
import result_file  # noqa: E402

META = {"gpu": "NVIDIA H200", "compute_capability": 90, "driver": "580.1",
        "cuda": "13.0", "faiss": "1.7.3", "commit": "0123456789ab",
        "date": "2026-01-31", "read_bw_gbps": 4500.0}


def row(bench, ms, devices=1, method="faiss_bits", **other):
    return {"bench": bench, "method": method, "index": "flat",
            "kind": "replicas", "shards": devices, "devices": devices,
            "peers": int(devices > 1), "arrays": "device"} | other | {"ms": ms}


def ivf(ms, devices=1, n=1 << 20, q=1024, k=10, **other):
    sizes = {"index": "ivf_flat", "n": n, "d": 128, "nlist": 1024,
             "nprobe": 32, "q": q, "k": k}
    return row("many_ivf", ms, devices, **sizes | other)


def flat(ms, devices=1, **other):
    return row("many", ms, devices,
               **{"n": 1 << 20, "d": 128, "q": 1024, "k": 10} | other)


def in_range(ms, devices=1, selectivity=0.01, **other):
    sizes = {"kind": "shards", "metric": "L2", "n": 1 << 20, "d": 128,
             "q": 1024, "selectivity": selectivity}
    return row("many_range", ms, devices, radius=15.5, results=12345,
               **sizes | other)


def kmeans(ms, devices=1, **other):
    return row("many_kmeans", ms, devices, n=1 << 20, d=128, k=4096, niter=10,
               objective=9.9e6, search_ms=ms / 2, **{"arrays": "host"} | other)


def graph(ms, devices=1, **other):
    return row("many_knn_graph", ms, devices, n=1 << 20, d=128, k=10,
               block=16384, **other)


@pytest.fixture
def write(tmp_path):
    def save(name, rows):
        (tmp_path / name).write_text(json.dumps({"meta": META, "rows": rows}))
        return str(tmp_path / name)
    return save


@pytest.mark.parametrize("make, fields", [
    (flat, ("q", "k", "n", "kind", "devices")),
    (ivf, ("nlist", "nprobe", "q", "k", "n", "kind", "devices")),
    (in_range, ("selectivity", "q", "n", "peers", "shards")),
    (kmeans, ("k", "niter", "devices", "kind")),
    (graph, ("block", "k", "arrays", "devices"))])
def test_cells_differ_by_every_setting(make, fields):
    one = make(1.0)
    for field in fields:
        other = "else" if isinstance(one[field], str) else one[field] + 1
        assert result_file.cell_of(one | {field: other}) != (
            result_file.cell_of(one)), field
    assert result_file.cell_of(one) == result_file.cell_of(
        make(2.0, method="faiss"))


def test_parts_are_merged_and_checked(write, capsys, tmp_path):
    one = write("one.json", [ivf(2.0), ivf(9.0, method="faiss")])
    two = write("two.json", [ivf(1.0, 2), ivf(5.0, 2, method="faiss")])
    out = str(tmp_path / "out.json")
    assert merge.main([out, one, two]) == 0
    assert len(result_file.load(out)["rows"]) == 4
    assert check.main([out, "--min-speedup", "4"]) == 0
    assert check.main([out, "--min-speedup", "4.6"]) == 1
    assert "2 cells" in capsys.readouterr().out
    graphs = write("graph.json", [graph(1.0)])
    assert merge.main([out, one, graphs]) == 1  # of one bench


def test_efficiency_of_shards_and_replicas():
    times = many_table.Times({"rows": [
        ivf(10.0, q=1024), ivf(19.0, q=2048), ivf(10.5, 2, q=2048),
        ivf(8.0, kind="shards"), ivf(10.0, 2, n=1 << 21, kind="shards"),
        ivf(3.0, 2, q=7)]})
    replicas, shards, odd = times.several("device")
    assert times.strong(replicas) == pytest.approx(19.0 / 21)
    assert times.weak(replicas) == pytest.approx(10 / 10.5)
    assert times.strong(shards) is None
    assert times.weak(shards) == pytest.approx(0.8)
    assert times.strong(odd) is None and times.weak(odd) is None


def test_weak_share_is_of_what_was_timed_in_turns():
    times = many_table.Times({"rows": [
        ivf(10.0), ivf(10.5, 2, q=2048, share_ms=10.2),
        ivf(12.0, 2, n=1 << 21, kind="shards", share_ms=11.0)]})
    replicas, shards = times.several("device")
    assert times.weak(replicas) == pytest.approx(10.2 / 10.5)
    assert times.weak(shards) == pytest.approx(11 / 12)


ALL = {
    "many.json": [
        flat(1.0), flat(0.6, 2), flat(0.7, 2, arrays="host"),
        flat(1.4, 2, arrays="host", method="faiss_over_ours"),
        flat(7.0, 2, arrays="host", method="faiss")],
    "many_ivf.json": [
        ivf(10.0, kind="shards"), ivf(10.0),
        ivf(12.5, 2, n=1 << 21, kind="shards"),
        ivf(15.0, 2, n=1 << 21, kind="shards", arrays="host"),
        ivf(60.0, 2, n=1 << 21, kind="shards", arrays="host", method="faiss"),
        ivf(5.5, 2)],
    "many_range.json": [
        in_range(8.0), in_range(5.0, 2), in_range(8.0, kind="replicas"),
        in_range(4.0, 2, kind="replicas"),
        in_range(3.0, 2, 0.001, kind="replicas")],
    "many_kmeans.json": [
        kmeans(900.0), kmeans(700.0, 2), kmeans(2100.0, 2, method="faiss"),
        kmeans(100.0, method="faiss_bits_clustering")],
    "many_knn_graph.json": [graph(650.0), graph(340.0, 2)],
}


def test_table_says_what_was_measured(write, tmp_path):
    for name, rows in ALL.items():
        write(name, rows)
    lines = many_table.content(tmp_path).splitlines()
    assert lines[0] == (
        "NVIDIA H200: `many.json`, `many_ivf.json`, `many_range.json`, "
        "`many_kmeans.json`, `many_knn_graph.json` (commit 0123456789).")
    titles = [line.split("|")[1].strip() for line in lines if "GPUs" in line]
    assert titles == ["vectors", "IVF", "range search, n", "job"]
    assert ("| replicas | 2^20 | 1024 | 10 | 2 | 1 | 0.6 | 0.83 |  | 0.7 | 7 "
            "| 10.0 | 1.4 |") in lines
    assert ("| shards | 2^21 | 1024 | 10 | 2 |  | 12.5 |  | 0.80 | 15 | 60 "
            "| 4.0 |  |") in lines
    assert ("| replicas | 2^20 | 1024 | 10 | 2 | 10 | 5.5 | 0.90 |  |  |  |  "
            "|  |") in lines
    assert ("| 2^20 | 1024 | 1% | 12345 | 2 | 8 | 5 | 0.80 | 4 | 1.00 |"
            in lines)
    assert "| 2^20 | 1024 | 0.1% | 12345 | 2 |  |  |  | 3 |  |" in lines
    assert "| k-means | host | 2 | 900 | 700 | 0.64 | 2100 | 3.0 |" in lines
    assert "| k-NN graph | device | 2 | 650 | 340 | 0.95 |  |  |" in lines


@pytest.mark.parametrize("value, places, text", [
    (0.9499, 2, "0.94"), (0.95, 2, "0.95"), (0.29, 2, "0.29"), (1.0, 2, "1.00"),
    (9.99, 1, "9.9"), (12.0, 1, "12.0"), (None, 2, "")])
def test_shares_are_rounded_down(value, places, text):
    assert many_table.down(value, places) == text


def test_commits_are_said_of_their_files(write, tmp_path):
    for name, rows in ALL.items():
        write(name, rows)
    data = {"meta": META | {"commit": "f" * 40},
            "rows": ALL["many_range.json"]}
    (tmp_path / "many_range.json").write_text(json.dumps(data))
    first = many_table.content(tmp_path).splitlines()[0]
    assert "`many_range.json` (commit ffffffffff)" in first
    assert "`many_knn_graph.json` (commit 0123456789)" in first


def test_table_goes_between_its_marks(write, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- several devices: begin (by a script) -->\n\n"
                    "old\n\n<!-- several devices: end -->\nafter\n")
    with pytest.raises(FileNotFoundError, match="many_ivf.json"):
        many_table.main([str(tmp_path), "--docs", str(page)])
    assert "old" in page.read_text()
    write("many_range.json", ALL["many_range.json"])
    many_table.main([str(tmp_path), "--docs", str(page)])
    text = page.read_text()
    assert text.startswith("before\n<!-- several devices: begin (by a script)")
    assert text.endswith("<!-- several devices: end -->\nafter\n")
    assert "old" not in text and "k-means" not in text and "| 0.80 |" in text


def test_marks_of_another_name(write, tmp_path):
    page = tmp_path / "page.md"
    marks = ["several devices", "several devices, H100"]
    page.write_text("".join(
        f"<!-- {name}: begin -->\n\nold {i}\n\n<!-- {name}: end -->\n"
        for i, name in enumerate(marks)))
    write("many_range.json", ALL["many_range.json"])
    many_table.main([str(tmp_path), "--docs", str(page), "--marks", marks[1]])
    text = page.read_text()
    assert "old 0" in text and "old 1" not in text and "| 0.80 |" in text


@pytest.mark.parametrize("gpu, marks", [
    ("h200", "several devices"), ("h100", "several devices, H100")])
def test_table_of_the_docs_is_that_of_the_results(gpu, marks, tmp_path):
    docs = ROOT / "docs" / "design" / "many_measured.md"
    copy = tmp_path / "many_measured.md"
    copy.write_text(docs.read_text())
    many_table.main([str(ROOT / "benchs" / "results" / gpu),
                     "--docs", str(copy), "--marks", marks])
    assert copy.read_text() == docs.read_text()


def many_queries(make, ms, devices=1, kind="shards", **other):
    return make(ms, devices, kind=kind, **{"q": 10240} | other)


def test_short_table_has_shares_of_many_queries(write, tmp_path):
    mib = 1 << 20
    write("many.json", [
        many_queries(flat, 4.0), many_queries(flat, 8.0, n=2 * mib),
        many_queries(flat, 5.0, 2, n=2 * mib),
        many_queries(flat, 20.0, k=2000),
        many_queries(flat, 16.0, 4, n=4 * mib, k=2000),
        many_queries(flat, 36.0, n=8 * mib),
        many_queries(flat, 20.0, 2, n=8 * mib),
        many_queries(flat, 4.0, kind="replicas"),
        many_queries(flat, 4.1, 2, kind="replicas", q=20480),
        many_queries(flat, 6.0, 2, arrays="host"),
        many_queries(flat, 90.0, 2, arrays="host", method="faiss")])
    page = tmp_path / "page.md"
    page.write_text("<!-- several GPUs: begin -->\nold\n"
                    "<!-- several GPUs: end -->\n")
    many_table.main([str(tmp_path), "--short", str(page)])
    lines = page.read_text().splitlines()
    assert "old" not in lines
    for line in (
            "| vectors | GPUs | k = 10 | k = 2000 |",
            "| shards of 2^20 each | 2 | 0.80 |  |",
            "| shards of 2^20 each | 4 |  | 1.25 |",
            "| shards of 2^23 in all | 2 | 0.90 |  |",
            "| replicas of 2^20, as many queries each | 2 | 0.97 |  |",
            "| times as fast as FAISS's own, 1 cells |  | 15.0 to 15.0 |  |"):
        assert line in lines, line


def test_short_table_of_the_docs_is_that_of_the_results(tmp_path):
    docs = ROOT / "docs" / "using.md"
    copy = tmp_path / "using.md"
    copy.write_text(docs.read_text())
    gpu, of = re.search(
        r"`(h\d+)/many(?:_two)?(?:_ivf)?(?:_([0-9a-f]{7}))?\.json`",
        docs.read_text().split("several GPUs: begin")[1]).groups()
    many_table.main([str(ROOT / "benchs" / "results" / gpu), "--short",
                     str(copy), *(["--of", of] if of else [])])
    assert copy.read_text() == docs.read_text()


def test_short_table_of_a_later_run(write, tmp_path):
    write("many.json", [many_queries(flat, 36.0, n=8 << 20),
                        many_queries(flat, 20.0, 2, n=8 << 20)])
    write("many_0123456.json", [many_queries(flat, 36.0, n=8 << 20),
                                many_queries(flat, 18.0, 2, n=8 << 20)])
    assert "| shards of 2^23 in all | 2 | 0.90 |" in (
        many_table.short_content(tmp_path))
    later = many_table.short_content(tmp_path, "0123456")
    assert "| shards of 2^23 in all | 2 | 1.00 |" in later
    assert "many_0123456.json`" in later
    assert "0.90" in many_table.short_content(tmp_path, "9999999")
