"""benchs/bench_range.py, with a program and a rival that only count, and rivals with
stand-ins for their packages."""

import json
import pathlib
import stat
import sys
import types

import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import bench_range  # noqa: E402
import range_rivals  # noqa: E402


def row(metric="l2", q=1, radius=2.0):
    return {"bench": "range", "method": "faiss_bits", "index": "flat",
            "metric": metric, "n": 10, "d": 4, "q": q, "selectivity": 0.01,
            "radius": radius, "results": 3, "ms": 0.5, "knn_ms": 0.1,
            "bound_ms": 0.2}


class Counts:
    METRICS = ("l2",)
    LEAST = 2
    made = []

    @staticmethod
    def versions():
        return {"counts": "1.0"}

    def __init__(self, torch, n, d, q, metric):
        self.made.append((n, d, q, metric))
        self.build_ms, self.q = 12.0, q

    def search(self, radius):
        return int(self.q * radius)


class PointsAlone(Counts):
    DIMENSIONS = (3,)


class Missing(Counts):
    @staticmethod
    def versions():
        raise ImportError("it is not here")


@pytest.fixture
def rivals(monkeypatch):
    nothing = lambda: None  # noqa: E731
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(synchronize=nothing, empty_cache=nothing),
        backends=types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=types.SimpleNamespace())))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Counts, "made", [])
    monkeypatch.setattr(
        bench_range, "RIVALS",
        {"counts": Counts, "missing": Missing, "points": PointsAlone})


def program(folder, rows):
    """A bench that writes these rows and its options."""
    path = folder / "program"
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "out = sys.argv[sys.argv.index('--out') + 1]\n"
        f"json.dump({{'meta': {{'args': sys.argv[1:]}}, 'rows': {rows!r}}}, "
        "open(out, 'w'))\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(folder, rows, *more):
    out = folder / "range.json"
    bench_range.main(
        ["--program", program(folder, rows), "--out", str(out), *more])
    return json.loads(out.read_text())


def test_a_row_for_every_cell(tmp_path, capsys, rivals):
    ours = [row(q=1), row(q=8), row(q=1, radius=3.0), row("ip")]
    data = run(tmp_path, ours, "--ns", "10")
    assert data["meta"]["args"][-2:] == ["--ns", "10"]
    assert data["meta"]["counts"] == "1.0"
    assert data["rows"][:4] == ours
    found = [(r["method"], r["q"], r["radius"], r["results"], r["build_ms"])
             for r in data["rows"][4:]]
    assert found == [("counts", 1, 2.0, 2, 12.0), ("counts", 1, 3.0, 3, 12.0),
                     ("counts", 8, 2.0, 16, 12.0)]
    assert not any("bound_ms" in r for r in data["rows"][4:])
    # Once for each shape, and not for a metric that it lacks.
    assert Counts.made == [(10, 4, 1, "l2"), (10, 4, 8, "l2")]
    assert "missing is left out: it is not here" in capsys.readouterr().out


def test_other_indexes_have_no_rivals_of_their_own(tmp_path, rivals):
    sss = {**row(), "index": "sss", "build_ms": 7.0}
    flat = {**row(), "build_ms": 1.0}
    data = run(tmp_path, [sss, flat], "--rivals", "counts")
    assert [r["method"] for r in data["rows"]] == ["faiss_bits"] * 2 + ["counts"]
    assert data["rows"][2]["build_ms"] == 12.0


def test_rivals_alone_replace_their_rows(tmp_path, rivals):
    first = run(tmp_path, [row()], "--rivals", "counts")
    out = tmp_path / "range.json"
    bench_range.main(["--out", str(out), "--rivals", "counts"])
    again = json.loads(out.read_text())
    assert [r["method"] for r in again["rows"]] == ["faiss_bits", "counts"]
    assert again["rows"][0] == first["rows"][0]


def test_a_rival_has_its_dimensions(tmp_path, rivals):
    points = {**row(), "d": 3}
    data = run(tmp_path, [row(), points], "--rivals", "points")
    assert [(r["method"], r["d"]) for r in data["rows"]] == [
        ("faiss_bits", 4), ("faiss_bits", 3), ("points", 3)]


def test_few_queries_and_few_results_come_first(tmp_path, monkeypatch, rivals):
    monkeypatch.setattr(Counts, "METRICS", ("l2", "ip"))
    ours = [{**row(m, q), "selectivity": share}
            for m in ("l2", "ip") for q in (8, 1) for share in (0.1, 0.01)]
    data = run(tmp_path, ours, "--rivals", "counts")
    assert [(r["q"], r["selectivity"], r["metric"]) for r in data["rows"][8:]] == [
        (q, share, m) for q in (1, 8) for share in (0.01, 0.1)
        for m in ("ip", "l2")]
    assert Counts.made == [(10, 4, 1, "ip"), (10, 4, 1, "l2"),
                           (10, 4, 8, "ip"), (10, 4, 8, "l2")]


def test_rivals_get_the_cells_that_are_named(tmp_path, monkeypatch, rivals):
    monkeypatch.setattr(Counts, "METRICS", ("l2", "ip"))
    ours = [{**row(m, q), "selectivity": share}
            for m in ("l2", "ip") for q in (1, 8) for share in (0.01, 0.1)]

    def found(data):
        return [(r["metric"], r["q"], r["selectivity"]) for r in data["rows"][8:]]

    data = run(tmp_path, ours, "--rivals", "counts",
               "--rival-cells", "l2:8:0.1,ip:1:")
    assert found(data) == [("ip", 1, 0.01), ("ip", 1, 0.1), ("l2", 8, 0.1)]
    # Rows of other cells stay when some are measured again.
    out = tmp_path / "range.json"
    bench_range.main(["--out", str(out), "--rivals", "counts",
                      "--rival-cells", ":8:0.1"])
    again = json.loads(out.read_text())
    assert again["rows"][:10] == data["rows"][:10]
    assert found(again)[2:] == [("ip", 8, 0.1), ("l2", 8, 0.1)]


