"""contrib/ann_benchmarks: the adapter in a checkout of ann-benchmarks."""

import numpy as np
import oracle
import pytest
from checkouts import STAND_INS, checkout, kinds, overridden, parameters
from conftest import make, missing_gpu

pytest.importorskip("yaml", reason="PyYAML is not installed")

PACKAGE = "ann_benchmarks.algorithms.faiss_bits"
METRICS = ("euclidean", "angular")
MODES = ("certified", "plain")
CLASSES = (
    "FaissBitsCPU",
    pytest.param("FaissBitsGPU", marks=pytest.mark.gpu),
)


@pytest.fixture(scope="module", params=kinds("ann_benchmarks"))
def theirs(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ann") / "checkout"
    with checkout("ann_benchmarks", request.param, folder) as found:
        yield found


@pytest.fixture(params=CLASSES)
def the_class(request, theirs):
    return getattr(theirs.module(PACKAGE + ".module"), request.param)


def fitted(the_class, metric, x, mode="certified"):
    algorithm = the_class(metric, mode)
    algorithm.fit(x)
    return algorithm


def ranks(metric, queries, vectors, k):
    """Ids [nq, <= k], best first, by float64 and stable sorts."""
    queries, vectors = np.float64(queries), np.float64(vectors)
    if metric == "euclidean":
        keys = np.square(queries[:, None] - vectors[None]).sum(2)
    else:
        lengths = np.linalg.norm(vectors, axis=1)
        lengths[lengths == 0] = 1
        keys = -(queries @ (vectors / lengths[:, None]).T)
    return np.argsort(keys, axis=1, kind="stable")[:, :k], np.sort(keys, axis=1)


def data(metric, n=300, nq=40, d=8):
    """Vectors and queries. Of euclidean ones many distances are equal; cosines
    of which float64 and float32 might see different orders do not occur."""
    if metric == "euclidean":
        return make("ties", n, d, 1), make("ties", nq, d, 2)
    vectors, queries = make("normal", n, d, 1), make("normal", nq, d, 2)
    gaps = np.diff(ranks(metric, queries, vectors, n)[1][:, :21], axis=1)
    assert gaps.min() > 1e-5
    return vectors, queries


# ---- results ----------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 10, 20])
def test_every_place_is_float64s(the_class, metric, mode, k):
    vectors, queries = data(metric)
    algorithm = fitted(the_class, metric, vectors, mode)
    expected, _ = ranks(metric, queries, vectors, k)
    algorithm.batch_query(queries, k)
    np.testing.assert_array_equal(
        np.array(algorithm.get_batch_results()), expected
    )
    for query, ids in zip(queries, expected):
        np.testing.assert_array_equal(algorithm.query(query, k), ids)


@pytest.mark.parametrize("metric", METRICS)
def test_larger_sets(the_class, metric):
    """Enough for every path of the index and for more than one block."""
    x, q = make("far", 70000, 12, 3), make("far", 50, 12, 4)
    algorithm = fitted(the_class, metric, x)
    algorithm.batch_query(q, 30)
    found = np.array(algorithm.get_batch_results())
    name = {"euclidean": "l2", "angular": "cosine"}[metric]
    keys = oracle.distances(q, x, metric=name)
    if metric == "angular":
        keys = -keys
    values = np.take_along_axis(keys, found, 1)
    # Vectors are rounded at length 1: half a unit a component.
    slack = 2.0**-22 if metric == "angular" else 2.0**-23 * values.max()
    np.testing.assert_allclose(
        values, np.sort(keys, 1)[:, :30], rtol=0, atol=slack
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, bool])
@pytest.mark.parametrize("metric", METRICS)
def test_types_and_layouts_of_vectors(theirs, metric, dtype):
    vectors, queries = (x.astype(dtype) for x in data("euclidean"))
    the_class = theirs.module(PACKAGE + ".module").FaissBitsCPU
    found = []
    for x, q in (
        (vectors, queries),
        (np.asfortranarray(vectors), np.asfortranarray(queries)),
        (np.float32(vectors), np.float32(queries)),
    ):
        algorithm = fitted(the_class, metric, x)
        algorithm.batch_query(q, 9)
        found.append(np.array(algorithm.get_batch_results()))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    if metric == "euclidean":
        np.testing.assert_array_equal(
            found[0], ranks(metric, queries, vectors, 9)[0]
        )


