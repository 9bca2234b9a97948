"""benchs/alternate.py, on programs that only write made-up times."""

import json
import pathlib
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchs"))
sys.dont_write_bytecode = True

import alternate  # noqa: E402


def program(folder, name, ms_of_k):
    """A bench whose cells k take ms_of_k[k]; it notes its calls."""
    rows = [{"bench": "flat", "method": method, "n": 10, "d": 2, "q": 1, "k": k,
             "metric": "L2", "dtype": "float32", "ms": ms}
            for k, ms in ms_of_k.items() for method in ("faiss_bits", "faiss_flat")]
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"open({str(folder / 'calls')!r}, 'a').write("
        f"'{name} ' + ' '.join(sys.argv[3:]) + '\\n')\n"
        "assert os.environ.get('LD_LIBRARY_PATH', '').startswith('/lib of ')\n"
        f"json.dump({{'meta': {{'gpu': 'G'}}, 'rows': {rows!r}}}, "
        "open(sys.argv[2], 'w'))\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(folder, old, new, *more):
    out = folder / "out.json"
    status = alternate.main([
        "--old", program(folder, "old", old), "--new", program(folder, "new", new),
        "--old-lib", "/lib of old", "--new-lib", "/lib of new",
        "--old-commit", "a", "--new-commit", "b",
        "--out", str(out), "--parts", "--ds 2", "--ds 3 --ks 1", *more])
    return status, json.loads(out.read_text())


@pytest.mark.parametrize("new, status", [
    ({1: 1.0, 2: 0.05}, 0), ({1: 1.029, 2: 0.0524}, 0), ({1: 0.5, 2: 0.02}, 0),
    ({1: 1.031, 2: 0.05}, 1), ({1: 1.0, 2: 0.0526}, 1)])
def test_limits(tmp_path, capsys, new, status):
    got, data = run(tmp_path, {1: 1.0, 2: 0.05}, new)
    assert got == status
    assert ("SLOWER" in capsys.readouterr().out) == bool(status)
    assert data["meta"] == {"gpu": "G", "commit": "b", "commit_old": "a",
                            "rounds": 2}
    assert [(r["method"], r["k"], r["ms"]) for r in data["rows"]] == [
        ("new", 1, new[1]), ("old", 1, 1.0), ("new", 2, new[2]), ("old", 2, 0.05)]


def test_turns_and_options(tmp_path):
    run(tmp_path, {1: 1.0}, {1: 1.0}, "--rounds", "3", "--", "--rivals", "none")
    calls = (tmp_path / "calls").read_text().splitlines()
    first = "--ds 2 --rivals none"
    second = "--ds 3 --ks 1 --rivals none"
    turns = ["old", "new", "new", "old", "old", "new"]
    assert calls == [f"{turn} {part}" for part in (first, second) for turn in turns]


def test_rounds_are_checked(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(tmp_path, {1: 1.0}, {1: 1.0}, "--rounds", "0")
    assert "--rounds = 0" in capsys.readouterr().err
