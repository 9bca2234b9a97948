"""benchs/cpu: what is read out of a result, on results made up for the test."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchs"), str(ROOT / "benchs" / "cpu")]
sys.dont_write_bytecode = True

import check_cpu  # noqa: E402
import flat_cells  # noqa: E402
import merge  # noqa: E402
import paper_model  # noqa: E402
import plot_cpu  # noqa: E402
import table_5  # noqa: E402

META = {"cpu": "AMD EPYC", "cores": 2, "threads": 2, "faiss": "1.7.3",
        "commit": "0123456789ab", "date": "2026-01-31", "peak_gflops": 200.0,
        "peak_gflops_float64": 100.0, "read_bw_gbps": 32.0,
        "model_operations_per_second": 1e11, "model_seconds_per_value": 2e-10,
        "model_seconds_per_access": 1e-8}
RIVALS = ("faiss_cpu_173", "faiss_cpu_1151")


def row(method, ms, n=8192, d=16, q=8192, k=16, **other):
    base = {"bench": "flat_cpu", "method": method, "n": n, "d": d, "q": q,
            "k": k, "metric": "L2", "dtype": "float32", "ms": ms,
            "gflops": 2e-6 * n * d * q / ms, "rounds": 5, "least_ms": ms}
    if method == "faiss_bits":
        base |= {"variant": "buffered", "predicted_ms": 0.9 * ms}
    if method == "gemm_heap":
        base |= {"collect_ms": 0.5, "gemm_ms": ms / 2, "norms_ms": ms / 8,
                 "heap_ms": 3 * ms / 8 - 0.5}
    return base | other


def forced(variant, ms, **other):
    return row("faiss_bits", ms, variant=variant, forced=1, **other)


def whole_result(slower=3.5):
    """A row for all that bench_flat_cpu.py measures; FAISS `slower`."""
    rows = []
    for cell, parties in flat_cells.cells_of(flat_cells.GROUPS).items():
        at = cell._asdict()
        base = cell.gflop / 0.19 + 1e-7 * cell.q * cell.k
        rows.append(row("faiss_bits", base, **at))
        if cell.q == 1:
            rows[-1]["read_ms"] = base / 1.2
        if "variants" in parties:
            rows += [forced("buffered", base, **at),
                     forced("var1", base * (0.98 + cell.k / 1e4), **at),
                     forced("var6", base * 1.3, **at)]
        if "faiss" in parties:
            rows += [row(name, base * slower * (1 + place), **at)
                     for place, name in enumerate(RIVALS)]
        if "gemm" in parties:
            rows.append(row("gemm_heap", 4 * base, **at))
        if "scale" in parties:
            rows.append(row("numpy", 0.1, **at))  # no rival, however fast
    return {"meta": META, "rows": rows}


@pytest.fixture
def save(tmp_path):
    def write(data, name="flat.json"):
        path = tmp_path / name
        path.write_text(json.dumps(data))
        return path
    return write


# ---- cells ------------------------------------------------------------------


def test_every_target_is_measured():
    targets = json.loads((ROOT / "benchs/cpu/flat_targets.json").read_text())
    cells = {("flat_cpu", *((field, getattr(cell, field)) for field in
                            ("n", "d", "q", "k", "metric", "dtype"))): parties
             for cell, parties in flat_cells.cells_of(flat_cells.GROUPS).items()}
    for name in ("speedups", "geometric_means", "reads", "peaks"):
        needed = {"ours"} if name == "peaks" else {"ours", "faiss"}
        assert targets[name]
        for target in targets[name]:
            for cell in check_cpu.cells_of_target(target):
                assert needed <= cells[cell]
    forced = sum("variants" in parties for parties in cells.values())
    assert forced >= targets["model"]["least_cells"]


def test_cells_of_several_groups_stand_once():
    cells = flat_cells.cells_of(["paper", "variants"])
    both = cells[flat_cells.Cell(8192, 16, 8192, 128)]
    assert both == {"ours", "faiss", "gemm", "scale", "variants"}
    assert len(cells) < sum(len(flat_cells.cells_of([group]))
                            for group in ("paper", "variants"))


def test_groups_and_filters():
    assert all(cell.q in (1, 10, 1000) for cell in
               flat_cells.cells_of(["large"]))
    cells = flat_cells.keep(flat_cells.cells_of(["large"]), n=[100_000], d=[16],
                            q=[], k=[1, 10], metric=["L2"], dtype=[])
    assert len(cells) == 6
    assert all("faiss" not in parties for cell, parties in
               flat_cells.cells_of(["metrics"]).items()
               if cell.metric == "cosine")


def test_memory_of_a_cell():
    cell = flat_cells.Cell(1_000_000, 768, 1, 10)
    assert flat_cells.bytes_needed(cell, {"ours"}) < 7e9
    assert flat_cells.bytes_needed(cell, {"ours", "faiss"}) > 9e9


# ---- targets ----------------------------------------------------------------


def test_a_result_that_reaches_all(save, capsys):
    assert check_cpu.main([str(save(whole_result()))]) == 0
    assert " 0 missed" in capsys.readouterr().out


def missed(data):
    targets = json.loads(check_cpu.TARGETS.read_text())
    return [line for line in check_cpu.check(data, targets) if not line.reached]


def changed(data, change, **which):
    """The result with some rows of ours (not forced) changed."""
    rows = [dict(r, **change) if r["method"] == "faiss_bits"
            and not r.get("forced")
            and all(r[field] == value for field, value in which.items()) else r
            for r in data["rows"]]
    return {"meta": data["meta"], "rows": rows}


def test_a_slow_cell_is_missed():
    lines = missed(changed(whole_result(), {"ms": 1e5}, n=100_000, q=10, k=100,
                           d=64))
    assert {line.what for line in lines} == {"over faiss_cpu_173",
                                             "ahead of faiss_cpu_173"}
    assert all("n=100000 d=64 q=10 k=100" in line.cell for line in lines)


@pytest.mark.parametrize("slower, what", [
    (2.9, {"over faiss_cpu_173"}),  # d = 16 wants three times
    (1.9, {"over faiss_cpu_173", "geometric mean"}),
    (0.9, {"over faiss_cpu_173", "geometric mean", "ahead of faiss_cpu_173"}),
])
def test_speedups_that_are_too_small(slower, what):
    assert {line.what for line in missed(whole_result(slower))} == what


def test_the_faster_faiss_counts_and_both_are_needed():
    data = whole_result()
    lines = check_cpu.check(data, {"ahead_of_every_faiss": 1.0})
    assert {line.what for line in lines} == {"ahead of faiss_cpu_173"}
    cell = {"n": 8192, "q": 8192, "d": 16, "k": 128}
    data["rows"] = [r for r in data["rows"] if not (
        r["method"] == "faiss_cpu_1151"
        and all(r[field] == value for field, value in cell.items()))]
    assert [(line.value, line.what) for line in missed(data)] == [
        (None, "over FAISS")]


def test_a_run_without_one_of_the_rivals_is_missed():
    data = whole_result()
    data["rows"] = [r for r in data["rows"] if r["method"] != "faiss_cpu_1151"]
    lines = missed(data)
    assert {line.what for line in lines} == {"over FAISS", "geometric mean"}
    assert all(line.value is None for line in lines)


def test_few_cells_say_nothing_of_the_model():
    rows = [row("faiss_bits", 1.0), forced("buffered", 1.0),
            forced("var1", 2.0)]
    (line,) = check_cpu.check({"meta": META, "rows": rows}, {
        "model": {"ratio": 1.1, "share": 0.9, "least_cells": 2}})
    assert line.value is None and not line.reached


def test_reads_and_peaks_can_be_missed():
    data = changed(whole_result(), {"read_ms": 1e-3}, n=1_000_000, q=1, d=16)
    assert [line.what for line in missed(data)] == ["over one read"] * 4
    data = changed(whole_result(), {"gflops": 149.9}, n=8192, d=512, k=16)
    assert [line.what for line in missed(data)] == ["of the FMA peak"]
    data = whole_result()
    data["rows"] = [r for r in data["rows"] if r["k"] != 1 or r["q"] != 1]
    assert any(line.what == "over one read" and line.value is None
               for line in missed(data))


def test_the_model_is_judged_by_forced_times():
    rows = [row("faiss_bits", 99.0), forced("buffered", 1.0),
            forced("var1", 1.0 / 1.2), forced("var6", 9.0),
            row("faiss_bits", 0.1, k=128), forced("buffered", 1.05, k=128),
            forced("var1", 1.0, k=128),
            row("faiss_bits", 1.0, k=512)]  # nothing forced: not judged
    ratios = check_cpu.model_ratios(rows)
    assert sorted(r[:2] + (round(r[2], 3),) for r in ratios.values()) == [
        ("buffered", "var1", 1.05), ("buffered", "var1", 1.2)]
    lines = check_cpu.check({"meta": META, "rows": rows},
                            {"model": {"ratio": 1.1, "share": 0.9}})
    assert [(line.value, line.reached) for line in lines] == [
        (pytest.approx(1.2), True), (0.5, False)]


def test_nothing_measured_is_missed(save):
    assert check_cpu.main([str(save({"meta": META, "rows": []}))]) == 1


# ---- drawings ---------------------------------------------------------------

ALL_FILES = ["flat", "flat_figure_4", "flat_figure_5", "flat_figure_6"]


def test_everything_is_drawn(save):
    path = save(whole_result())
    names = [p.name for p in plot_cpu.draw(path)]
    assert names == [f"{stem}.{end}" for stem in ALL_FILES
                     for end in ("png", "svg")] + ["flat_table_5.md"]
    assert path.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in path.with_suffix(".svg").read_bytes()[:2000]


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_a_run_cut_short_is_drawn(save, count):
    data = whole_result()
    data["rows"] = data["rows"][:count]
    plot_cpu.draw(save(data))


def test_other_benches_are_not_drawn(save, capsys):
    path = save({"meta": META, "rows": [{"bench": "flat", "ms": 1.0}]})
    assert plot_cpu.main([str(path)]) == 0
    assert "no rows" in capsys.readouterr().out


@pytest.mark.parametrize("first, second, at", [
    ([9, 8, 3, 2], [1, 2, 4, 5], 8),  # between 4 and 16: 8
    ([9, 9, 9, 9], [1, 1, 1, 1], None),
    ([1, 1, 1, 1], [9, 9, 9, 9], None),
    ([9, 1, 9, 1], [5, 5, 5, 5], (16 * 64) ** 0.5),  # for good
])
def test_crossing(first, second, at):
    ks = (1, 4, 16, 64)
    assert plot_cpu.crossing(list(zip(ks, first)), list(zip(ks, second))) == (
        at if at is None else pytest.approx(at))


def test_predictions_are_of_the_same_work():
    assert plot_cpu.predicted(row("faiss_bits", 10.0)) == pytest.approx(
        row("faiss_bits", 10.0)["gflops"] / 0.9)


# ---- Table 5 ----------------------------------------------------------------


def test_table_5_by_hand():
    rows = [row("faiss_bits", 20.0, k=1), row("faiss_bits", 25.0, k=128),
            row("gemm_heap", 120.0, k=128), row("faiss_cpu_173", 250.0, k=128),
            row("gemm_heap", 120.0, k=512),  # ours is missing
            forced("var6", 1.0, k=128)]
    text = table_5.table({"meta": META, "rows": rows})
    lines = text.splitlines()
    assert len(lines) == 5 and "AMD EPYC" in lines[0]
    assert lines[-1] == ("| 16 | 128 | 0.5 + 60 + 15 | 44.5 | **120** | 20 | 5 "
                         "| **25** | buffered | 250 |")
    assert lines[2].count("|") == lines[3].count("|") == lines[4].count("|")


def test_table_5_of_nothing():
    assert table_5.table({"meta": META, "rows": []}) == ""


# ---- the paper's model -------------------------------------------------------


def test_model_of_algorithm_2_1():
    at = [paper_model.gemm_heap_seconds(META, 8192, 8192, d, 16)
          for d in (16, 64, 1024)]
    assert at == sorted(at)
    assert (paper_model.gemm_heap_seconds(META, 8192, 8192, 16, 2048)
            > paper_model.gemm_heap_seconds(META, 8192, 8192, 16, 16))
    # Many dimensions: the products alone, to within a tenth.
    products = 2 * 8192**2 * 8192 / (META["model_operations_per_second"] * 2)
    assert paper_model.gemm_heap_seconds(
        META, 8192, 8192, 8192, 16) == pytest.approx(products, rel=0.1)


# ---- merging ----------------------------------------------------------------


def test_merge_keeps_forced_variants_apart(save, tmp_path):
    first = save({"meta": META, "rows": [
        row("faiss_bits", 1.0), forced("var1", 2.0), forced("var6", 3.0)]},
        "a.json")
    second = save({"meta": META | {
        "peak_gflops": 210.0, "model_seconds_per_value": 3e-10},
        "rows": [forced("var6", 4.0)]}, "b.json")
    out = tmp_path / "out.json"
    assert merge.main([str(out), str(first), str(second)]) == 0
    data = json.loads(out.read_text())
    assert [r["ms"] for r in data["rows"]] == [1.0, 2.0, 4.0]
    assert data["meta"] == META | {"peak_gflops": 210.0}