def test_a_long_call_is_timed_once(tmp_path, monkeypatch, rivals):
    seconds = iter(range(100))  # each look at the clock is a second later
    monkeypatch.setattr(bench_range.time, "perf_counter", lambda: next(seconds))
    ours = [row(q=1), row(q=2)]
    data = run(tmp_path, ours, "--rivals", "counts", "--once-s", "0.5")
    # Not the very first, which loads what it needs.
    assert [r["calls"] for r in data["rows"][2:]] == [Counts.LEAST, 1]
    assert data["rows"][3]["ms"] == 1000
    data = run(tmp_path, ours, "--rivals", "counts", "--once-s", "1.5")
    assert [r["calls"] for r in data["rows"][2:]] == [Counts.LEAST] * 2


def test_limit_says_what_is_left_out(tmp_path, capsys, rivals):
    data = run(tmp_path, [row(q=1), row(q=2), row(q=3)], "--rivals", "counts",
               "--limit-s", "1e-9")
    assert len(data["rows"]) == 3
    assert "counts: 3 cells left out" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, message", [
    (["--rivals", "other"], "--rivals other: known are counts, missing, points"),
    (["--ns", "10"], "--ns 10: options of the program, without --program"),
    (["--rival-cells", "l2:x:"], "--rival-cells l2:x:: METRIC:QUERIES:SELECTIVITY"),
    (["--rival-cells", "l2:1"], "--rival-cells l2:1: METRIC:QUERIES:SELECTIVITY"),
    (["--rival-cells", "l2:7:"], "--rival-cells l2:7:: {'metric': 'l2', 'q': 7} is no cell"),
])
def test_bad_options(tmp_path, capsys, rivals, arguments, message):
    out = tmp_path / "range.json"
    out.write_text('{"meta": {}, "rows": []}')
    with pytest.raises(SystemExit):
        bench_range.main(["--out", str(out), *arguments])
    assert message in capsys.readouterr().err


def test_the_first_call_alone_is_timed_where_asked():
    calls = []
    ms, result, timed = bench_range.median_ms(
        lambda: calls.append(1) or len(calls), lambda: None, 0)
    assert calls == [1] and result == 1 and timed == 1 and ms >= 0
    _, result, timed = bench_range.median_ms(
        lambda: calls.append(1) or len(calls), lambda: None, 4, seconds=0)
    assert result == 6 and timed == 4  # one before


class Open3dIndex:
    """NearestNeighborSearch of numpy arrays, by float64; counts what is made."""

    made = []

    def __init__(self, points, index_dtype):
        self.points, self.dtype, self.radius = points, index_dtype, None

    def fixed_radius_index(self, radius):
        self.radius = radius
        self.made.append(radius)
        return True

    def fixed_radius_search(self, queries, radius, sort):
        assert radius == self.radius and sort is False
        squares = ((queries[:, None] - self.points[None]) ** 2).sum(2)
        rows, ids = (squares <= radius * radius).nonzero()
        lims = numpy.searchsorted(rows, numpy.arange(len(queries) + 1))
        return ids.astype(self.dtype), squares[rows, ids], lims


NO_TORCH = types.SimpleNamespace(
    cuda=types.SimpleNamespace(synchronize=lambda: None),
    utils=types.SimpleNamespace(
        dlpack=types.SimpleNamespace(to_dlpack=lambda x: x)))


@pytest.fixture
def open3d(monkeypatch):
    core = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True),
        Tensor=types.SimpleNamespace(from_dlpack=lambda x: x),
        nns=types.SimpleNamespace(NearestNeighborSearch=Open3dIndex),
        int32=numpy.int32)
    module = types.SimpleNamespace(core=core, __version__="9.8")
    monkeypatch.setitem(sys.modules, "open3d", module)
    monkeypatch.setattr(Open3dIndex, "made", [])
    points = numpy.random.default_rng(1).random((50, 3))
    monkeypatch.setattr(
        range_rivals, "uniform", lambda torch, n, d, q: [points[:n], points[:q]])
    return module


def test_open3d_makes_a_table_for_every_radius(open3d):
    rival = range_rivals.Open3dRange
    assert rival.versions() == {"open3d": "9.8"} and rival.DIMENSIONS == (3,)
    made = rival(NO_TORCH, 50, 3, 20, "l2")
    points = made.tensors[0]
    squares = ((points[:20, None] - points[None]) ** 2).sum(2)
    for radius in (0.04, 0.09, 0.09):
        assert made.search(radius) == (squares <= radius).sum() > 20
        lims, distances, ids = made.results(radius)
        assert lims[-1] == len(ids) == len(distances) and made.build_ms >= 0
        assert (distances <= radius).all() and ids.dtype == numpy.int32
    assert made.index.made == pytest.approx([0.2, 0.3])


def test_open3d_that_finds_nothing_is_an_error(open3d, monkeypatch):
    nothing = numpy.empty(0)
    monkeypatch.setattr(
        Open3dIndex, "fixed_radius_search",
        lambda self, queries, radius, sort: (nothing, nothing, nothing))
    made = range_rivals.Open3dRange(NO_TORCH, 50, 3, 20, "l2")
    with pytest.raises(RuntimeError, match="found 0 points near 16"):
        made.search(0.04)


def test_open3d_without_a_gpu_is_left_out(open3d):
    open3d.core.cuda.is_available = lambda: False
    with pytest.raises(ImportError, match="sees no GPU"):
        range_rivals.Open3dRange.versions()
