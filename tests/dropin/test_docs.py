"""The examples of docs/dropin.md run as they stand there, with the fake FAISS."""

import re
import shutil
import sys

import pytest
from conftest import ALL, ROOT, python, run, said

TEXT = (ROOT / "docs" / "dropin.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)

# What the commands of the page work on.
SCRIPT = "import faiss, sys; print(faiss.search()[0], sys.argv[1:])\n"
PROGRAM = """
extern "C" float fakeSearch(int function, int k);
int main() {
    return fakeSearch(0, 2) == 42 ? 0 : 1;
}
"""


def fences(language):
    return [code for name, code in FENCE.findall(TEXT) if name == language]


def commands(word):
    """The lines of shell on the page that run a thing."""
    lines = "".join(fences("sh")).splitlines()
    return [line for line in lines if re.search(rf"(^|\s)(\./)?{word}\b", line)]


def test_page_has_its_examples():
    assert len(fences("python")) == 1
    assert len(commands("python -m faiss_bits.dropin")) == 4
    assert len(commands("program")) == 3


def test_python_example(site):
    (code,) = fences("python")
    result = python(code, path=site("ids64"))
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(f"{ALL}\n")


def came_here(result, line):
    """Our library was called and said why it could not run, or was off."""
    texts = [text for text in said(result) if "goes to FAISS's own" in text]
    return bool(texts) != ("FAISS_BITS_DROPIN=off" in line)


@pytest.mark.parametrize("line", commands("python -m faiss_bits.dropin"))
def test_python_commands(site, tmp_path, line):
    for name in ("script.py", "module.py"):
        (tmp_path / name).write_text(SCRIPT)
    shim = tmp_path / "bin" / "python"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    # The fake FAISS stays on the path, whatever the line puts there.
    line = line.replace("PYTHONPATH=", "PYTHONPATH=$PYTHONPATH:")
    result = run(
        "sh", "-c", f'cd "{tmp_path}" && PATH="{shim.parent}:$PATH" && {line}',
        path=site("ids64"),
    )
    assert result.returncode == 0, result.stderr
    wanted = ["arguments..."] if "arguments" in line else []
    assert result.stdout == f"42.0 {wanted}\n"
    assert came_here(result, line)
    if "FAISS_BITS_DROPIN=log" in line:
        assert said(result)[0].endswith(ALL)


@pytest.mark.parametrize(
    "line", [line for line in commands("program") if "LD_PRELOAD" in line]
)
def test_preloading_commands(programs, library, tmp_path, line):
    (tmp_path / "program").symlink_to(programs / "fake_plain")
    line = line.replace("/path/to/libfaiss_bits_dropin.so", str(library))
    assert str(library) in line
    result = run("sh", "-c", f'cd "{tmp_path}" && {line}')
    assert result.returncode == 0, result.stderr
    assert "runBlockSelect: FAISS" in result.stdout
    assert came_here(result, line)


@pytest.mark.skipif(not shutil.which("c++"), reason="there is no C++ compiler")
def test_linking_command(programs, library, tmp_path):
    (line,) = [line for line in commands("program") if line.startswith("c++")]
    (tmp_path / "program.cpp").write_text(PROGRAM)
    folders = (library.parent, programs / "ids64")
    places = " ".join(f'-L"{folder}"' for folder in folders)
    line = line.replace("c++ ", f"c++ {places} ", 1)
    result = run(
        "sh", "-c", f'cd "{tmp_path}" && {line} && ./program',
        LD_LIBRARY_PATH=":".join(map(str, folders)),
    )
    assert result.returncode == 0, result.stderr
    assert came_here(result, line)
