"""What the Python tests share: skipping by name where there is no GPU or no
torch, a count of what was skipped, and one hypothesis profile."""

import collections
import os
import re
import sys

import faiss
import hypothesis
import numpy as np
import pytest

import faiss_bits

# The same examples on every run, on every machine; no time limit for one, as
# the first call on a GPU takes seconds. HYPOTHESIS_PROFILE=explore looks for
# new examples.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, max_examples=40, database=None
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def missing_gpu():
    """Why tests of the GPU cannot run, or None."""
    if not hasattr(faiss_bits, "GpuIndexBitsFlat"):
        return "needs a GPU, and this build holds the CPU part only"
    if faiss_bits.get_num_gpus() == 0:
        return f"needs a GPU: {faiss_bits.swigfaiss_bits.gpu_problem()}"
    return None


def pytest_collection_modifyitems(items):
    why = missing_gpu()
    for item in items:
        if why and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=why))
        if not why and item.get_closest_marker("cpu"):
            item.add_marker(pytest.mark.skip(reason="there is a GPU here"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test may leave the cluster that tests share in any state: the report
    says in which, and the next test starts another."""
    report = (yield).get_result()
    clusters = sys.modules.get("clusters")
    if report.failed and clusters:
        report.sections.append(("cluster", clusters.state()))
        clusters.close()


def pytest_terminal_summary(terminalreporter):
    """Names and counts what was skipped: that is not what has passed."""
    names, reasons = collections.Counter(), collections.Counter()
    for report in terminalreporter.stats.get("skipped", []):
        names[report.nodeid.partition("[")[0]] += 1
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reasons[re.sub(r"^Skipped: ", "", str(text))] += 1
    for name, count in names.items():
        cases = f" ({count} cases)" if count > 1 else ""
        terminalreporter.write_line(f"SKIPPED {name}{cases}")
    passed = len(terminalreporter.stats.get("passed", []))
    line = (
        f"faiss_bits, backend {faiss_bits.backend()}: {passed} passed, "
        f"{sum(reasons.values())} skipped"
    )
    for reason, count in reasons.items():
        line += f"; {count}: {reason}"
    terminalreporter.write_line(line)
    if not passed and reasons:
        terminalreporter.write_line("every test was skipped")


@pytest.fixture(scope="module")
def res():
    """Resources that the GPU tests of a file share."""
    return faiss.StandardGpuResources()


@pytest.fixture
def torch():
    """torch, if it is installed and sees the GPU."""
    module = pytest.importorskip("torch", reason="torch is not installed")
    if not module.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return module


def make(kind, n, d, seed):
    """Vectors [n, d] float32 of one kind of values, the same for a seed."""
    rng = np.random.default_rng(seed)
    if kind == "normal":
        x = rng.standard_normal((n, d))
    elif kind == "ties":  # few values: many equal distances, exact arithmetic
        x = rng.integers(0, 3, (n, d))
    elif kind == "equal":
        x = np.full((n, d), 7)
    elif kind == "ascending":  # each one further from the origin
        x = np.arange(n)[:, None] * np.ones(d)
    elif kind == "descending":
        x = np.arange(n)[::-1, None] * np.ones(d)
    elif kind == "far":  # close together, far from the origin
        x = 100 + rng.standard_normal((n, d))
    else:
        raise ValueError(kind)
    return np.ascontiguousarray(x, np.float32)


KINDS = ("normal", "ties", "equal", "ascending", "descending", "far")
METRICS = (faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT)
# What the kernels have: FAISS's metric (or ours), its argument, the oracle's name
# of it. FAISS's indexes have no cosine, nor Jaccard before 1.7.4.
CPU_METRICS = (
    (faiss.METRIC_L2, 0, "l2"),
    (faiss.METRIC_INNER_PRODUCT, 0, "ip"),
    (faiss.METRIC_L1, 0, "l1"),
    (faiss.METRIC_Linf, 0, "linf"),
    (faiss.METRIC_Lp, 1.5, "lp"),
    (faiss.METRIC_Lp, 3, "lp"),
    (faiss.METRIC_Canberra, 0, "canberra"),
    (faiss.METRIC_BrayCurtis, 0, "braycurtis"),
    (faiss.METRIC_JensenShannon, 0, "jensenshannon"),
    (getattr(faiss, "METRIC_Jaccard", "jaccard"), 0, "jaccard"),
    ("cosine", 0, "cosine"),
)
GPU_METRICS = (*CPU_METRICS, (faiss.METRIC_Lp, 2.7, "lp"))
INDEX_METRICS = tuple(m for m in CPU_METRICS if not isinstance(m[0], str))


def for_metric(name, *matrices):
    """The matrices, with no component below 0 for metrics of histograms, which say
    nothing of others."""
    if name in ("jensenshannon", "jaccard"):
        return [np.abs(x) for x in matrices]
    return matrices


def index_of(xb, metric=faiss.METRIC_L2, argument=0):
    """Our CPU index of the vectors xb."""
    index = faiss_bits.IndexFusedFlat(xb.shape[1], metric, argument)
    index.add(xb)
    return index


def selectors(n):
    """{name: what makes it}, for n vectors; some ids are of none."""
    ids = np.array([3, n - 1, 4, 3, n + 300, -1])
    bits = np.packbits(np.arange(n) % 3 == 0, bitorder="little")
    found = {
        "range": lambda: faiss.IDSelectorRange(20, 90),
        "array": lambda: faiss.IDSelectorArray(ids),
        "batch": lambda: faiss.IDSelectorBatch(ids),
        "bitmap": lambda: faiss.IDSelectorBitmap(bits),
        "not": lambda: faiss.IDSelectorNot(faiss.IDSelectorBatch(ids)),
        "all": lambda: faiss.IDSelectorAll(),
    }
    if hasattr(faiss, "IDSelectorAnd"):
        pair = lambda: (faiss.IDSelectorRange(2, 90), faiss.IDSelectorBitmap(bits))
        found["and"] = lambda: faiss.IDSelectorAnd(*pair())
        found["or"] = lambda: faiss.IDSelectorOr(*pair())
        found["xor"] = lambda: faiss.IDSelectorXOr(*pair())
    return found
