"""The Python examples of README.md, docs/using.md and docs/examples.md run as they
stand.

A word after "python" in the fence says what an example needs: gpu or torch.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "using.md", ROOT / "docs" / "examples.md")
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.M | re.S)


def examples():
    for page in PAGES:
        text = page.read_text() if page.exists() else ""
        for needs, code in FENCE.findall(text):
            words = needs.split()
            marks = [pytest.mark.gpu] if "gpu" in words else []
            name = f"{page.name} {code[:30]}".split("\n")[0]
            yield pytest.param(words, code, page, marks=marks, id=name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_has_examples(page):
    assert page.exists(), f"{page} is missing"
    found = list(FENCE.findall(page.read_text()))
    assert any(not needs.split() for needs, _ in found), "none runs anywhere"
    assert {word for needs, _ in found for word in needs.split()} <= {"gpu", "torch"}


@pytest.mark.parametrize("needs, code, page", examples())
def test_example(needs, code, page, tmp_path, monkeypatch):
    if "torch" in needs:
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {"__name__": "readme"})
