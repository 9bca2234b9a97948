"""contrib/big_ann_benchmarks: the adapters in a checkout of it."""

import numpy as np
import pytest
from big_ann import (
    METRICS,
    MODES,
    MODULES,
    add_dataset,  # noqa: F401
    allowed_by,
    keys_of,
    make_algorithm,
    name,  # noqa: F401
    ranks,
    some_tags,
    theirs,  # noqa: F401
)
from checkouts import STAND_INS, overridden, parameters
from conftest import make, missing_gpu

DEFINITIONS = {
    "none": "neurips21/faiss_bits/algos.yaml",
    "ood": "neurips23/ood/faiss_bits/config.yaml",
    "filter": "neurips23/filter/faiss_bits/config.yaml",
}


# ---- k-NN --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("track", MODULES)
def test_every_place_is_float64s(
    theirs, add_dataset, track, name, metric, mode, dtype
):
    low = 0 if dtype == "uint8" else -4
    rng = np.random.default_rng(3)
    vectors, queries = (
        rng.integers(low, 5, (n, 6)).astype(dtype) for n in (400, 30)
    )
    add_dataset(vectors, queries, metric)
    algorithm = make_algorithm(theirs, track, name, metric, mode)
    algorithm.fit("ours")
    for k in (1, 10, 400, 450):
        algorithm.query(queries, k)
        np.testing.assert_array_equal(
            algorithm.get_results(), ranks(metric, queries, vectors, k)
        )
        for i in (0, 7):
            algorithm.query(queries[i : i + 1], k)
            np.testing.assert_array_equal(
                algorithm.get_results(),
                ranks(metric, queries[i : i + 1], vectors, k),
            )
    assert algorithm.get_additional() == {"dist_comps": 4 * 32 * 400}


@pytest.mark.parametrize("n", [1, 2, 65536, 65537, 300001])
def test_blocks_make_up_the_data_set(theirs, add_dataset, name, n):
    """In order, each once, of sizes that double up to n."""
    x = np.arange(n, dtype=np.float32)[:, None] % 4096
    ours = add_dataset(x)
    algorithm = make_algorithm(theirs, "none", name)
    algorithm.fit("ours")
    assert sum(ours.blocks) == n and max(ours.blocks) <= 65536
    room = ours.blocks[0]
    while room < n:
        room *= 2
    assert room - n <= 2 * len(ours.blocks)
    index = algorithm._index
    assert index.ntotal == n
    np.testing.assert_array_equal(index.reconstruct_n(0, n), x)


@pytest.mark.parametrize("metric", METRICS)
def test_range_search(theirs, add_dataset, metric):
    vectors, queries = make("ties", 500, 5, 1), make("ties", 20, 5, 2)
    add_dataset(vectors, queries, metric, "range")
    algorithm = make_algorithm(theirs, "none", "FaissBitsCPU", metric)
    algorithm.fit("ours")
    algorithm.range_query(queries, 6)
    limits, distances, ids = algorithm.get_range_results()
    keys = keys_of(metric, queries, vectors)
    inside = keys < (6 if metric == "euclidean" else -6)
    assert 0 < inside.sum() < inside.size
    assert limits.tolist() == [0, *np.cumsum(inside.sum(1))]
    for row in range(20):
        part = slice(int(limits[row]), int(limits[row + 1]))
        assert sorted(ids[part]) == np.flatnonzero(inside[row]).tolist()
        np.testing.assert_array_equal(
            distances[part], np.abs(keys[row, ids[part]])
        )
    assert algorithm.get_additional() == {"dist_comps": 20 * 500}


@pytest.mark.gpu
def test_no_range_search_on_the_gpu(theirs):
    algorithm = make_algorithm(theirs, "none", "FaissBitsGPU")
    with pytest.raises(NotImplementedError, match="radius = 6"):
        algorithm.range_query(np.zeros((1, 3)), 6)


# ---- errors -----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["angular", "eculidean", None])
@pytest.mark.parametrize("any_name", ["FaissBitsCPU", "FaissBitsGPU"])
@pytest.mark.parametrize("track", MODULES)
def test_wrong_metric(theirs, track, any_name, metric):
    with pytest.raises(ValueError, match=f"metric = {metric!r} is none of"):
        make_algorithm(theirs, track, any_name, metric)


def test_wrong_mode(theirs):
    with pytest.raises(ValueError, match="search_mode = 'quick'"):
        make_algorithm(theirs, "none", "FaissBitsCPU", mode="quick")


@pytest.mark.skipif(missing_gpu() is None, reason="there is a GPU here")
@pytest.mark.parametrize("track", MODULES)
def test_gpu_class_without_a_gpu(theirs, track):
    with pytest.raises(RuntimeError, match="FaissBitsGPU needs a GPU"):
        make_algorithm(theirs, track, "FaissBitsGPU")


def test_calls_out_of_order(theirs, add_dataset, name):
    algorithm = make_algorithm(theirs, "none", name)
    x = make("normal", 5, 3, 1)
    add_dataset(x)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
            algorithm.query(x, 1)
        algorithm.fit("ours")
        algorithm.query(x, 1)
        assert algorithm.get_results().ravel().tolist() == [0, 1, 2, 3, 4]
        algorithm.done()
        algorithm = make_algorithm(theirs, "none", name)


