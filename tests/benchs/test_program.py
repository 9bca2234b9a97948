"""How the scripts of benchs/ end."""

import json
import pathlib
import subprocess
import sys

import pytest

BENCHS = pathlib.Path(__file__).resolve().parents[2] / "benchs"
sys.path.insert(0, str(BENCHS))
sys.dont_write_bytecode = True

import program  # noqa: E402


@pytest.mark.parametrize("script, words", [
    ("check.py", "none.json: No such file"),
    ("merge.py", "none.json: No such file"),
    ("points_table.py", "none.json: No such file"),
    ("check_filters.py", "none.json: No such file"),
    ("many_table.py", "No such file"),
    ("readme_table.py", "No such file"),
])
def test_missing_files_are_one_line(tmp_path, script, words):
    arguments = {"merge.py": ["out.json"], "points_table.py": ["none.json"]}.get(
        script, [])
    result = subprocess.run(
        [sys.executable, str(BENCHS / script), *arguments, "none.json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{script}: ") and words in line


@pytest.mark.parametrize("error, status, words", [
    (ModuleNotFoundError(name="torch"), 1, "needs the Python package torch"),
    (json.JSONDecodeError("Expecting value", "", 0), 1, "no file of results"),
    (FileNotFoundError(2, "No such file", "a"), 1, "a: No such file"),
    (KeyboardInterrupt(), 130, "stopped"),
])
def test_ends_of_scripts(capsys, error, status, words):
    def failing(_):
        raise error

    with pytest.raises(SystemExit) as caught:
        program.end_with(failing, 1)
    assert caught.value.code == status or (
        status == 1 and words in str(caught.value.code))
    assert words in capsys.readouterr().err + str(caught.value.code)


def test_other_errors_of_scripts_keep_their_trace():
    for error in (ValueError("v"), OSError("no name"), RuntimeError("r")):
        def failing():
            raise error

        with pytest.raises(type(error)):
            program.end_with(failing)
