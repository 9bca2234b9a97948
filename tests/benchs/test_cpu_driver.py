"""benchs/cpu: the driver and its workers, with searches of numpy for libraries."""

import io
import json
import pathlib
import sys
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchs"), str(ROOT / "benchs" / "cpu")]
sys.dont_write_bytecode = True

import bench_flat_cpu as driver  # noqa: E402
import bench_worker  # noqa: E402
import flat_cells  # noqa: E402
import turns  # noqa: E402
from worker_process import WorkerError  # noqa: E402

# ---- the worker -------------------------------------------------------------


class Numpy(bench_worker.Worker):
    """Brute force; what is wrong, and slow, can be set."""

    names, wrong, seconds = ("faiss_cpu_173",), (), 0

    def __init__(self):
        super().__init__(1)

    def methods(self):
        return {"methods": list(self.names), "about": {self.names[0]: "1"}}

    def search(self, method, variant, q, k, D, I):
        time.sleep(self.seconds)
        queries = self.queries[:q].astype(np.float64)
        matrix = np.square(queries[:, None] - self.vectors[None]).sum(2)
        order = np.argsort(matrix, axis=1, kind="stable")
        order = order[:, 1:] if method in self.wrong else order
        I[:] = order[:, :k]
        D[:] = np.take_along_axis(matrix, I, 1)
        if method == "gemm_heap":
            return {"collect_ms": 1, "gemm_ms": 2, "norms_ms": 3, "heap_ms": 4}
        return None


class NumpyNative(Numpy):
    names = ("faiss_bits", "gemm_heap")

    compare = bench_worker.Native.compare
    verify = bench_worker.Native.verify

    def methods(self):
        about = {"faiss": "1.7.3", "blas": "none", "targets": "AVX2",
                 "model": {"operations_per_second": 1e11}}
        return {"methods": list(self.names), "about": about}

    def plan(self, q, k, variant="auto"):
        name = "buffered" if variant == "auto" else variant
        return {"variant": name, "plan": f"{name}, as planned",
                "seconds": 1e-3, "predicted_ms": {"buffered": 1, "var1": 2}}

    def peak(self, dtype):
        return {"gflops": 200.0}

    def bandwidth(self):
        return {"gbps": 30.0}

    def read(self, calls):
        return {"ms": [0.5] * calls}


class Told:
    """WorkerProcess without a process: requests and replies as lines."""

    def __init__(self, kind, python, threads, *arguments):
        self.kind = kind
        self.worker = {"native": NumpyNative, "wheel": Numpy,
                       "before": type("B", (Numpy,),
                                      {"names": ("faiss_bits_before",)}),
                       "scale": type("S", (Numpy,), {"names": ("numpy",)})
                       }[kind]()
        self.process = type("P", (), {"poll": staticmethod(lambda: None)})
        hello = self.ask("methods")
        self.methods, self.about = hello["methods"], hello["about"]

    def ask(self, do, **arguments):
        out = io.StringIO()
        self.worker.serve([json.dumps({"do": do, **arguments})], out)
        reply = json.loads(out.getvalue())
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def close(self):
        pass


