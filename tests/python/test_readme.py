"""The Python examples of README.md run as they stand.

A word after "python" in the fence says what an example needs: gpu or torch.
"""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.M | re.S)


def examples():
    text = README.read_text() if README.exists() else ""
    for needs, code in FENCE.findall(text):
        words = needs.split()
        marks = [pytest.mark.gpu] if "gpu" in words else []
        yield pytest.param(words, code, marks=marks, id=code.split("\n")[0][:30])


def test_readme_has_examples():
    assert README.exists(), f"{README} is missing"
    found = list(FENCE.findall(README.read_text()))
    assert any(not needs.split() for needs, _ in found), "none runs anywhere"
    assert {word for needs, _ in found for word in needs.split()} <= {"gpu", "torch"}


@pytest.mark.parametrize("needs, code", examples())
def test_example(needs, code, tmp_path, monkeypatch):
    if "torch" in needs:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
