"""The filter track of contrib/big_ann_benchmarks."""

import numpy as np
import pytest
from big_ann import (
    METRICS,
    add_dataset,  # noqa: F401
    allowed_by,
    make_algorithm,
    name,  # noqa: F401
    ranks,
    some_tags,
    sparse,
    theirs,  # noqa: F401
)
from conftest import make


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_filtered_places_are_float64s(theirs, add_dataset, name, metric, dtype):
    """Queries of no tags, of one that no vector has, and of several."""
    rng = np.random.default_rng(4)
    vectors = rng.integers(0, 9, (600, 6)).astype(dtype)
    queries = rng.integers(0, 9, (500, 6)).astype(dtype)
    tags = some_tags(600, 12, 5, most=3)
    wanted = some_tags(500, 13, 6, most=2)  # the last of them is none of theirs
    allowed = allowed_by(tags, wanted)
    counts = allowed.sum(1)
    assert (counts == 0).any() and (counts == 600).any()
    assert ((0 < counts) & (counts < 10)).any() and (counts > 50).any()
    add_dataset(vectors, queries, metric, "knn_filtered", tags, wanted)
    algorithm = make_algorithm(theirs, "filter", name, metric)
    algorithm.fit("ours")
    algorithm.filtered_query(queries, wanted, 10)
    np.testing.assert_array_equal(
        algorithm.get_results(), ranks(metric, queries, vectors, 10, allowed)
    )
    assert algorithm.get_additional() == {"dist_comps": counts.sum()}


def test_many_queries_of_one_filter(theirs, add_dataset, name):
    """More than one thread takes at a time, and k above what is allowed."""
    vectors, queries = make("ties", 300, 4, 1), make("ties", 333, 4, 2)
    tags = sparse.csr_matrix(np.arange(300)[:, None] % 30 == [[0, 1]])
    wanted = sparse.csr_matrix(np.ones((333, 1)) * [[1, 0]])
    add_dataset(vectors, queries, "euclidean", "knn_filtered", tags, wanted)
    algorithm = make_algorithm(theirs, "filter", name)
    algorithm.fit("ours")
    algorithm.filtered_query(queries, wanted, 12)
    expected = ranks(
        "euclidean", queries, vectors, 12, allowed_by(tags, wanted)
    )
    assert (expected[:, 9] >= 0).all() and (expected[:, 10] == -1).all()
    np.testing.assert_array_equal(algorithm.get_results(), expected)
    # Batches and single queries alike.
    for i in (0, 100, 332):
        algorithm.filtered_query(queries[i : i + 1], wanted[i : i + 1], 12)
        np.testing.assert_array_equal(
            algorithm.get_results(), expected[i : i + 1]
        )


def test_tags_in_any_order_and_twice(theirs, add_dataset):
    """A CSR matrix need not be sorted, nor name a column once."""
    vectors = make("normal", 4, 3, 1)
    start, ids = [0, 3, 4, 6, 8], [2, 0, 2, 1, 1, 0, 0, 2]
    tags = sparse.csr_matrix((np.ones(8), ids, start), (4, 3))
    # Tags 2 and 0, 2 alone, and 0 behind one that no vector has.
    wanted = sparse.csr_matrix(
        (np.ones(6), [2, 0, 2, 2, 9, 0], [0, 3, 4, 6]), (3, 10)
    )
    assert not tags.has_sorted_indices and not wanted.has_sorted_indices
    add_dataset(vectors, None, "euclidean", "knn_filtered", tags)
    algorithm = make_algorithm(theirs, "filter", "FaissBitsCPU")
    algorithm.fit("ours")
    algorithm.filtered_query(vectors[:3], wanted, 4)
    found = [sorted(row) for row in algorithm.get_results().tolist()]
    assert found == [[-1, -1, 0, 3], [-1, -1, 0, 3], [-1] * 4]
    assert algorithm.get_additional() == {"dist_comps": 2 + 2}
    assert tags.indices.tolist() == ids  # the data set's, left as they were


def test_filter_errors(theirs, add_dataset):
    vectors = make("normal", 10, 3, 1)
    tags = some_tags(10, 4, 1)
    algorithm = make_algorithm(theirs, "filter", "FaissBitsCPU")
    with pytest.raises(RuntimeError, match=r"a query before fit\(\)"):
        algorithm.filtered_query(vectors, tags, 1)
    add_dataset(vectors)
    algorithm.fit("ours")
    with pytest.raises(RuntimeError, match="has no tags"):
        algorithm.filtered_query(vectors, tags, 1)
    add_dataset(vectors, None, "euclidean", "knn_filtered", tags[:9])
    with pytest.raises(ValueError, match="tags of 9 vectors, but 10"):
        algorithm.fit("ours")
    add_dataset(vectors, None, "euclidean", "knn_filtered", tags)
    algorithm.fit("ours")
    with pytest.raises(ValueError, match="filter has 9 rows, X has 10"):
        algorithm.filtered_query(vectors, tags[:9], 1)
    with pytest.raises(ValueError, match="k = 0"):
        algorithm.filtered_query(vectors, tags, 0)
    with pytest.raises(ValueError, match=r"x has shape \(\d+, 2\)"):
        algorithm.filtered_query(vectors[:, :2], tags, 1)
