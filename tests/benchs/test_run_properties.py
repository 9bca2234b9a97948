"""benchs/run_properties.py, on programs that only say what they found."""

import json
import pathlib
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import run_properties  # noqa: E402

RIGHT = ("print(f'{n} queries in 3 searches, seed {s}: all places right, "
         "2 repeated')")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(
        run_properties, "gpu_meta", lambda: {"gpu": "G", "driver": "1"})

    def call(body, *more):
        program = tmp_path / "program"
        program.write_text(
            f"#!{sys.executable}\nimport os, sys\n"
            "n = int(os.environ['FAISS_BITS_PROPERTY_QUERIES'])\n"
            "s = int(os.environ['FAISS_BITS_PROPERTY_SEED'])\n" + body + "\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        out = tmp_path / "out.json"
        status = run_properties.main([
            "--program", str(program), "--out", str(out), "--seed", "5",
            "--queries", "10", "--processes", "3", "--commit", "c", *more])
        return status, json.loads(out.read_text())
    return call


def test_all_are_right(run, capsys):
    status, data = run(RIGHT)
    assert status == 0
    assert [r["seed"] for r in data["rows"]] == [5, 6, 7]
    assert [r["queries"] for r in data["rows"]] == [4, 4, 4]
    assert all(r["wrong"] == 0 for r in data["rows"])
    assert data["meta"]["seed"] == 5 and data["meta"]["commit"] == "c"
    assert "12 queries in 9 searches, seeds 5 to 7: 0 wrong, 6 repeated" in (
        capsys.readouterr().out)


def test_wrong_queries_are_counted(run):
    status, data = run(
        "if s == 6:\n print('query 1: x, 7 queries are wrong'); sys.exit(1)\n"
        + RIGHT)
    assert status == 1
    assert [r["wrong"] for r in data["rows"]] == [0, 7, 0]


@pytest.mark.parametrize("body", [
    "sys.exit(3)",
    "print('nothing')",
    "s += 1; " + RIGHT,  # of another seed
    RIGHT + "; sys.exit(1)",
])
def test_a_process_that_fails(run, body):
    status, data = run(body)
    assert status == 1
    assert all("failed" in r and r["queries"] == 0 for r in data["rows"])


def test_too_few_queries(run):
    status, data = run("n = 3; " + RIGHT)
    assert status == 1
    assert all("failed" not in r for r in data["rows"])
