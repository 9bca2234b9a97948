"""The scripts of benchs/ on results made up for the test."""

import json
import math
import pathlib
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import export_vectors  # noqa: E402
import merge  # noqa: E402
import plot  # noqa: E402
import readme_table  # noqa: E402
import result_file  # noqa: E402
import torch_topk  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

META = {"gpu": "NVIDIA H200", "compute_capability": 90, "driver": "580.1", "cuda": "13.0",
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


def test_check_tells_powers_apart(save, capsys):
    row = {"bench": "metrics", "method": "faiss_bits", "n": 1 << 20, "d": 3,
           "q": 1, "k": 10, "metric": "L1", "ms": 1.0, "gdist_s": 1.0}
    rows = [row | more | method for more, ours in (
        ({}, 1.0), ({"metric": "Lp", "p": 0.5}, 1.0),
        ({"metric": "Lp", "p": 3}, 2.0)) for method in (
        {"ms": ours}, {"method": "faiss_flat", "ms": 4.0})]
    assert check.main([save(rows), "--min-speedup", "3"]) == 1
    out = capsys.readouterr().out
    assert "metric=Lp p=3 " in out and "3 cells, 1 below 3x" in out


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


def test_check_leaves_forced_rows_out(save):
    slow = dict(SELECT[0], ms=99.0, forced=1, algorithm="sort")
    assert check.main([save(SELECT[:2] + [slow])]) == 0


def test_select_panels_are_apart():
    half = select_row("faiss_bits", 10, 0.5, dtype="float16")
    panels = plot.select_panels(SELECT + [half])
    assert [len(lines) for _, lines in panels] == [3, 1]
    assert "float16" in panels[1][0] and "float16" not in panels[0][0]
    assert plot.order_panels(SELECT) == [
        ("64 x $2^{24}$, orders", {"descending": [(10, 9.0)]})]
    assert plot.order_panels(SELECT[5:]) == [], "nothing to compare with"


def test_speedups_leave_gaps():
    rows = FLAT + [flat_row("faiss_bits", 16, 1.0)]
    assert plot.speedups(rows, 10) == {(128, 1): 10.0, (128, 1024): 2.0}


@pytest.mark.parametrize("rows", [
    SELECT,
    SELECT[:1],
    [select_row(method, k, 1.0 + k / 1e4, order=order)
     for method in plot.LABELS for k in (10, 128, 1 << 24)
     for order in ("random", *plot.ORDER_STYLES)],
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


@pytest.mark.parametrize("rows", [[], [{"bench": "papers", "ms": 1.0}],
                                  [{"bench": "dropin", "ms_stock": 1.0}]])
def test_plot_of_nothing(save, capsys, rows):
    path = pathlib.Path(save(rows))
    assert plot.main([str(path)]) == 0
    assert not path.with_suffix(".png").exists()
    assert "no rows" in capsys.readouterr().out


# ---- targets ------------------------------------------------------------------

TARGETS = {
    "floors": [{"shapes": ["64x2^24"], "ks": [10], "frac_read": 0.9}],
    "orders": [{"shapes": ["64x2^24"], "ks": [10], "orders": ["nan"],
                "ratio": 1.25}],
    "speedups": [{"shapes": ["64x2^24"], "ks": [4096], "speedup": 2.0,
                  "rivals": ["raft_auto", "cub_sort"]}],
    "ahead_of_every_rival": 1.0,
}
REACHED = [
    select_row("faiss_bits", 10, 1.0),
    select_row("raft_auto", 10, 1.01),
    select_row("faiss_bits", 10, 1.24, order="nan"),
    select_row("faiss_bits", 4096, 2.0),
    select_row("raft_auto", 4096, 4.1),
    select_row("cub_sort", 4096, 9.0),
]


@pytest.fixture
def judge(save):
    def call(rows, targets=TARGETS):
        path = pathlib.Path(save(rows)).with_name("targets.json")
        path.write_text(json.dumps(targets))
        return check.main([save(rows), "--targets", str(path)])
    return call


def test_targets_that_are_reached(judge, capsys):
    assert judge(REACHED) == 0
    assert "5 targets, 0 missed" in capsys.readouterr().out


@pytest.mark.parametrize("place, change", [
    (0, {"frac_read": 0.899}),
    (0, {"ms": 1.02}),  # behind raft_auto
    (2, {"ms": 1.26}),
    (2, {"order": "few"}),  # missing
    (4, {"ms": 3.9}),
    (5, {"method": "cub_topk"}),  # a rival is missing
    (3, {"method": "faiss_warp"}),  # ours is missing
    (3, {"forced": 1, "algorithm": "sort"}),
])
def test_each_target_can_be_missed(judge, capsys, place, change):
    rows = [dict(row, **change) if i == place else row
            for i, row in enumerate(REACHED)]
    assert judge(rows) == 1
    assert "MISS" in capsys.readouterr().out


def test_published_targets_are_well_formed():
    published = json.loads((ROOT / "benchs/select_targets.json").read_text())
    results = check.targets.check([], published)
    assert len(results) == 42 + 6 * 3 * 6 + 2 * 3 + 5
    assert not any(reached for *_, reached, _ in results)


def ivf_row(method, ms, **fields):
    return {"bench": "ivf", "method": method, "index": "ivf_sq8",
            "data": "uniform", "n": 100, "d": 8, "nlist": 1024, "nprobe": 8,
            "q": 10240, "k": 10, "pairs": 9, "ms": ms, **fields}


IVF_TARGET = {"ivf": [{"index": "ivf_sq8", "nlist": 1024, "nprobe": 8,
                       "q": 10240, "ks": [10], "speedup": 10}]}


@pytest.mark.parametrize("change, missed", [
    ({}, 0), ({"ms": 9.9}, 1), ({"nprobe": 32}, 1), ({"index": "ivf_flat"}, 1),
    ({"data": "clustered"}, 1), ({"ms": None}, 1)])
def test_targets_of_lists(judge, change, missed):
    rows = [ivf_row("faiss_bits", 1.0), ivf_row("faiss", 10.1, **change)
            if "ms" not in change else ivf_row("faiss", **change)]
    assert judge(rows, IVF_TARGET) == missed


def test_published_targets_of_lists_are_well_formed():
    published = json.loads((ROOT / "benchs/ivf_targets.json").read_text())
    results = check.targets.check([], published)
    assert len(results) == 2 * 3 * 2 + 2 * 2
    assert not any(reached for *_, reached, _ in results)


@pytest.mark.parametrize("ms, noise, status", [
    (1.04, [], 1), (1.04, ["--noise", "1.05"], 0), (1.06, ["--noise", "1.05"], 1),
    (1.06, ["--noise-ms", "0.07"], 0), (1.06, ["--noise-ms", "0.05"], 1)])
def test_check_of_lists_knows_noise(save, ms, noise, status):
    path = save([ivf_row("faiss_bits", ms), ivf_row("faiss", 1.0, pairs=8)])
    assert check.main([path, *noise]) == status
    assert check.main([path, *noise, "--index", "ivf_sq8"]) == status


# ---- merging and torch ---------------------------------------------------------


def test_merge_takes_the_later_row_and_one_bandwidth(save):
    first = save([select_row("faiss_bits", 10, 1.0),
                  select_row("faiss_bits", 10, 7.0, forced=1, algorithm="sort")],
                 "a.json")
    second = pathlib.Path(save([select_row("faiss_bits", 10, 2.0),
                                select_row("raft_auto", 10, 3.0)], "b.json"))
    data = json.loads(second.read_text())
    data["meta"]["read_bw_gbps"] = 4600.0
    data["meta"]["raft"] = "26.10.0"
    result_file.save(second, data)
    out = str(second.with_name("out.json"))
    assert merge.main([out, first, str(second)]) == 0
    merged = result_file.load(out)
    assert merged["meta"] == META | {"read_bw_gbps": 4600.0, "raft": "26.10.0"}
    assert [row["ms"] for row in merged["rows"]] == [2.0, 7.0, 3.0]
    share = 64 * 2**24 * 4 / 4600e6 / 2.0
    assert merged["rows"][0]["frac_read"] == pytest.approx(share, rel=1e-4)


def test_merge_of_rows_without_a_method(save):
    def row(index, ms):
        return {"bench": "dropin", "index": index, "n": 9, "d": 4, "q": 1, "k": 1,
                "ms_stock": 2 * ms, "ms_dropin": ms, "ids_equal": True}
    first = save([row("flat_l2", 1.0), row("ivf_pq", 2.0)], "a.json")
    second = save([row("ivf_pq", 3.0), row("flat_ip", 4.0)], "b.json")
    out = str(pathlib.Path(first).with_name("out.json"))
    assert merge.main([out, first, second]) == 0
    rows = result_file.load(out)["rows"]
    assert [r["ms_dropin"] for r in rows] == [1.0, 3.0, 4.0]


def test_merge_tells_the_cells_of_papers_by_all_they_say(save):
    def row(ms, **fields):
        return {"bench": "papers", "figure": "hanak_5.7", "method": "bits",
                "rows": 1, "cols": 2**27, "k": 32, "sorted": 1, **fields,
                "ms": ms, "frac_read": 0.1}
    first = save([row(1.0, partitions=4), row(2.0, partitions=8)], "a.json")
    second = save([row(3.0, partitions=8), row(4.0)], "b.json")
    out = str(pathlib.Path(first).with_name("out.json"))
    assert merge.main([out, first, second]) == 0
    rows = result_file.load(out)["rows"]
    assert [r["ms"] for r in rows] == [1.0, 3.0, 4.0]
    share = 2**27 * 4 / (META["read_bw_gbps"] * 1e6)
    assert rows[0]["frac_read"] == pytest.approx(share, rel=1e-4)


@pytest.mark.parametrize("field", ["commit", "gpu", "date", "driver"])
def test_merge_refuses_parts_of_two_runs(save, capsys, field):
    first = save(SELECT, "a.json")
    second = pathlib.Path(save(SELECT, "b.json"))
    data = json.loads(second.read_text())
    data["meta"][field] = "other"
    result_file.save(second, data)
    out = second.with_name("out.json")
    assert merge.main([str(out), first, str(second)]) == 1
    assert field in capsys.readouterr().err and not out.exists()


def test_saved_files_keep_their_form(save, tmp_path):
    path = tmp_path / "new.json"
    result_file.save(path, {"meta": META, "rows": SELECT})
    assert result_file.load(path) == {"meta": META, "rows": SELECT}
    assert len(path.read_text().splitlines()) == len(SELECT) + 3


def test_torch_gets_the_cells_that_it_lacks():
    rows = SELECT + [
        select_row("torch_topk", 2048, 4.0),
        select_row("faiss_bits", 99, 4.0, forced=1, algorithm="sort")]
    cells = [(row["k"], row["order"]) for row in torch_topk.missing_cells(rows)]
    assert cells == [(10, "random"), (10, "descending")]
    bench = torch_topk.bench_of(rows)
    assert [bench.repeats(ms) for ms in (0.1, 3, 20, 150, 400)] == \
        [51, 20, 7, 3, 1]
    assert bench.limit(rows[0], 100) == math.inf
    assert bench.limit(rows[0] | {"order": "few"}, 100) == 100


# ---- the README's table and the vectors -----------------------------------------


def test_readme_names_the_best_rival(save, tmp_path):
    rows = [select_row("faiss_bits", 10, 1.0), select_row("faiss_warp", 10, 8.0),
            select_row("raft_auto", 10, 2.0)]
    save(rows, "select.json")
    save(FLAT, "flat.json")
    text = readme_table.section(tmp_path)
    assert "| 64 x 2^24 | 10 | random | 1 ms | 0.95 " \
        "| raft_auto, 2 ms | 2.0 | 8 ms | 8.0 |" in text
    assert "faiss_warp, raft_auto" in text
    # Each table names its own run.
    assert text.count("2026-01-31, commit 0123456789") == 2
    # Lists, of which a cell was not raced.
    cell = {"bench": "ivf", "n": 1 << 20, "d": 128, "nlist": 1024, "nprobe": 32,
            "q": 10240, "k": 10}
    save([cell | {"index": "ivf_flat", "method": "faiss_bits", "ms": 2.0},
          cell | {"index": "ivf_flat", "method": "faiss", "ms": 50.0},
          cell | {"index": "ivf_sq8", "method": "faiss_bits", "ms": 1.0},
          cell | {"index": "ivf_sq8", "method": "faiss", "ms": 9.0, "k": 100}],
         readme_table.LISTS)
    text = readme_table.section(tmp_path)
    assert "| 1,024 | 32 | 10,240 | 2 ms, 50 ms, **25.0** | - | - |" in text
    assert text.count("2026-01-31, commit 0123456789") == 3


@pytest.mark.parametrize("suffix, size", [(".bvecs", 1), (".fvecs", 4)])
def test_vectors_are_records(tmp_path, suffix, size):
    np = export_vectors.np
    np.save(tmp_path / "in.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    out = tmp_path / f"out{suffix}"
    assert export_vectors.main([str(tmp_path / "in.npy"), str(out)]) == 0
    record = 4 + 3 * size
    data = out.read_bytes()
    assert len(data) == 2 * record
    values = struct.unpack("<i3B" if size == 1 else "<i3f", data[record:])
    assert values == (3, 3, 4, 5)


def test_vectors_that_do_not_fit(tmp_path):
    np = export_vectors.np
    with pytest.raises(ValueError, match="uint8"):
        export_vectors.write(np.array([[0.5]]), str(tmp_path / "x.bvecs"))
    with pytest.raises(ValueError, match="x.txt"):
        export_vectors.write(np.array([[1.0]]), str(tmp_path / "x.txt"))
