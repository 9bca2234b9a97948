"""The reference (docs/reference, tools/docs.sh): made without a warning, with an
entry for every name and header of the API and no broken link, and a mistake of
each kind stops it."""

import fnmatch
import html.parser
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

import faiss_bits

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


def missing():
    """Why the reference cannot be made here, or None."""
    if not REFERENCE.is_dir():
        return "the sources of the reference are not here"
    modules = ("sphinx", "breathe", "myst_parser", "furo", "distributed")
    found = [x for x in ("doxygen", "swig") if shutil.which(x) is None]
    found += [x for x in modules if importlib.util.find_spec(x) is None]
    if found:
        return f"{', '.join(found)} not found (tools/setup.sh test installs them)"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def make(out, *options, path=()):
    """The finished run of docs/reference/make.py; `path` goes to PYTHONPATH."""
    # The package that is tested, wherever pytest found it.
    folders = [*map(str, path), *filter(None, sys.path)]
    return subprocess.run(
        [sys.executable, REFERENCE / "make.py", out, *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the finished reference."""
    out = tmp_path_factory.mktemp("reference")
    run = make(out)
    assert run.returncode == 0, run.stdout + run.stderr
    return out / "html"


def entries(site):
    """The names that have an entry: {"py:class": {...}, "cpp:class": {...}, ...}"""
    from sphinx.util.inventory import InventoryFile

    with open(site / "objects.inv", "rb") as file:
        found = InventoryFile.load(file, "", os.path.join)
    return {kind: set(names) for kind, names in found.items()}


# ---- what is in it ------------------------------------------------------------


@pytest.mark.long_cpu
def test_every_python_name_has_an_entry(site):
    found = {
        name
        for kind, names in entries(site).items()
        if kind.startswith("py:")
        for name in names
    }
    expected = {*faiss_bits.__all__, *faiss_bits._GPU_CLASSES}
    distributed = importlib.import_module("faiss_bits.distributed")
    expected |= {f"distributed.{name}" for name in distributed.__all__}
    for module in (
        "all_knn",
        "datasets",
        "dbscan",
        "evaluation",
        "knn_graph",
        "vector_files",
        "words",
    ):
        whole = importlib.import_module(f"faiss_bits.contrib.{module}")
        expected |= {f"contrib.{module}.{name}" for name in whole.__all__}
    assert len(expected) > 30
    assert {f"faiss_bits.{name}" for name in expected} - found == set()
    # A class has its methods, on a build without the GPU part as well.
    for name in ("GpuIndexBitsFlat.search", "IndexFusedFlat.search", "Kmeans.train"):
        assert f"faiss_bits.{name}" in found


# Headers that are installed because others read them, or that say of themselves
# that they are no part of the API; with those in folders below kernels/<family>.
INNER = """
    faiss_bits/common/* faiss_bits/flat/SearchCounters.h faiss_bits/flat/SelectedIds.h
    kernels/*/*/* kernels/canonical/* kernels/cluster/* kernels/device/*
    kernels/common/ContextId.h kernels/common/HostWord.h kernels/common/PerDevice.h
    kernels/common/KernelLaunch.h kernels/common/LaunchesTogether.h kernels/common/PreferredL1.h
    kernels/ivf/IvfAgain.h
    kernels/ivf/IvfBoundedScans.h kernels/ivf/IvfChoice.h kernels/ivf/IvfCodeBound.h
    kernels/ivf/IvfDirect.h kernels/ivf/IvfDirectParams.h kernels/ivf/IvfDirectScratch.h
    kernels/ivf/IvfDistances.h kernels/ivf/IvfEstimateBound.h kernels/ivf/IvfFilterBits.h
    kernels/ivf/IvfPartOrder.h
    kernels/ivf/IvfFewEstimates.h kernels/ivf/IvfFind.h kernels/ivf/IvfFloorBound.h kernels/ivf/IvfFloors.h
    kernels/ivf/IvfFoundParams.h kernels/ivf/IvfListCandidates.h kernels/ivf/IvfPairs.h kernels/ivf/IvfParams.h
    kernels/ivf/IvfRangeFound.h kernels/ivf/IvfRangeParams.h kernels/ivf/IvfStagedParams.h
    kernels/ivf/IvfProductBound.h kernels/ivf/IvfRemoval.h kernels/ivf/IvfScratch.h kernels/ivf/IvfSelectedCopy.h
    kernels/ivf/IvfEstimateShape.h kernels/ivf/IvfTableBound.h kernels/ivf/IvfTimes.h kernels/ivf/ListCodes.h
    kernels/ivf/WithCoding.h
    kernels/range/FlatRangePlan.h kernels/range/RangeParams.h kernels/range/RangeScratch.h
    kernels/metric_space/MetricChecks.h kernels/metric_space/PivotOrder.h
    kernels/survivors/* kernels/common/CudaCheck.h kernels/common/DependentLaunch.h
    kernels/common/DynamicShared.h kernels/common/Layout.h kernels/knn/ByMetric.h
    kernels/knn/DistanceMethod.h kernels/knn/ErrorBound.h kernels/knn/FlatKnnPlan.h kernels/knn/FlatKnnTakes.h
    kernels/select/RowSpan.h kernels/select/SelectChecks.h kernels/select/SelectImplementation.h
    kernels/select/SelectParams.h kernels/select/SelectShapeKey.h
""".split()


def installed_headers():
    """Those that cmake/InstallFaissBits.cmake installs with the GPU part."""
    text = (ROOT / "cmake" / "InstallFaissBits.cmake").read_text()
    part, kernels = text.split('install(DIRECTORY "${PROJECT_SOURCE_DIR}/kernels"')
    inner = re.search(r"foreach\(pattern ([^)]*)\)", part)[1].split()
    names = {}
    for folder, patterns in (
        ("faiss_bits", inner),
        ("kernels", re.findall(r'PATTERN "?([^\s"]+)"? EXCLUDE', kernels)),
    ):
        for path in (ROOT / folder).rglob("*.h"):
            parts = path.relative_to(ROOT / folder).parts
            if not any(fnmatch.filter(parts, pattern) for pattern in patterns):
                names[path.relative_to(ROOT).as_posix()] = None
    return [*names, *re.findall(r"\{PROJECT_SOURCE_DIR\}/(kernels/(?:cpu|words)/\w+\.h)", text)]


@pytest.mark.long_cpu
def test_every_installed_header_has_an_entry(site):
    pages = [path.read_text() for path in (site / "docs/reference/cpp").glob("*.html")]
    installed = installed_headers()
    assert len(installed) > 90
    for pattern in INNER:
        assert fnmatch.filter(installed, pattern), f"{pattern}: no such header"
    public = [
        name
        for name in installed
        if not any(fnmatch.fnmatch(name, pattern) for pattern in INNER)
    ]
    assert len(public) > 25
    for name in public:
        count = sum(f"<h2>{name}<" in page for page in pages)
        assert count == 1, f"{name} has {count} entries"
    found = set().union(*entries(site).values())
    for name in ("gpu::GpuIndexBitsFlat", "runSelect", "cpu::runKnn"):
        assert f"faiss_bits::{name}" in found


class Links(html.parser.HTMLParser):
    """The targets of links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src"):
                self.targets.append(value or "")
            elif name == "id":
                self.anchors.add(value)


@pytest.mark.long_cpu
def test_every_link_of_the_site_leads_somewhere(site):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html")}
    assert site / "index.html" in pages
    checked, broken = 0, []
    for page, links in pages.items():
        for target in links.targets:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                continue
            checked += 1
            path = page
            if url.path:
                name = urllib.parse.unquote(url.path)
                path = Path(os.path.normpath(page.parent / name))
            anchor = urllib.parse.unquote(url.fragment)
            if not path.is_file() or (
                anchor and path in pages and anchor not in pages[path].anchors
            ):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert checked > 1000
    assert broken == []


def test_comments_name_files_that_exist():
    """Headers and docstrings name files of the tree, as texts."""
    sources = [
        *(ROOT / name for name in installed_headers()),
        *(ROOT / "faiss_bits/python").rglob("*.py"),
        *(ROOT / "contrib").glob("*.py"),
    ]
    pattern = re.compile(
        r"\b(?:benchs|docs|faiss_bits|kernels|research|tools)/[\w/.-]*"
        r"\w\.(?:cuh|h|inc|json|md|py|sh)\b"
    )
    named = [
        (path, name) for path in sources for name in pattern.findall(path.read_text())
    ]
    assert len(named) > 100
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in named
        if not (ROOT / name).exists()
    ]
    assert wrong == []


def test_gpu_classes_without_a_gpu_part_are_the_real_ones(monkeypatch):
    """The stand-ins of docs/reference/gpu_classes.py have the members, and the
    docstrings, of the classes of a build with the GPU part."""
    if not faiss_bits._build_info.HAS_GPU:
        pytest.skip("this build holds the CPU part only")
    monkeypatch.syspath_prepend(REFERENCE)
    import gpu_classes

    stand_ins = gpu_classes.stand_ins()
    assert set(stand_ins) == set(faiss_bits._GPU_CLASSES)
    for name, stand_in in stand_ins.items():
        real = getattr(faiss_bits, name)
        assert documented(stand_in) == documented(real), name


def documented(the_class):
    members = {
        name: value.__doc__
        for name, value in vars(the_class).items()
        # add_ex and its like are in some releases of FAISS.
        if not name.startswith("_") and name != "thisown" and not name.endswith("_ex")
    }
    return {"class": the_class.__doc__, "new": the_class.__init__.__doc__, **members}


# ---- what stops it ------------------------------------------------------------

GOOD = {
    "README.md": "# Read me\n\n[A page](docs/page.md#one-part), [a folder](docs/).\n",
    "docs/page.md": "# Page\n\n## One part\n\nText.\n",
    "docs/reference/index.md": """# Reference

```{toctree}
../../README
../page
cpp/all
python
```
""",
    "docs/reference/cpp/all.md": "# All\n\n```{doxygenfile} kernels/Some.h\n```\n",
    "docs/reference/python.md": """# Python

```{eval-rst}
.. automodule:: reference_example
```
""",
    "docs/reference/namespaces.dox": "/// @namespace some\n/// Some.\n",
    "kernels/Some.h": """#pragma once
namespace some {

/// Adds.
///
/// left    [n]
/// right   [n]
/// Errors  none
void add(const float* left, const float* right);

struct Wrapped; ///< One.

} // namespace some
""",
    "reference_example.py": '''"""Example."""


def f(x):
    """Returns x.

    Parameters
    ----------
    x : int
        Any
    """
    return x
''',
}
HEADER, MODULE = "kernels/Some.h", "reference_example.py"
PYTHON = "docs/reference/python.md"

# file, what is in it, what is there instead, what is said of it
MISTAKES = {
    "link to a page": ("README.md", "docs/page.md", "docs/none.md", "docs/none.md"),
    "link to a part": ("README.md", "#one-part", "#none", "none"),
    "link to a folder": ("README.md", "(docs/)", "(none/)", "none/"),
    "picture": ("README.md", "[A page](docs/page.md#one-part)", "![](no.png)", "no.png"),
    "page nobody links to": ("docs/reference/index.md", "../page\n", "", "toctree"),
    "reference in a page": (PYTHON, ".. auto", ":py:func:`none`\n\n.. auto", "none"),
    "header that is gone": (
        "docs/reference/cpp/all.md", "Some.h", "None.h", "kernels/None.h"
    ),
    "argument in a table": (HEADER, "right   [n]", "write   [n]", "'write'"),
    "argument in a command": (HEADER, "/// Adds.", "/// @param none .", "'none'"),
    "function without a comment": (
        HEADER, "struct Wrapped; ///< One.", "int g();", "Member g() (function)"
    ),
    "field without a comment": (
        HEADER, "Wrapped; ///< One.", "Wrapped { int x; }; ///< One.", "Member x"
    ),
    "function without a docstring": (
        MODULE, "def f(x)", "def g():\n    pass\n\n\ndef f(x)", "g has no docstring"
    ),
    "text among arguments": (
        MODULE, "    Any\n", "    Any\n\n    More text.\n", "no entry of Parameters"
    ),
}


def small_tree(folder, mistake=None):
    for name, text in GOOD.items():
        if mistake and mistake[0] == name:
            assert text.count(mistake[1]) == 1
            text = text.replace(mistake[1], mistake[2])
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return make(folder / "out", "--root", folder, path=[folder])


@pytest.mark.long_cpu
def test_a_small_tree_is_right(tmp_path):
    run = small_tree(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.long_cpu
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_an_error(tmp_path, mistake):
    run = small_tree(tmp_path, mistake)
    assert run.returncode != 0
    assert mistake[3] in run.stdout + run.stderr
