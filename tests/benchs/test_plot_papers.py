"""benchs/plot_papers.py on results made up for the test."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import plot_papers  # noqa: E402

META = {"gpu": "NVIDIA H200", "driver": "580.1", "cuda": "13.0",
        "faiss": "1.7.3", "commit": "0123456789ab", "date": "2026-01-31",
        "read_bw_gbps": 4500.0}


def row(figure, method, k, ms, **other):
    base = {"bench": "papers", "figure": figure, "method": method,
            "rows": 8192, "cols": 1 << 15, "k": k, "sorted": 1, "ms": ms,
            "frac_read": 0.1 / ms}
    return base | other


def rows_of(figure):
    """A few rows of a figure, as bench_queues writes them."""
    if figure == "hanak_5.2":
        return [row(figure, m, k, ms) for k in (32, 64) for m, ms in
                (("bitonic_shared", 4.0), ("bitonic_shuffles", 3.0),
                 ("bitonic_registers", 2.0))]
    if figure == "hanak_5.3":
        return [row(figure, m, 32, 1.0)
                for m in ("bitonic_registers", "bitonic_buffered")]
    if figure == "hanak_5.4":
        return [row(figure, "bitonic_buffered", k, 1.0 / r, reads=r,
                    prefetch=p)
                for k in (32, 64) for r in (1, 8) for p in (0, 1)]
    if figure == "hanak_5.7":
        return [row(figure, "bits_partitioned", 32, 1.0, partitions=p,
                    rows=1, cols=1 << 27) for p in (4, 8)]
    if figure in ("hanak_5.10", "hanak_5.11"):
        return [row(figure, m, 4096, 1.0, sorted=s) for s in (0, 1)
                for m in ("sample_select", "radix_select")] + [
                    row(figure, "sort", 4096, 2.0)]
    if figure.startswith("tang"):
        return [row(figure, queue + rest, k, ms, threads_per_row=1, cols=n)
                for queue in ("insertion", "heap", "merge_aligned")
                for rest, ms in (("", 8.0), ("+buf+full+sort", 4.0),
                                 ("+hp4", 2.0), ("+buf+full+sort+hp4", 1.0))
                for k, n in ((32, 1 << 15), (256, 1 << 15), (256, 1 << 13))]
    if figure == "hanak_5.5":
        return [row(figure, "faiss_warp", k, 2.0) for k in (32, 64)] + [
            row(figure, "faiss_warp", k, 2.0 - k / size, thread_queue=size)
            for k in (32, 64) for size in (64, 128)]
    return [row(figure, m, k, ms) for k in (32, 64)
            for m, ms in (("bits", 0.3), ("faiss_warp", 2.0))]


@pytest.fixture
def save(tmp_path):
    def write(rows):
        path = tmp_path / "papers.json"
        path.write_text(json.dumps({"meta": META, "rows": rows}))
        return path
    return write


MEASURED = [name for name in plot_papers.FIGURES if name != "tang_9"] + [
    "tang_9a", "tang_9b"]


@pytest.mark.parametrize("figure", MEASURED)
def test_every_figure_is_drawn(save, figure):
    path = save(rows_of(figure))
    written = plot_papers.draw(path)
    name = plot_papers.TOGETHER.get(figure, figure)
    assert [p.name for p in written] == [f"papers_{name}.png",
                                         f"papers_{name}.svg"]
    assert written[0].read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in written[1].read_bytes()[:2000]


@pytest.mark.parametrize("figure", MEASURED)
def test_a_run_cut_short_is_drawn(save, figure):
    for count in (1, 2):
        assert len(plot_papers.draw(save(rows_of(figure)[:count]))) == 2


def test_speedup_is_base_over_row():
    series = plot_papers.speedups(
        rows_of("hanak_5.2"), lambda r: r["method"] == "bitonic_shared", "k",
        plot_papers.method, plot_papers.by_k)
    assert series == {"bitonic_shuffles": [(32, 4 / 3), (64, 4 / 3)],
                      "bitonic_registers": [(32, 2.0), (64, 2.0)]}


def test_rows_without_a_base_are_left_out():
    rows = rows_of("hanak_5.2")[1:3] + rows_of("hanak_5.2")[3:]
    series = plot_papers.speedups(
        rows, lambda r: r["method"] == "bitonic_shared", "k",
        plot_papers.method, plot_papers.by_k)
    assert [k for k, _ in series["bitonic_registers"]] == [64]


def test_rate_is_keys_by_time():
    assert plot_papers.rate(
        row("hanak_5.6", "bits", 32, 2.0, rows=1000, cols=4000)) == 2.0


def test_table_has_every_time_once():
    rows = [row("tang_table_1", "heap", 32, 1.25, threads_per_row=1),
            row("tang_table_1", "heap", 256, 2.5, threads_per_row=1),
            row("tang_table_1", "heap", 32, 0.5, threads_per_row=0)]
    columns, names, texts = plot_papers.table_cells(rows)
    assert names == ["heap", "heap (today)"]
    assert texts == [["1.25", "2.5"], ["0.5", ""]]
    assert len(columns) == 2


def test_long_times_have_no_exponent():
    assert [plot_papers.milliseconds(ms) for ms in (0.4506, 12.41, 2539.8)] == [
        "0.451", "12.4", "2540"]


def test_a_method_has_one_colour_in_all_panels():
    # The second shape lacks the method in the middle.
    rows = [row("hanak_5.11", m, 4096, 1.0, cols=n) for n in (1 << 15, 1 << 18)
            for m in ("radix_select", "bits_global", "sort")
            if (m, n) != ("bits_global", 1 << 18)]
    figure = plot_papers.draw_multi_pass(rows)
    colours = [{line.get_label(): line.get_color() for line in axis.lines}
               for axis in figure.axes]
    assert len(set(colours[0].values())) == 3
    assert colours[1] == {label: colours[0][label]
                          for label in ("Radix Select", "CUB sort")}


def test_the_best_thread_queue_stands_at_its_point():
    figure = plot_papers.draw_thread_queues(rows_of("hanak_5.5"))
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.texts] == ["64", "64"]
    best, default = axis.lines
    assert (best.get_ydata() > default.get_ydata()).all()
    # Without other sizes there is one line.
    rows = [r for r in rows_of("hanak_5.5") if "thread_queue" not in r]
    (axis,) = plot_papers.draw_thread_queues(rows).axes
    assert len(axis.lines) == 1 and not axis.texts


def test_the_legend_is_not_cut():
    rows = [row("hanak_5.10", m, k, 1.0, sorted=s) for s in (0, 1)
            for m in ("sample_select", "sample_select_two_stage")
            for k in (4096, 8192)]
    figure = plot_papers.draw_multi_pass(rows)
    plot_papers.add_legend(figure)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    width, height = figure.canvas.get_width_height()
    assert 0 <= box.x0 and box.x1 <= width
    assert 0 <= box.y0 and box.y1 <= height


def test_the_same_data_makes_the_same_files(save):
    path = save(rows_of("hanak_5.2"))
    first = [p.read_bytes() for p in plot_papers.draw(path)]
    assert [p.read_bytes() for p in plot_papers.draw(path)] == first


def test_unknown_figures_are_an_error(save):
    with pytest.raises(SystemExit, match="hanak_9.9"):
        plot_papers.draw(save([row("hanak_9.9", "bits", 32, 1.0)]))


def test_plot_of_nothing(save, capsys):
    assert plot_papers.main([str(save([]))]) == 0
    assert "no rows" in capsys.readouterr().out