@pytest.mark.parametrize("metric", METRICS)
def test_arguments_are_left_as_they_are(the_class, metric):
    """The runner computes its distances from the same arrays."""
    vectors, queries = data(metric)
    before = vectors.copy(), queries.copy()
    algorithm = fitted(the_class, metric, vectors)
    algorithm.batch_query(queries, 5)
    algorithm.query(queries[0], 5)
    np.testing.assert_array_equal(vectors, before[0])
    np.testing.assert_array_equal(queries, before[1])


def test_length_means_nothing_to_angles(the_class):
    vectors, queries = data("angular")
    scale = np.float32(2.0) ** np.random.default_rng(5).integers(-30, 30, 300)
    want = fitted(the_class, "angular", vectors)
    have = fitted(the_class, "angular", vectors * scale[:, None])
    for query in queries:
        np.testing.assert_array_equal(
            have.query(query * np.float32(1024), 20), want.query(query, 20)
        )


def test_zero_vectors_have_cosine_0(the_class):
    vectors = np.float32([[0, 0], [-1, 0], [3, 0], [0, 0], [0, 2], [-5, -5]])
    algorithm = fitted(the_class, "angular", vectors)
    # Cosines with (1, 0): 0, -1, 1, 0, 0, -0.7. With zeros: 0 all of them.
    queries = np.float32([[1, 0], [0, 0]])
    want = [[2, 0, 3, 4, 5, 1], [0, 1, 2, 3, 4, 5]]
    assert [algorithm.query(q, 6).tolist() for q in queries] == want
    algorithm.batch_query(queries, 6)
    assert np.array(algorithm.get_batch_results()).tolist() == want


@pytest.mark.parametrize("metric", METRICS)
def test_k_above_n(the_class, metric):
    """Short results and no -1, which the runner would take for a vector."""
    vectors, queries = data(metric, n=7, nq=3)
    algorithm = fitted(the_class, metric, vectors)
    expected, _ = ranks(metric, queries, vectors, 7)
    algorithm.batch_query(queries, 10)
    for query, ids, found in zip(
        queries, expected, algorithm.get_batch_results()
    ):
        np.testing.assert_array_equal(found, ids)
        np.testing.assert_array_equal(algorithm.query(query, 10), ids)


def test_nothing_to_find(the_class):
    algorithm = fitted(the_class, "euclidean", np.empty((0, 3), np.float32))
    assert algorithm.query(np.zeros(3), 2).tolist() == []
    algorithm = fitted(the_class, "euclidean", np.ones((4, 3), np.float32))
    assert algorithm.query(np.full(3, np.nan), 2).tolist() == []


def test_fit_again(the_class):
    algorithm = fitted(the_class, "euclidean", make("normal", 50, 3, 1))
    algorithm.batch_query(np.zeros((2, 3)), 1)
    algorithm.fit(np.float32([[5, 5], [1, 1]]))
    assert algorithm.query(np.zeros(2), 9).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="before batch_query"):
        algorithm.get_batch_results()


def test_dist_comps_are_those_of_all_runs(the_class):
    """The benchmark divides by runs and queries."""
    algorithm = fitted(the_class, "euclidean", make("normal", 50, 3, 1))
    assert algorithm.get_additional() == {"dist_comps": 0}
    for _ in range(3):
        algorithm.batch_query(np.zeros((4, 3)), 1)
    algorithm.query(np.zeros(3), 1)
    assert algorithm.get_additional() == {"dist_comps": 13 * 50}


def test_plain_and_certified_reach_the_index(theirs):
    """Only certified searches are counted."""
    for mode, counted in (("certified", True), ("plain", False)):
        algorithm = fitted(
            theirs.module(PACKAGE + ".module").FaissBitsCPU,
            "euclidean", make("normal", 500, 8, 1), mode,
        )
        algorithm.batch_query(make("normal", 30, 8, 2), 5)
        assert (algorithm._index.stats().certified > 0) == counted


# ---- errors -----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["hamming", "jaccard", "Euclidean", None])
@pytest.mark.parametrize("name", ["FaissBitsCPU", "FaissBitsGPU"])
def test_wrong_metric(theirs, name, metric):
    the_class = getattr(theirs.module(PACKAGE + ".module"), name)
    with pytest.raises(ValueError, match=f"metric = {metric!r} is none of"):
        the_class(metric)


def test_wrong_mode(theirs):
    the_class = theirs.module(PACKAGE + ".module").FaissBitsCPU
    with pytest.raises(ValueError, match="search_mode = 'quick'"):
        the_class("euclidean", "quick")