CELLS = {flat_cells.Cell(40, 4, 20, 3): {"ours", "variants", "faiss", "gemm",
                                         "scale"},
         flat_cells.Cell(40, 4, 1, 3): {"ours", "faiss"}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the driver on CELLS; returns (status, data of the file)."""
    monkeypatch.setattr(driver, "WorkerProcess", Told)
    monkeypatch.setattr(turns, "PAUSE", 0)
    monkeypatch.setattr(driver, "PAUSE", 0)
    monkeypatch.setattr(turns, "TURN", 0)
    monkeypatch.setattr(driver.flat_cells, "cells_of", lambda groups: CELLS)
    library = tmp_path / "libbench_cpu.so"
    library.touch()

    def call(*more):
        out = tmp_path / "out" / "flat.json"
        status = driver.main([
            "--out", str(out), "--library", str(library), "--wheel-python",
            "python", "--commit", "abc", "--threads", "2", *more])
        return status, json.loads(out.read_text()) if out.exists() else None
    return call


def test_rows_of_a_run(run, capsys):
    status, data = run()
    assert status == 0
    assert [(r["q"], r["method"], r.get("variant"), r.get("forced"))
            for r in data["rows"]] == [
        (20, "faiss_bits", "buffered", None), (20, "gemm_heap", None, None),
        (20, "faiss_cpu_173", None, None), (20, "numpy", None, None),
        (20, "faiss_bits", "buffered", 1), (20, "faiss_bits", "var1", 1),
        (1, "faiss_bits", "buffered", None), (1, "faiss_cpu_173", None, None)]
    first, gemm = data["rows"][:2]
    assert {"bench", "n", "d", "k", "metric", "dtype", "ms", "gflops",
            "predicted_ms"} <= set(first)
    assert first["gflops"] == pytest.approx(
        2e-6 * 40 * 4 * 20 / first["ms"], rel=1e-3)
    assert first["rounds"] == 9 and gemm["rounds"] == 3
    assert gemm["heap_ms"] == 4 and "read_ms" not in first
    assert data["rows"][6]["read_ms"] == 0.5
    meta = data["meta"]
    assert meta["peak_gflops"] == 200 and meta["commit"] == "abc"
    assert meta["model_operations_per_second"] == 1e11 and meta["threads"] == 2
    assert "8 rows" in capsys.readouterr().out


def test_cells_of_the_same_vectors_together(run, monkeypatch):
    """The same rows, in whose turns no other method has one between cells."""
    order = []
    call = turns.Turn.call

    def seen(self, cell, *arguments, **more):
        order.append((str(self), cell.q))
        return call(self, cell, *arguments, **more)

    monkeypatch.setattr(turns.Turn, "call", seen)
    alone, together = run(), run("--together", "--rounds", "3")
    assert together[0] == 0
    assert [(r["q"], r["method"], r.get("forced")) for r in alone[1]["rows"]] \
        == [(r["q"], r["method"], r.get("forced"))
            for r in together[1]["rows"]]
    assert all(r["rounds"] in (2, 3) for r in together[1]["rows"])
    last = order[-20:]
    for before, after in zip(last, last[1:]):
        assert after[1] == 20 or before[0] == after[0]


def test_plain_mode_takes_part(run, monkeypatch):
    cell = flat_cells.Cell(40, 4, 20, 3)
    monkeypatch.setattr(NumpyNative, "names",
                        ("faiss_bits", "faiss_bits_plain", "gemm_heap"))
    monkeypatch.setattr(driver.flat_cells, "cells_of",
                        lambda groups: {cell: {"ours", "plain"}})
    status, data = run()
    assert status == 0
    assert [r["method"] for r in data["rows"]] == ["faiss_bits",
                                                   "faiss_bits_plain"]
    monkeypatch.setattr(Numpy, "wrong", ("faiss_bits_plain",))
    assert run()[0] == 1


def test_parties_leave_fewer(run):
    """Methods, without the forced variants."""
    status, data = run("--parties", "ours,gemm")
    assert status == 0
    assert [(r["q"], r["method"]) for r in data["rows"]] == [
        (20, "faiss_bits"), (20, "gemm_heap"), (1, "faiss_bits")]
    assert not any(r.get("forced") for r in data["rows"])
    assert run("--parties", "before")[0] == 2


def test_a_commit_before_takes_part(run, monkeypatch, tmp_path):
    """Where it is asked for, and its answers are looked at, too."""
    before = tmp_path / "before.so"
    before.touch()
    cell, other = (flat_cells.Cell(40, 4, q, 3) for q in (20, 1))
    monkeypatch.setattr(driver.flat_cells, "cells_of",
                        lambda groups: {cell: {"ours", "before"},
                                        other: {"ours"}})
    status, data = run()
    assert status == 0 and "before_commit" not in data["meta"]
    assert {r["method"] for r in data["rows"]} == {"faiss_bits"}
    arguments = "--before", str(before), "--before-commit", "old"
    status, data = run(*arguments)
    assert status == 0 and data["meta"]["before_commit"] == "old"
    assert [(r["q"], r["method"]) for r in data["rows"]] == [
        (20, "faiss_bits"), (20, "faiss_bits_before"), (1, "faiss_bits")]
    monkeypatch.setattr(Numpy, "wrong", ("faiss_bits_before",))
    assert run(*arguments)[0] == 1
    with pytest.raises(SystemExit):
        run("--before", "none.so")


def test_cells_of_a_commit_before():
    """All of float32 with the metrics of then, each once, with the parties of its
    other groups."""
    cells = flat_cells.cells_of(flat_cells.GROUPS)
    were_there = {cell for cell in cells if cell.dtype == "float32"
                  and cell.metric not in flat_cells.HISTOGRAMS}
    assert {c for c, parties in cells.items() if "before" in parties} == were_there
    alone = flat_cells.cells_of(["before"])
    assert all(parties == {"ours", "before"} for parties in alone.values())
    assert set(alone) == were_there


def test_a_library_without_modes():
    """`plain` is no argument of its search."""
    calls = []
    worker = bench_worker.Before.__new__(bench_worker.Before)
    bench_worker.Worker.__init__(worker, 2)
    worker.index = 1
    worker.library = type("L", (), {"benchIndexSearch": staticmethod(
        lambda *arguments: calls.append(arguments))})
    worker.cell = {"metric": "L2", "dtype": "float32"}
    worker.queries = np.zeros((4, 2), np.float32)
    D, I = np.empty((1, 1), np.float32), np.empty((1, 1), np.int64)
    worker.search("faiss_bits_before", "auto", 1, 1, D, I)
    (index, q, queries, k, threads, variant, out, ids), = calls
    assert (index, q.value, k.value, threads, variant) == (1, 1, 1, 2, b"auto")
    assert out.value == D.ctypes.data and ids.value == I.ctypes.data


@pytest.mark.parametrize("method", ["faiss_bits", "faiss_cpu_173"])
def test_wrong_answers_are_told(run, capsys, monkeypatch, method):
    monkeypatch.setattr(Numpy, "wrong", (method,))
    status, data = run()
    assert status == 1 and data["rows"]
    assert "WRONG" in capsys.readouterr().out


def test_wrong_distances_are_told(run, capsys, monkeypatch):
    search = Numpy.search

    def off(self, method, variant, q, k, D, I):
        search(self, method, variant, q, k, D, I)
        D += variant == "var1"

    monkeypatch.setattr(Numpy, "search", off)
    assert run()[0] == 1
    lines = [line for line in capsys.readouterr().out.splitlines()
             if "WRONG" in line]
    assert len(lines) == 1 and "var1" in lines[0] and "is off by" in lines[0]


def test_errors_of_a_worker_are_told(run, capsys, monkeypatch):
    def fails(*arguments, **more):
        raise MemoryError("no room")

    monkeypatch.setattr(NumpyNative, "plan", fails)
    status, data = run()
    assert status == 1 and data["rows"] == []
    assert "no room" in capsys.readouterr().out


def test_other_vectors_are_told(run, capsys, monkeypatch):
    make = bench_worker.make
    made = []

    def other(rows, d, dtype, seed):
        made.append(seed)
        return make(rows, d, dtype, seed + len(made))

    monkeypatch.setattr(bench_worker, "make", other)
    assert run()[0] == 1
    assert "different vectors" in capsys.readouterr().out


def test_cells_that_do_not_fit(run, capsys, monkeypatch):
    monkeypatch.setattr(driver, "available_bytes", lambda: 100)
    status, data = run()
    assert status == 0 and data["rows"] == []
    assert "left out: needs" in capsys.readouterr().out


def test_time_that_is_spent(run, capsys):
    status, data = run("--max-seconds", "-1")
    assert status == 0 and data["rows"] == []
    assert "2 of 2 cells left out" in capsys.readouterr().out


def test_interrupt_keeps_rows(run, monkeypatch):
    def stop(self, calls):
        raise KeyboardInterrupt

    monkeypatch.setattr(NumpyNative, "read", stop)  # of the second cell
    status, data = run()
    assert status == 130 and {r["q"] for r in data["rows"]} == {20}


def test_filters(run):
    status, data = run("--qs", "20", "--methods", "faiss_cpu_173")
    assert status == 0
    assert {r["method"] for r in data["rows"]} == {"faiss_bits", "faiss_cpu_173"}
    assert run("--ds", "5")[0] == 2


def test_rounds_and_workers_that_are_needed(run, monkeypatch):
    kinds = []

    class Seen(Told):
        def __init__(self, kind, *arguments):
            kinds.append(kind)
            super().__init__(kind, *arguments)

    monkeypatch.setattr(driver, "WorkerProcess", Seen)
    # A variant that seems far behind would have fewer: that is a matter of time.
    monkeypatch.setattr(driver, "wanted_rounds", lambda turn, rounds, best: rounds)
    status, data = run("--rounds", "2", "--methods", "faiss_cpu_173")
    assert status == 0 and {r["rounds"] for r in data["rows"]} == {2}
    assert kinds == ["native", "wheel"]
    assert run("--methods", "numpy")[0] == 0 and kinds[-1] == "scale"
    with pytest.raises(SystemExit):
        run("--rounds", "0")


def test_unknown_names(run, capsys):
    assert run("--methods", "fais")[0] == 1
    assert "fais" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("--cells", "big")
    assert "big" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("--library", "none.so")
    assert "none.so" in capsys.readouterr().err


def test_times_are_of_the_calls(monkeypatch):
    worker = Numpy()
    worker.data(10, 4, 3, "L2", "float32")
    monkeypatch.setattr(Numpy, "seconds", 0.01)
    reply = worker.time("faiss_cpu_173", 2, 3, calls=3, warm=1, answer=True)
    assert len(reply["ms"]) == 3 and all(10 <= ms < 500 for ms in reply["ms"])
    assert np.shape(reply["D"]) == np.shape(reply["I"]) == (2, 3)


def test_vectors_follow_seed_and_type():
    a, b = (bench_worker.make(5, 3, "float32", 1) for _ in range(2))
    assert a.dtype == np.float32 and (a == b).all() and (a >= 0).all()
    assert (bench_worker.make(5, 3, "float32", 2) != a).any()
    assert bench_worker.make(5, 3, "float64", 1).dtype == np.float64
