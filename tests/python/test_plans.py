"""Plans of searches and selections on the GPU, and FAISS_BITS_LOG."""

import os
import re
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest

import faiss_bits
from conftest import make

needs_gpu_part = pytest.mark.skipif(
    not hasattr(faiss_bits, "GpuIndexBitsFlat"), reason="no GPU part in this build"
)


def run(source, log):
    """What a process of its own prints to stderr with FAISS_BITS_LOG = log."""
    environment = {k: v for k, v in os.environ.items() if k != "FAISS_BITS_LOG"}
    if log is not None:
        environment["FAISS_BITS_LOG"] = log
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [
        line for line in done.stderr.splitlines() if line.startswith("faiss_bits")
    ]


SEARCHES = """
import faiss_bits, numpy as np
x = np.random.default_rng(1).random((500, 8), np.float32)
index = faiss_bits.IndexFusedFlat(8)
index.add(x)
for k in 3, 3, 4:
    for _ in range(2):
        index.search(x[:10], k)
faiss_bits.knn(x[:10].astype("d"), x.astype("d"), 3, metric="cosine")
"""


@pytest.mark.parametrize("value", [None, "", "0"])
def test_log_is_off_by_default(value):
    assert run(SEARCHES, value) == []


def test_log_prints_each_shape_once():
    lines = run(SEARCHES, "1")
    assert len(lines) == 3, lines
    for line, words in zip(lines, ("k = 3, L2", "k = 4, L2", "cosine, float64")):
        assert line.startswith("faiss_bits: CPU search, 10 queries, n = 500, d = 8, ")
        assert words in line and "predicted=" in line


def test_log_warns_of_another_value():
    lines = run(SEARCHES, "yes")
    assert len(lines) == 1, lines
    assert "FAISS_BITS_LOG = 'yes'" in lines[0] and "counts as 0" in lines[0]


@needs_gpu_part
def test_select_plan_of_an_h200():
    plan = faiss_bits.select_plan(64, 2**24, 100, device="h200", on_device=True)
    assert plan.algorithm == "sample_threshold"
    assert (plan.pages, plan.rowsPerPage, plan.rowsPerBatch) == (1, 64, 64)
    assert 0.9 < plan.expectedMs < 1.2  # 0.97 ms in select.json
    assert plan.scratchBytes > 0
    text = str(plan)
    assert text.startswith("sample_threshold, 1 page of 64 rows")
    assert plan.details in text and "\n" not in text and text in repr(plan)
    # numpy arrays, in pages
    assert faiss_bits.select_plan(64, 2**24, 100, device="h200").pages == 64
    assert faiss_bits.select_plan(0, 5, 1, device="h200").algorithm == "none"
    # Rows without keys are filled.
    assert faiss_bits.select_plan(5, 0, 1, device="h200").algorithm != "none"
    half = faiss_bits.select_plan(
        64, 2**24, 100, "bfloat16", True, False, device="h200", on_device=True
    )
    assert 0.4 < half.expectedMs / plan.expectedMs < 0.6
    bits = faiss_bits.select_plan(10, 10000, 5, algorithm="bits", device="h200")
    assert bits.algorithm == "bits"


@needs_gpu_part
@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(device="h100"), ValueError, "device = 'h100'"),
        (dict(dtype="int8"), ValueError, "dtype = 'int8'"),
        (dict(rows=-1), ValueError, "rows = -1"),
        (dict(cols=1.5), TypeError, "cols"),
        (dict(k=0), ValueError, "k = 0"),
        (dict(k=2**31), ValueError, "k = 2147483648"),
        (dict(algorithm="best"), ValueError, "algorithm = 'best'"),
        (dict(algorithm=3), TypeError, "algorithm is a int"),
        (dict(algorithm="bits", k=3000), RuntimeError, "algorithm = bits"),
    ],
)
def test_select_plan_arguments(arguments, error, words):
    given = dict(rows=10, cols=10000, k=5, device="h200") | arguments
    with pytest.raises(error, match=words):
        faiss_bits.select_plan(**given)


@pytest.mark.skipif(faiss_bits.get_num_gpus() > 0, reason="there is a GPU")
def test_select_plan_says_what_is_missing():
    with pytest.raises(RuntimeError, match="select_plan needs a GPU"):
        faiss_bits.select_plan(10, 10, 1)


GPU_CALLS = """
import faiss, faiss_bits, numpy as np
x = np.random.default_rng(1).random((5000, 16), np.float32)
index = faiss_bits.GpuIndexBitsFlatL2(faiss.StandardGpuResources(), 16)
index.add(x)
print(index.plan(20, 7))
for _ in range(2):
    index.search(x[:20], 7)
    faiss_bits.knn(x[:20], x, 7)
    faiss_bits.select_k(x, 3)
"""


@pytest.mark.gpu
def test_log_of_gpu_calls():
    lines = run(GPU_CALLS, "1")
    assert len(lines) == 3, lines
    for line, call in zip(lines, ("GpuIndexBitsFlat", "bfKnnBits", "selectK")):
        assert line.startswith(f"faiss_bits: {call}, ") and "expected" in line
    assert run(GPU_CALLS, None) == []


@pytest.mark.gpu
def test_index_plan(res):
    index = faiss_bits.GpuIndexBitsFlatL2(res, 32)
    index.add(make("normal", 20000, 32, 1))
    plan = index.plan(100, 10)
    assert plan.pages == 1 and plan.queriesPerPage == 100
    assert plan.method in str(plan) and plan.details in str(plan)
    assert plan.expectedMs > 0 and plan.scratchBytes > 0
    assert index.plan(nq=100, k=10, on_device=True).method == plan.method
    few = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.arange(50)))
    assert index.plan(1, 10, params=few).method == "direct"
    assert index.plan(0, 1).method == "none"
    for nq, k, error, words in (
        (-1, 1, ValueError, "nq = -1"),
        (1, 0, ValueError, "k = 0"),
        (1, 2**31, RuntimeError, "k = 2147483648"),
        (1.5, 1, TypeError, "nq"),
    ):
        with pytest.raises(error, match=words):
            index.plan(nq, k)


@pytest.mark.gpu
def test_select_plan(res):
    plan = faiss_bits.select_plan(10, 100000, 5, res=res, on_device=True)
    assert plan.rowsPerBatch == 10 and plan.expectedMs > 0
    assert faiss_bits.select_plan(10, 100000, 5, device=0).algorithm == plan.algorithm
    with pytest.raises(ValueError, match="device = 99"):
        faiss_bits.select_plan(10, 10, 1, device=99)


# ---- docs/plans.md ------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plans.md"
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```", re.M | re.S)


def examples():
    for needs, code in FENCE.findall(PAGE.read_text() if PAGE.exists() else ""):
        marks = [pytest.mark.gpu] if "gpu" in needs else []
        yield pytest.param(code, marks=marks, id=needs.strip() or "anywhere")


def test_the_page_has_both_kinds_of_examples():
    assert {needs.strip() for needs, _ in FENCE.findall(PAGE.read_text())} == {
        "",
        "gpu",
    }


@pytest.mark.parametrize("code", examples())
def test_example(code):
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})


@needs_gpu_part
def test_the_page_names_every_attribute_and_method():
    text = PAGE.read_text()
    for method in (
        "line sorted_line direct few_dims few_dims_top all_pairs nearest "
        "fused_tensor fused_pairwise "
        "few_queries gemm cosine pairwise not_yet make kept"
    ).split():
        assert f"`{method}`" in text, method
