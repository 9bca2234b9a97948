"""The results of bench_select_sweep: what reads them."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import check  # noqa: E402
import merge  # noqa: E402
import result_file  # noqa: E402
import torch_topk  # noqa: E402

META = {"gpu": "NVIDIA H200", "commit": "0123456789ab", "date": "2026-01-31",
        "read_bw_gbps": 4000.0, "seed": 1234567890123}


def row(method, ms, **other):
    return {"bench": "select_sweep", "method": method, "rows": 1000,
            "cols": 4000, "stride": 4001, "k": 100, "largest": 1,
            "dtype": "float16", "order": "adversary_best", "ms": ms} | other


OURS = row("faiss_bits", 2.0, algorithm="sample_threshold", random_ms=1.0,
           cell=3, seed=77, sample_threads=256, sample_places=4,
           sample_parts=1, frac_io=0.5)


def lines(tmp_path, capsys, rows):
    path = tmp_path / "select_sweep.json"
    result_file.save(path, {"meta": META, "rows": rows})
    status = check.main([str(path)])
    return status, capsys.readouterr().out


def test_ours_is_raced_cell_by_cell(tmp_path, capsys):
    other = {"stride": 4000, "largest": 0}
    status, said = lines(tmp_path, capsys, [
        OURS, row("cub_sort", 3.0), row("raft_auto", 1.0, wrong=5),
        OURS | other, row("cub_sort", 1.0, **other)])
    assert status == 1 and "2 cells, 1 below 1x" in said
    # What has a wrong answer is no rival.
    assert "cub_sort         3 ms  1.50x" in said and "raft_auto" not in said
    assert "stride=4000 k=100 largest=0" in said


def test_a_wrong_answer_of_ours_is_none(tmp_path, capsys):
    status, said = lines(tmp_path, capsys, [
        OURS | {"wrong": 1}, row("cub_sort", 3.0)])
    assert status == 1 and "MISS" in said and "ours      missing" in said


def test_parts_of_one_seed_are_one_run(tmp_path):
    parts = []
    for name, rows, seed in (("a", [OURS], 1), ("b", [row("cub_sort", 3.0)], 1),
                             ("c", [row("cub_sort", 3.0)], 2)):
        parts.append(str(tmp_path / f"{name}.json"))
        result_file.save(parts[-1], {"meta": META | {"seed": seed}, "rows": rows})
    out = tmp_path / "out.json"
    assert merge.main([str(out), *parts[:2]]) == 0
    assert len(result_file.load(out)["rows"]) == 2
    assert merge.main([str(out), parts[0], parts[2]]) == 1


def test_parts_of_one_run_have_one_bandwidth(tmp_path):
    parts = []
    for name, one, read in (("a", OURS, 4000.0),
                            ("b", row("cub_sort", 3.0, frac_io=0.5), 4500.0)):
        parts.append(str(tmp_path / f"{name}.json"))
        result_file.save(
            parts[-1],
            {"meta": META | {"read_bw_gbps": read}, "rows": [one]})
    out = tmp_path / "out.json"
    assert merge.main([str(out), *parts]) == 0
    merged = result_file.load(out)
    assert merged["meta"]["read_bw_gbps"] == 4500.0
    moved = 1000 * (4000 * 2 + 100 * 10)  # 2-byte keys, 64-bit ids
    for one in merged["rows"]:
        share = moved / (4500.0 * 1e6) / one["ms"]
        assert one["frac_io"] == pytest.approx(share, rel=1e-4)


def test_torch_has_the_keys_of_the_cell():
    bench = torch_topk.bench_of([OURS])
    assert bench.arguments(4096, OURS, 2, "file") == (
        4096, b"float16", 1000, 4000, 100, 1, b"adversary_best", 79, 256, 4, 1,
        b"file")
    assert len(bench.argument_types) == len(bench.arguments(0, OURS, 0, ""))
    plain = {name: value for name, value in OURS.items()
             if not name.startswith("sample_")}
    assert bench.arguments(0, plain, 0, "")[-4:] == (0, 0, 1, b"")


def test_the_row_of_torch():
    bench = torch_topk.bench_of([OURS])
    added = torch_topk.measured_row(OURS, 4.0, META, bench)
    moved = 1000 * (4000 * 2 + 100 * 10)
    assert added == row("torch_topk", 4.0) | {
        "frac_io": pytest.approx(moved / 4e9 / 4.0, rel=1e-4)}
    assert torch_topk.missing_cells([OURS]) == [OURS]
    assert torch_topk.missing_cells([OURS, added]) == []
    assert [bench.repeats(ms) for ms in (0.1, 1, 5, 21)] == [15, 10, 3, 1]


def test_torch_on_the_cpu_is_checked(monkeypatch):
    """time_topk with clocks and memory of the host."""
    torch = pytest.importorskip("torch")

    class Event:
        def __init__(self, **_):
            pass

        def record(self):
            pass

        def synchronize(self):
            pass

        def elapsed_time(self, _):
            return 30.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty",
                        lambda shape, dtype, device: empty(shape, dtype=dtype))

    class Keys:
        bench = torch_topk.Sweep
        slices = [torch.tensor([[3.0, float("nan"), 1.0, float("inf")]] * 3)]

    assert torch_topk.time_topk(torch, Keys, 4, float("inf")) == (30.0, 1, 0)
    assert torch_topk.time_topk(torch, Keys, 4, 20) == (30.0, 0, 0)
    topk = torch.topk
    monkeypatch.setattr(torch, "topk", lambda keys, k, out, **o: [
        out[0].copy_(topk(keys, k, **o).values.roll(1)), out])
    assert torch_topk.time_topk(torch, Keys, 4, float("inf"))[2] == 2


def test_the_figure_is_of_right_rivals_and_long_cells():
    pytest.importorskip("matplotlib").use("Agg")
    import plot_sweep
    other = {"k": 7}
    rows = [OURS, row("cub_sort", 5.0), row("cub_topk", 1.0, wrong=2),
            OURS | other | {"ms": 0.02, "random_ms": 0.01},
            row("cub_sort", 0.01, **other)]
    assert [ratio for _, ratio in plot_sweep.races(rows)] == [2.5, 0.5]
    assert plot_sweep.order_ratios(rows) == {"adversary_best": [2.0]}
    assert len(plot_sweep.draw_sweep(rows).axes) == 2