@pytest.mark.skipif(missing_gpu() is None, reason="there is a GPU here")
def test_gpu_class_without_a_gpu(theirs):
    the_class = theirs.module(PACKAGE + ".module").FaissBitsGPU
    with pytest.raises(RuntimeError, match="FaissBitsGPU needs a GPU"):
        the_class("euclidean")


def test_calls_out_of_order(the_class):
    algorithm = the_class("euclidean")
    with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
        algorithm.query(np.zeros(3), 1)
    with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
        algorithm.batch_query(np.zeros((1, 3)), 1)
    algorithm.fit(make("normal", 5, 3, 1))
    with pytest.raises(RuntimeError, match="before batch_query"):
        algorithm.get_batch_results()
    algorithm.done()
    with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
        algorithm.query(np.zeros(3), 1)


def test_wrong_arguments(the_class):
    algorithm = the_class("euclidean")
    for shape in [(4,), (2, 2, 2), (3, 0)]:
        with pytest.raises(ValueError, match=r"X has shape"):
            algorithm.fit(np.zeros(shape, np.float32))
    algorithm.fit(make("normal", 5, 3, 1))
    with pytest.raises(ValueError, match=r"shape \(1, 4\), expected"):
        algorithm.query(np.zeros(4), 1)
    with pytest.raises(ValueError, match="k = 0"):
        algorithm.batch_query(np.zeros((1, 3)), 0)


# ---- the interface ----------------------------------------------------------


@pytest.mark.parametrize("name", ["FaissBitsCPU", "FaissBitsGPU"])
def test_methods_have_the_parameters_of_the_base(theirs, name):
    base = theirs.module("ann_benchmarks.algorithms.base.module").BaseANN
    the_class = getattr(theirs.module(PACKAGE + ".module"), name)
    assert issubclass(the_class, base)
    found = overridden(the_class, base)
    assert {"fit", "query", "batch_query", "get_batch_results"} <= set(found)
    for ours, wanted in found.values():
        assert ours == wanted


def test_stand_in_has_their_interface(theirs):
    base = theirs.module("ann_benchmarks.algorithms.base.module").BaseANN
    path = STAND_INS.joinpath(
        "ann_benchmarks/ann_benchmarks/algorithms/base/module.py"
    )
    code = {}
    exec(compile(path.read_text(), str(path), "exec"), code)
    assert parameters(code["BaseANN"]) == parameters(base)


def definitions(theirs, metric, point_type="float"):
    module = theirs.module("ann_benchmarks.definitions")
    found = module.get_definitions(
        dimension=8, point_type=point_type, distance_metric=metric, count=10,
        base_dir=str(theirs.folder / "ann_benchmarks" / "algorithms"),
    )
    return [d for d in found if "faiss_bits" in d.module]


@pytest.mark.parametrize("metric", METRICS)
def test_definitions(theirs, metric):
    found = definitions(theirs, metric)
    expected = {
        (name, constructor, metric, mode, disabled)
        for name, constructor, disabled in (
            ("faiss-bits", "FaissBitsCPU", False),
            ("faiss-bits-gpu", "FaissBitsGPU", True),
        )
        for mode in MODES
    }
    assert len(found) == len(expected)
    assert expected == {
        (d.algorithm, d.constructor, *d.arguments, d.disabled)
        for d in found
    }
    assert {d.module for d in found} == {PACKAGE}
    # install.py names the image after the folder.
    assert {d.docker_tag for d in found} == {"ann-benchmarks-faiss_bits"}
    assert not any(d.query_argument_groups for d in found)


def test_no_definitions_for_what_is_not_float(theirs):
    for metric in ("hamming", "jaccard"):
        assert definitions(theirs, metric, "bit") == []


@pytest.mark.parametrize("metric", METRICS)
def test_definitions_make_algorithms(theirs, metric):
    module = theirs.module("ann_benchmarks.definitions")
    vectors, queries = data(metric)
    expected, _ = ranks(metric, queries, vectors, 3)
    names = set()
    for definition in definitions(theirs, metric):
        if definition.disabled and missing_gpu():
            with pytest.raises(RuntimeError, match="needs a GPU"):
                module.instantiate_algorithm(definition)
            continue
        algorithm = module.instantiate_algorithm(definition)
        algorithm.fit(vectors)
        found = algorithm.query(queries[0], 3)
        np.testing.assert_array_equal(found, expected[0])
        names.add(str(algorithm))
    assert {"FaissBitsCPU(certified)", "FaissBitsCPU(plain)"} <= names

