"""docs/distributed.md: its examples run as they stand, its tables are those of the
results and of plan(); and what is said without Dask."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import fd, needs_dask

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "distributed.md"
TEXT = PAGE.read_text() if PAGE.exists() else ""
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def run(code, folder):
    script = folder / "example.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=120,
    )


@needs_dask
@pytest.mark.parametrize("number", range(2))
def test_example(number, tmp_path):
    assert len(EXAMPLES) == 2
    done = run(EXAMPLES[number], tmp_path)
    assert done.returncode == 0, done.stderr
    # The first is about ids of the vectors themselves, the second about a plan.
    assert ("20000 [0 1 2]" if number == 0 else "| load |") in done.stdout


@needs_dask
def test_tables_are_those_of_results_and_plans():
    path = ROOT / "benchs" / "cpu" / "bench_distributed.py"
    spec = importlib.util.spec_from_file_location("bench_distributed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = ROOT / "benchs" / "results" / "cpu" / "distributed.json"
    text = PAGE.read_text()
    assert text.count("| 1,000,000,000") == 0 and "n = 1,000,000,000" in text
    assert module.page(text, results) == text
    rows = module.load(results)["rows"]
    assert all(row.get("bytes_as_planned", True) for row in rows)
    off = [row for row in rows if not 0.75 <= row["ms"] / row["planned_ms"] <= 1.25]
    assert not off, "plans that are more than a quarter off"
    assert {row["job"] for row in rows} == {"load", "search", "knn_graph", "kmeans"}


def test_without_dask(tmp_path):
    """An ImportError that says what to do; the rest of the package works."""
    done = run(
        "import sys\n"
        "sys.modules['distributed'] = None\n"
        "import faiss_bits\n"
        "faiss_bits.IndexFusedFlat(3)\n"
        "try:\n"
        "    import faiss_bits.distributed\n"
        "except ImportError as error:\n"
        "    print(error)\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'dask[distributed]'" in done.stdout
    assert "python3-distributed" in done.stdout


@needs_dask
def test_names():
    assert set(fd.__all__) <= set(dir(fd))
    for name in fd.__all__:
        assert getattr(fd, name).__doc__, name
