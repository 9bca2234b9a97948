"""benchs/check_filters.py, on results made up for the test."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import check_filters  # noqa: E402


def row(selector, ms, allowed=1, q=1):
    return {"bench": "filters", "method": "faiss_bits", "selector": selector,
            "allowed": allowed, "n": 100, "d": 8, "q": q, "k": 10,
            "metric": "L2", "ms": ms}


@pytest.mark.parametrize(
    "filtered, missed",
    [
        (row("range", 0.019, 0.01), 0),
        (row("range", 0.021, 0.01), 1),
        (row("range", 0.114, 0.5), 0),
        (row("range", 0.116, 0.5), 1),
        (row("range", 0.9, 0.01, q=64), 0),
    ],
)
def test_one_cell(tmp_path, capsys, filtered, missed):
    rows = [row("none", 0.1), row("none", 1.0, q=64), filtered]
    path = tmp_path / "filters.json"
    path.write_text(json.dumps({"meta": {}, "rows": rows}))
    assert check_filters.main([str(path)]) == missed
    assert f"{missed} missed" in capsys.readouterr().out


def ivf_row(selector, ms, allowed=1, q=10240, nprobe=128, index="ivf_flat"):
    return {"bench": "ivf_filters", "method": "faiss_bits", "index": index,
            "data": "uniform", "selector": selector, "allowed": allowed,
            "n": 1000, "d": 8, "nlist": 1024, "nprobe": nprobe, "q": q,
            "k": 10, "pairs": 100, "ms": ms}


@pytest.mark.parametrize(
    "filtered, missed",
    [
        (ivf_row("bitmap", 0.99, 0.01), 0),
        (ivf_row("bitmap", 1.01, 0.01), 1),
        (ivf_row("bitmap", 1.01, 0.02), 0),
        (ivf_row("bitmap", 3.46, 0.9), 1),
        (ivf_row("bitmap", 0.09, 0.01, q=1), 0),
        (ivf_row("bitmap", 0.12, 0.01, q=1), 1),
    ],
)
def test_lists(tmp_path, filtered, missed):
    rows = [ivf_row("none", 3.0), ivf_row("none", 0.1, q=1),
            ivf_row("none", 0.1, nprobe=8), filtered]
    path = tmp_path / "ivf_filters.json"
    path.write_text(json.dumps({"meta": {}, "rows": rows}))
    assert check_filters.main([str(path)]) == missed
    # Slower by 20 us at most does not count if so wished.
    arguments = [str(path), "--noise-ms", "0.02"]
    assert check_filters.main(arguments) == (missed and filtered["q"] > 1)