def test_done_gives_the_index_back(theirs, add_dataset, name):
    algorithm = make_algorithm(theirs, "none", name)
    x = make("normal", 5, 3, 1)
    add_dataset(x)
    algorithm.fit("ours")
    algorithm.done()
    with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
        algorithm.query(x, 1)


def test_data_sets_that_do_not_fit(theirs, add_dataset):
    algorithm = make_algorithm(theirs, "none", "FaissBitsCPU")
    with pytest.raises(ValueError, match="dataset = 'nobodys' is no name"):
        algorithm.fit("nobodys")
    ours = add_dataset(make("normal", 5, 3, 1))
    type(ours).data_type = lambda self: "sparse"
    with pytest.raises(ValueError, match="dataset = 'ours' has sparse"):
        algorithm.fit("ours")


# ---- the interface ----------------------------------------------------------


def bases(theirs):
    """{track: the base class that the benchmark has for it}."""
    return {
        "none": theirs.module("benchmark.algorithms.base").BaseANN,
        "ood": theirs.module("neurips23.ood.base").BaseOODANN,
        "filter": theirs.module("neurips23.filter.base").BaseFilterANN,
    }


@pytest.mark.parametrize("any_name", ["FaissBitsCPU", "FaissBitsGPU"])
@pytest.mark.parametrize("track", MODULES)
def test_methods_have_the_parameters_of_the_base(theirs, track, any_name):
    base = bases(theirs)[track]
    the_class = getattr(theirs.module(MODULES[track]), any_name)
    assert issubclass(the_class, base)
    found = overridden(the_class, base)
    assert {"fit", "load_index", "query", "range_query"} <= set(found)
    assert ("filtered_query" in found) == (track == "filter")
    for ours, wanted in found.values():
        assert ours == wanted
    hardware = {"FaissBitsCPU": "T1", "FaissBitsGPU": "T3"}[any_name]
    assert the_class.track(None) == (hardware if track == "none" else track)


@pytest.mark.parametrize("track", MODULES)
def test_stand_in_has_their_interface(theirs, track):
    folder = STAND_INS / "big_ann_benchmarks"
    path = {
        "none": "benchmark/algorithms/base.py",
        "ood": "neurips23/ood/base.py",
        "filter": "neurips23/filter/base.py",
    }[track]
    code = {}
    exec(compile((folder / path).read_text(), path, "exec"), code)
    base = bases(theirs)[track]
    assert parameters(code[base.__name__]) == parameters(base)


def definitions(theirs, track, metric):
    module = theirs.module("benchmark.algorithms.definitions")
    return module.get_definitions(
        str(theirs.folder / DEFINITIONS[track]), 8, "ours", metric, 10
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("track", MODULES)
def test_definitions(theirs, track, metric):
    found = definitions(theirs, track, metric)
    expected = {
        (name, constructor, metric, mode)
        for name, constructor in (
            ("faiss-bits", "FaissBitsCPU"), ("faiss-bits-gpu", "FaissBitsGPU")
        )
        for mode in MODES
    }
    assert len(found) == len(expected)
    assert expected == {
        (d.algorithm, d.constructor, *d.arguments) for d in found
    }
    assert {d.module for d in found} == {MODULES[track]}
    # install.py names the image after the end of the Dockerfile's name. GPUs
    # are not in images: the tag of the GPU's must be no image's.
    image = "billion-scale-benchmark-faiss_bits"
    for d in found:
        assert (d.docker_tag == image) == (d.algorithm == "faiss-bits")
    assert not any(d.query_argument_groups for d in found)


@pytest.mark.parametrize("track", MODULES)
def test_a_run_as_their_runner_does_it(theirs, add_dataset, track):
    vectors, queries = make("ties", 200, 5, 1), make("ties", 70, 5, 2)
    tags, wanted = some_tags(200, 5, 3), some_tags(70, 5, 4, most=2)
    kind = "knn_filtered" if track == "filter" else "knn"
    ds = add_dataset(vectors, queries, "euclidean", kind, tags, wanted)
    allowed = allowed_by(tags, wanted) if track == "filter" else None
    expected = ranks("euclidean", queries, vectors, 10, allowed)
    base_runner = theirs.module("benchmark.algorithms.base_runner").BaseRunner
    runners = theirs.module("neurips23.common").RUNNERS
    runner = runners.get(track, base_runner)
    names = set()
    for definition in definitions(theirs, track, "euclidean"):
        module = theirs.module("benchmark.algorithms.definitions")
        if definition.algorithm.endswith("-gpu") and missing_gpu():
            with pytest.raises(RuntimeError, match="needs a GPU"):
                module.instantiate_algorithm(definition)
            continue
        algorithm = module.instantiate_algorithm(definition)
        assert not algorithm.load_index("ours")
        runner.build(algorithm, "ours")
        attributes, results = runner.run_task(
            algorithm, ds, "euclidean", 10, 2, kind, False
        )
        np.testing.assert_array_equal(results, expected)
        names.add(attributes["name"])
        pairs = 70 * 200 if allowed is None else allowed.sum()
        assert attributes["dist_comps"] == 2 * pairs
        algorithm.done()
    assert {"FaissBitsCPU(certified)", "FaissBitsCPU(plain)"} <= names
