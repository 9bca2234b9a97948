"""Figures 3 c and 5 and Table II of Barrientos et al. 2012, and the sums of a
profiler's counts, on results made up for the test."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import metric_transactions  # noqa: E402
import plot_metric_space  # noqa: E402
import plot_metric_stages  # noqa: E402

META = {"gpu": "NVIDIA H200", "driver": "580.1", "cuda": "13.0",
        "faiss": "1.7.3", "commit": "0123456789ab", "date": "2026-01-31",
        "read_bw_gbps": 4500.0}


def write(path, rows):
    path.write_text(json.dumps({"meta": META, "rows": rows}))
    return path


def stages_row(stages, n, ms, shards=2, share=0.01, where="gpu"):
    return {"bench": "metric_stages", "method": "faiss_bits",
            "index": "list_of_clusters", "where": where, "stages": stages,
            "shards": shards, "devices": min(shards, 2), "peers": 1,
            "threads": 8 if where == "cpu" else 0, "data": "clustered",
            "metric": "L2", "n": n, "d": 16, "q": 2000, "selectivity": share,
            "radius": 0.1, "ms": ms, "results": 5, "evaluations": 0.5}


def test_stages(tmp_path, capsys):
    rows = []
    for n in (1000, 2000):
        rows += [stages_row("one device", n, 8.0, 1),
                 stages_row("1", n, 4.0), stages_row("1.5", n, 5.0),
                 stages_row("2", n, 16.0),
                 stages_row("openmp", n, 80.0, 0, where="cpu")]
    rows += [stages_row("one device", 2000, 3.0, 1, 0.001),
             stages_row("1", 2000, 2.0, 2, 0.001)]
    path = write(tmp_path / "metric_stages.json", rows)
    plot_metric_stages.main(path)
    for name in ("figure_5", "table_2"):
        for kind in ("png", "svg"):
            drawn = tmp_path / f"metric_stages_{name}.{kind}"
            assert drawn.stat().st_size > 1000
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head == (
        "| data | queries | in range | 1 GPU | 1-stage, 2 shards on 2 GPUs | "
        "1.5-stage, 2 shards on 2 GPUs | 2-stage, 2 shards on 2 GPUs | "
        "8 threads of the CPU |")
    assert lines[0] == (
        "| clustered, 1,000 x 16 | 2,000 | 1% | 8 ms, 50% | 4 ms, 50% | "
        "5 ms, 50% | 16 ms, 50% | 80 ms, 50% |")
    assert lines[2].endswith("| 0.1% | 3 ms, 50% | 2 ms, 50% | - | - | - |")


def cell_row(index, mapping, mark):
    return {"bench": "range", "method": "faiss_bits", "index": index,
            "mapping": mapping, "settings": "", "references": 1,
            "data": "sift", "metric": "L2", "n": 100, "d": 8, "q": 10,
            "selectivity": 0.01, "radius": 1, "threads": 1, "results": 3,
            "evaluations": 0.25, "mark": mark}


METRICS = list(metric_transactions.METRICS)


def kernel(number, name, grid, values):
    counts = ",".join(f'"{value:,}"' for value in values)
    return f'"{number}","{name}","{grid}",{counts}'


def profiled(*kernels):
    head = '"ID","Kernel Name","Grid Size",' + ",".join(
        f'"{metric}"' for metric in METRICS)
    units = '"","","",' + ",".join('"sector"' for _ in METRICS)
    return ["==PROF== Connected", head, units, *kernels]


def test_transactions(tmp_path, capsys):
    indexes = list(plot_metric_space.INDEXES)
    rows = [cell_row(index, mapping, 1 + i) for i, (index, mapping) in
            enumerate((index, mapping) for index in indexes
                      for mapping in ("group_major", "query_major"))]
    kernels = []
    for row in rows:
        mark = row["mark"]
        kernels += [
            kernel(2, "profileMark()", f"({mark}, 1, 1)", (7, 7, 7, 7)),
            kernel(3, "scan<2>(int)", "(9, 1, 1)", (1000 * mark, 20, 3, 4)),
            kernel(4, "sort", "(1, 1, 1)", (10, 1, 1, 1))]
    cells = write(tmp_path / "cells.json", rows)
    (tmp_path / "kernels.csv").write_text("\n".join(profiled(*kernels)))
    out = tmp_path / "metric_space_transactions.json"
    assert metric_transactions.main(
        [str(cells), str(tmp_path / "kernels.csv"), "--out", str(out)]) == 0
    report = json.loads(out.read_text())
    assert report["meta"] == META
    for row, got in zip(rows, report["rows"]):
        assert got["l2_reads"] == 1000 * row["mark"] + 10
        assert (got["l2_writes"], got["memory_reads"], got["memory_writes"],
                got["kernels"]) == (21, 4, 5, 2)
        assert "mark" not in got and got["index"] == row["index"]
    plot_metric_space.main(out)
    drawn = tmp_path / "metric_space_transactions_figure_3c.png"
    assert drawn.stat().st_size > 1000
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(rows)
    assert lines[2].startswith("| sift, 100 x 8, 10 queries | 1% | brute force")


@pytest.mark.parametrize("kernels, message", [
    ((kernel(1, "sort", "(1, 1, 1)", (1, 1, 1, 1)),), "before any mark"),
    ((kernel(1, "profileMark()", "(1, 1, 1)", (0, 0, 0, 0)),), "no kernel"),
    ((kernel(1, "profileMark()", "(1, 1, 1)", (0, 0, 0, 0)),
      kernel(2, "profileMark()", "(1, 1, 1)", (0, 0, 0, 0))), "two cells"),
    ((kernel(1, "profileMark()", "(1, 1, 1)", (0, 0, 0, 0)),
      kernel(2, "sort", "(1, 1, 1)", (1, 1, 1, 1)),
      kernel(3, "profileMark()", "(2, 1, 1)", (0, 0, 0, 0))), "no row")])
def test_marks_that_do_not_fit(kernels, message):
    report = {"meta": META, "rows": [cell_row("sss", "group_major", 1)]}
    with pytest.raises(ValueError, match=message):
        metric_transactions.summed(
            report, metric_transactions.kernels_of(profiled(*kernels)))


def test_the_metrics_are_printed(capsys):
    assert metric_transactions.main(["--metrics"]) == 0
    assert capsys.readouterr().out.strip().split(",") == METRICS


def test_data_of_several_dimensions_are_named_apart():
    rows = [{"data": "sift", "d": 128}, {"data": "made", "d": 4},
            {"data": "made", "d": 8}]
    named = plot_metric_space.named_by_dimension(rows)
    assert [row["data"] for row in named] == ["sift", "made, d = 4", "made, d = 8"]
    assert rows[1]["data"] == "made"
