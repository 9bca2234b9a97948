"""benchs/cpu/bench_ivf_cpu.py on vectors made up for the test."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchs" / "cpu" / "bench_ivf_cpu.py"


def bench(tmp_path, *more):
    np.save(tmp_path / "v.npy",
            np.random.default_rng(1).random((4000, 8), np.float32))
    out = tmp_path / "ivf.json"
    done = subprocess.run(
        [sys.executable, "-B", str(SCRIPT), "--out", str(out), "--vectors",
         str(tmp_path / "v.npy"), "--nlist", "16", "--nprobe", "4", "--rounds",
         "2", "--commit", "abc", *more],
        capture_output=True, text=True, env=dict(os.environ), timeout=300)
    return done, out


@pytest.mark.parametrize("metric", ["L2", "IP"])
def test_rows(tmp_path, metric):
    # Not faiss_bits itself, which is also a folder of the tree.
    pytest.importorskip("faiss_bits.compiled")
    done, out = bench(tmp_path, "--qs", "1,50", "--ks", "3", "--metric", metric)
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    assert result["meta"]["commit"] == "abc" and result["meta"]["threads"] >= 1
    rows = result["rows"]
    assert [(row["q"], row["method"] == "faiss_bits") for row in rows] == [
        (1, True), (1, False), (50, True), (50, False)]
    for row in rows:
        assert row["n"] == 2000 and row["d"] == 8 and row["data"] == "v.npy"
        assert row["same_ids"] >= 0.999
        assert 0 < row["least_ms"] <= row["ms"]


def test_too_many_queries(tmp_path):
    done, out = bench(tmp_path, "--qs", "3000")
    assert done.returncode == 2 and "3000" in done.stderr
    assert not out.exists()
