"""The package as a whole: names, texts, and what it says without a GPU."""

import inspect
import pickle
import pydoc
import re
import subprocess
import sys

import faiss
import numpy as np
import pytest
from conftest import make

import faiss_bits


def test_every_public_name_has_a_text():
    assert "knn" in faiss_bits.__all__
    for name in faiss_bits.__all__:
        if name == "__version__":
            continue
        thing = getattr(faiss_bits, name)
        assert len(inspect.getdoc(thing) or "") > 40, name


CALLS = {
    **{name: getattr(faiss_bits, name) for name in faiss_bits._FUNCTIONS},
    "Kmeans.train": faiss_bits.Kmeans.train,
    "Kmeans.assign": faiss_bits.Kmeans.assign,
    "EditDistanceIndex.range_search": faiss_bits.EditDistanceIndex.range_search,
    "EditDistanceIndex.search": faiss_bits.EditDistanceIndex.search,
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_texts_say_arguments_results_and_errors(name):
    text = inspect.getdoc(CALLS[name])
    arguments = set(inspect.signature(CALLS[name]).parameters) - {"self"}
    if not arguments:
        return
    for section in ("Parameters", "Returns"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text, section
    if name not in ("backend",):  # takes anything
        assert "\nRaises\n------\n" in text
    described = text[text.index("\nParameters\n"):text.index("\nReturns\n")]
    for argument in arguments:
        assert re.search(rf"\b{argument}\b[^\n]*( :|\n    )", described), argument


@pytest.mark.skipif(
    not hasattr(faiss_bits, "GpuIndexBitsFlat"), reason="no GPU part in this build"
)
def test_class_texts_come_from_the_headers():
    for name, own_word in (("", "IVF index"), ("L2", "squared"), ("IP", "products")):
        the_class = getattr(faiss_bits, "GpuIndexBitsFlat" + name)
        assert issubclass(the_class, faiss.GpuIndexFlat)
        for thing, words in (
            (the_class, own_word),
            (the_class.__init__, "getResources"),
            (the_class.search, "whose `sel` filters"),
            (the_class.add, "vectors"),
            (the_class.reserve, "room for"),
            (the_class.reconstruct_n, "ectors"),
        ):
            assert words in inspect.getdoc(thing), (name, thing)


@pytest.mark.skipif(
    not hasattr(faiss_bits, "GpuIndexBitsFlat"), reason="no GPU part in this build"
)
def test_config_is_made_of_faiss_config():
    theirs = faiss.GpuIndexFlatConfig()
    theirs.device, theirs.useFloat16 = 3, True
    ours = faiss_bits.GpuIndexBitsFlatConfig(theirs)
    assert isinstance(ours, faiss.GpuIndexFlatConfig)
    assert (ours.device, ours.useFloat16) == (3, True)
    assert ours.useBFloat16 is False
    ours.useBFloat16 = True
    assert ours.useBFloat16 is True and "useBFloat16" not in vars(ours)
    assert ours.keepSearchImage is True
    ours.keepSearchImage = False
    assert ours.keepSearchImage is False and "keepSearchImage" not in vars(ours)


def test_cpu_class_texts_come_from_the_headers():
    the_class = faiss_bits.IndexFusedFlat
    assert issubclass(the_class, faiss.IndexFlat)
    for thing, words in (
        (the_class, "lower id first"),
        (the_class.search, "whose `sel` filters"),
        (the_class.knn_subset, "reference_ids"),
        (the_class.plan, "instruction set"),
        (faiss_bits.FusedChoice, "vectorBlock"),
    ):
        assert words in inspect.getdoc(thing), thing


def test_versions_agree():
    assert faiss_bits.__version__ == faiss_bits.swigfaiss_bits.library_version()
    assert faiss_bits._build_info.FAISS_VERSION == faiss.__version__


def test_backend():
    assert faiss_bits.backend() in ("cpu", "gpu")
    assert (faiss_bits.backend() == "gpu") == (faiss_bits.get_num_gpus() > 0)


@pytest.mark.parametrize(
    "metric",
    [
        faiss.METRIC_L2,
        faiss.METRIC_INNER_PRODUCT,
        faiss.METRIC_L1,
        faiss.METRIC_Linf,
        faiss.METRIC_Lp,
        faiss.METRIC_Canberra,
        faiss.METRIC_BrayCurtis,
        faiss.METRIC_JensenShannon,
    ],
)
def test_best_flat_index(metric):
    index = faiss_bits.best_flat_index(5, metric)
    assert type(index) is faiss_bits.IndexFusedFlat
    assert (index.d, index.metric_type, index.ntotal) == (5, metric, 0)
    for d, bad_metric, word in (
        (0, metric, "d = 0"),
        (5, 30, "metric = 30"),
    ):
        with pytest.raises(RuntimeError, match=word):
            faiss_bits.best_flat_index(d, bad_metric)


def test_constructors_say_what_fits():
    for call, words in (
        (lambda: faiss_bits.IndexFusedFlat("4"), ("(str): expected", "(d, metric=")),
        (lambda: faiss_bits.IndexFusedFlat(4, None), ("(int, NoneType)", "(index)")),
        (lambda: faiss_bits.IndexFusedIVFFlat(4, 5), ("(int, int)", "(quantizer, d")),
        (lambda: faiss_bits.IndexListOfClusters(4, 1, "a"), ("bucketSize=64",)),
        (lambda: faiss_bits.IndexSSS(4, 1, "a"), ("alpha=0.66",)),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        for word in words:
            assert word in str(caught.value)
        assert "C/C++" not in str(caught.value)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda x: faiss_bits.knn(x, x, 1, metric=faiss.METRIC_Lp, metric_arg="a"),
            TypeError,
            "metric_arg = 'a'",
        ),
        (
            lambda x: faiss_bits.knn(x, x, 1, metric=faiss.METRIC_Lp, metric_arg="3"),
            TypeError,
            "metric_arg = '3'",
        ),
        (lambda x: faiss_bits.range_search(x, x, "0.3"), TypeError, "radius = '0.3'"),
        (
            lambda x: faiss_bits.cpu_plan(1, 1, 1, 1, dtype="half"),
            ValueError,
            "dtype = 'half'",
        ),
        (lambda x: faiss_bits.best_flat_index(3, None), TypeError, "metric = None"),
        (lambda x: faiss_bits.FusedChoice(target=3), TypeError, "target is a int"),
        (
            lambda x: faiss_bits.Kmeans(4, 2).train(x, weights="abc"),
            TypeError,
            "weights is no array",
        ),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call(make("normal", 20, 4, 1))


@pytest.mark.skipif(faiss_bits.backend() == "gpu", reason="there is a GPU")
def test_says_what_is_missing():
    x = make("normal", 4, 3, 1)
    index = faiss.IndexFlatL2(3)
    for call in (
        lambda: faiss_bits.select_k(x, 1),
        lambda: faiss_bits.index_cpu_to_gpu(None, 0, index),
    ):
        with pytest.raises(RuntimeError, match="needs a GPU"):
            call()
    if hasattr(faiss_bits, "GpuIndexBitsFlat"):
        with pytest.raises(RuntimeError, match="GpuIndexBitsFlatL2 needs a GPU"):
            faiss_bits.GpuIndexBitsFlatL2(faiss.StandardGpuResources(), 3)
        with pytest.raises(RuntimeError, match="DeviceSelector needs a GPU"):
            faiss_bits.DeviceSelector(faiss.IDSelectorRange(0, 3), 10)
    else:
        with pytest.raises(AttributeError, match="CPU part only"):
            faiss_bits.GpuIndexBitsFlat
    with pytest.raises(AttributeError, match="no_such_name"):
        faiss_bits.no_such_name


def run(code):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_import_brings_no_torch_and_prints_nothing():
    result = run(
        "import faiss_bits, sys; faiss_bits.backend()\n"
        "assert 'torch' not in sys.modules"
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


# ---- what is loaded, and when -------------------------------------------------

# Names that need no loading, among them one that other builds have.
CHEAP = "faiss_bits.__version__, dir(faiss_bits), hasattr(faiss_bits, 'nothing')"


def test_import_loads_faiss_at_first_use():
    result = run(
        f"import faiss_bits, sys; {CHEAP}\n"
        "print('faiss' in sys.modules, 'numpy' in sys.modules)\n"
        "faiss_bits.knn\n"
        "print('faiss' in sys.modules, 'knn' in vars(faiss_bits))"
    )
    assert result.stdout == "False False\nTrue True\n", result.stderr


@pytest.mark.parametrize(
    "first",
    [
        "from faiss_bits import *",
        "from faiss_bits import knn",
        "import faiss, faiss_bits; faiss_bits.select_k",
        "import faiss_bits.functions",
        "from faiss_bits import swigfaiss_bits",
        "import faiss_bits; faiss_bits.class_wrappers",
        "import pickle, sys; pickle.loads({knn!r})",
        "from faiss_bits.contrib import quickstart",
        "import pydoc, faiss_bits; pydoc.render_doc(faiss_bits)",
    ],
)
def test_whatever_comes_first_the_package_is_whole(first):
    """Every name is there, and the classes are wrapped."""
    first = first.format(knn=pickle.dumps(faiss_bits.knn))
    result = run(
        f"{first}\nimport faiss_bits\n"
        "assert all(getattr(faiss_bits, n) is not None for n in faiss_bits.__all__)\n"
        "index = getattr(faiss_bits, 'GpuIndexBitsFlat', None)\n"
        "assert index is None or index.search is not index.search_c\n"
        "index = faiss_bits.IndexFusedFlat\n"
        "assert index.search is not index.search_c\n"
        "print(faiss_bits.functions.knn is faiss_bits.knn)"
    )
    assert result.stdout == "True\n", result.stderr


def test_star_and_dir_agree_with_all():
    names = {}
    exec("from faiss_bits import *", names)
    assert set(faiss_bits.__all__) <= set(names) & set(dir(faiss_bits))


def test_every_public_name_is_in_the_help():
    text = pydoc.render_doc(faiss_bits, renderer=pydoc.plaintext)
    assert [n for n in faiss_bits.__all__ if n not in text] == []


@pytest.mark.parametrize(
    "use",
    [
        "import faiss_bits; faiss_bits.knn",
        "from faiss_bits import knn",
        "import faiss_bits.functions",
        "import faiss_bits; hasattr(faiss_bits, 'functions')",
    ],
)
def test_refuses_another_faiss(use):
    result = run(
        "import faiss; faiss.__version__ = '0.0.1'\n"
        "for i in range(2):\n"
        f"  try: {use}\n"
        "  except ImportError as error: print(error)"
    )
    first, again = result.stdout.splitlines()
    assert "built for FAISS" in first and "0.0.1" in first
    assert again == first


def test_faiss_still_works_beside_it():
    x = make("normal", 30, 4, 1)
    index = faiss.IndexFlatL2(4)
    index.add(x)
    assert (index.search(x, 1)[1][:, 0] == np.arange(30)).all()
