"""contrib/all_knn.py: the trees, the merging of lists, and what comes out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest
from conftest import make

import faiss_bits
from faiss_bits.contrib import all_knn as module
from faiss_bits.contrib import projection_trees
from faiss_bits.contrib.all_knn import all_knn, recall

MOST = np.finfo(np.float32).max


def index_of(x, metric=faiss.METRIC_L2):
    index = faiss_bits.IndexFusedFlat(x.shape[1], metric)
    index.add(x)
    return index


# ---- leaves -----------------------------------------------------------------


@pytest.mark.parametrize("n, leaf_size", [
    (0, 5), (1, 1), (5, 1), (5, 5), (6, 5), (1000, 64), (1023, 64), (1024, 64),
    (1025, 64), (64, 1000),
])
def test_leaves_hold_every_id_once(n, leaf_size):
    x = make("normal", n, 7, 1)
    rng = np.random.default_rng(0)
    leaves = projection_trees.projection_leaves(x, leaf_size, rng)
    assert sorted(np.concatenate(leaves)) == list(range(n))
    sizes = [len(ids) for ids in leaves]
    assert max(sizes) <= leaf_size and max(sizes) - min(sizes) <= 1
    assert all(ids.dtype == np.int64 and (np.diff(ids) > 0).all() for ids in leaves)


@pytest.mark.parametrize("kind", ["equal", "ties", "ascending"])
def test_leaves_of_equal_projections(kind):
    leaves = projection_trees.projection_leaves(
        make(kind, 300, 4, 1), 16, np.random.default_rng(0)
    )
    assert sorted(np.concatenate(leaves)) == list(range(300))


def test_leaves_keep_far_groups_apart():
    x = make("normal", 256, 8, 1)
    x[128:] += 1000  # no split in the middle can miss that
    first, second = projection_trees.projection_leaves(x, 128, np.random.default_rng(0))
    assert {tuple(first), tuple(second)} == {
        tuple(range(128)), tuple(range(128, 256)),
    }


def test_trees_follow_their_seed():
    x = make("normal", 200, 6, 1)
    trees = [
        projection_trees.projection_leaves(x, 25, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    ]
    same = [all(map(np.array_equal, trees[0], tree)) for tree in trees[1:]]
    assert same == [True, False]


def test_bad_leaf_size():
    with pytest.raises(ValueError, match="leaf_size = 0"):
        projection_trees.projection_leaves(
            make("normal", 5, 2, 1), 0, np.random.default_rng(0)
        )


# ---- merging ----------------------------------------------------------------


def merged(*lists):
    arrays = [
        np.array([x], np.float32 if place % 2 == 0 else np.int64)
        for place, x in enumerate(lists)
    ]
    D, I = projection_trees.merge_neighbours(*arrays)
    assert D.dtype == np.float32 and I.dtype == np.int64
    return D[0].tolist(), I[0].tolist()


@pytest.mark.parametrize("lists, D, I", [
    (([1, 3], [7, 8], [2, 4], [5, 6]), [1, 2], [7, 5]),
    (([1, 3], [7, 8], [1, 3], [7, 8]), [1, 3], [7, 8]),
    (([1, 3], [7, 8], [3, 3], [2, 9]), [1, 3], [7, 2]),
    (([3, 3], [7, 8], [2.5, 3], [8, 7]), [2.5, 3], [8, 7]),  # other last bits
    (([1, MOST], [7, -1], [2, MOST], [5, -1]), [1, 2], [7, 5]),
    (([1, MOST], [7, -1], [1, MOST], [7, -1]), [1, MOST], [7, -1]),
    (([MOST, MOST], [-1, -1], [MOST, MOST], [-1, -1]), [MOST, MOST], [-1, -1]),
    (([0], [3], [0, 0, 0], [9, 2, 3]), [0], [2]),
])
def test_merge_by_hand(lists, D, I):
    assert merged(*lists) == (D, I)


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_merge_against_a_set(k):
    rng = np.random.default_rng(k)
    distances = rng.integers(0, 20, 50).astype(np.float32)  # of every id
    I = np.array([rng.permutation(50)[:k] for _ in range(30)])
    newI = np.array([rng.permutation(50)[:k] for _ in range(30)])
    D, merged_I = projection_trees.merge_neighbours(
        distances[I], I, distances[newI], newI
    )
    for row in range(30):
        best = sorted({(distances[i], i) for i in [*I[row], *newI[row]]})[:k]
        assert list(zip(D[row], merged_I[row])) == best


# ---- the solver -------------------------------------------------------------


@pytest.mark.parametrize("metric", module.METRICS)
@pytest.mark.parametrize("k", [1, 5, 60])
def test_one_leaf_is_exact(metric, k):
    x = make("ties", 50, 6, 1)
    index = index_of(x, metric)
    if metric == faiss.METRIC_Lp:
        index.metric_arg = 3
    D, I = all_knn(index, k, 1, 64, progress=False)
    exact_D, exact_I = index.search(x, k)
    np.testing.assert_array_equal(I, exact_I)
    np.testing.assert_array_equal(D, exact_D)
    assert recall(index, D, I) == 1


def test_more_trees_find_more():
    x = module.embedded_gaussian(2000, 32, seed=3)
    index = index_of(x)
    found = [
        recall(index, D.copy(), I.copy())
        for D, I in module.refine(index, 10, 6, 250)
    ]
    assert all(a <= b for a, b in zip(found, found[1:]))
    assert found[0] < found[-1] and found[-1] > 0.9


def test_lists_are_what_they_say():
    x = make("normal", 700, 5, 2)
    index = index_of(x)
    D, I = all_knn(index, 9, 3, 100, progress=False)
    assert D.shape == I.shape == (700, 9)
    assert (np.diff(D, axis=1) >= 0).all() and (I >= 0).all()
    assert all(len(set(row)) == 9 for row in I.tolist())
    assert (I[:, 0] == np.arange(700)).all(), "everyone is its own nearest"
    true = np.square(x[I].astype(np.float64) - x[:, None]).sum(2)
    np.testing.assert_allclose(D, true, atol=1e-4)


def test_same_seed_same_answer():
    index = index_of(make("normal", 500, 8, 1))
    answers = [
        all_knn(index, 5, 2, 60, seed, progress=False) for seed in (4, 4, 5)
    ]
    np.testing.assert_array_equal(answers[0][1], answers[1][1])
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    assert (answers[0][1] != answers[2][1]).any()


def test_gathered_leaves_give_the_same():
    x = make("normal", 600, 8, 1)
    ours = all_knn(index_of(x), 7, 3, 80, progress=False)
    theirs = all_knn(module.GatheredLeaves(x), 7, 3, 80, progress=False)
    assert (ours[1] == theirs[1]).mean() > 0.99  # near ties may swap
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-4)


def test_fewer_vectors_than_neighbours():
    x = make("normal", 3, 4, 1)
    for solver in (index_of(x), module.GatheredLeaves(x)):
        D, I = all_knn(solver, 5, 2, 8, progress=False)
        assert (I[:, 3:] == -1).all() and (D[:, 3:] == MOST).all()
        assert (np.sort(I[:, :3], axis=1) == np.arange(3)).all()


def test_empty_index():
    D, I = all_knn(faiss_bits.IndexFusedFlat(4), 5, progress=False)
    assert D.shape == I.shape == (0, 5)
    assert recall(faiss_bits.IndexFusedFlat(4), D, I) == 1


def test_recall_counts_what_is_missing():
    x = make("normal", 40, 6, 1)
    index = index_of(x)
    D, I = index.search(x, 4)
    assert recall(index, D, I) == 1
    D[:, 3], I[:, 3] = MOST, -1
    assert recall(index, D, I) == 0.75
    D[:], I[:] = MOST, -1
    assert recall(index, D, I, sample=10) == 0


def test_recall_takes_ties():
    index = index_of(np.zeros((30, 3), np.float32))
    assert recall(index, np.zeros((30, 2), np.float32), np.full((30, 2), 29)) == 1


@pytest.mark.parametrize("arguments, kind, words", [
    ({"k": 0}, ValueError, "k = 0"),
    ({"k": 2.5}, TypeError, "k = 2.5"),
    ({"k": "a"}, TypeError, "k = 'a'"),
    ({"k": 2**31}, ValueError, "k = 2147483648"),
    ({"k": 5, "iterations": 0}, ValueError, "iterations = 0"),
    ({"k": 5, "iterations": 1.5}, TypeError, "iterations = 1.5"),
    ({"k": 5, "leaf_size": 4}, ValueError, "leaf_size = 4 is less than k = 5"),
    ({"k": 5, "leaf_size": 100.5}, TypeError, "leaf_size = 100.5"),
    ({"k": 5, "seed": -1}, ValueError, "seed = -1"),
    ({"k": 5, "seed": None}, TypeError, "seed = None"),
    ({"k": 5, "index": None}, TypeError, "index is a NoneType"),
    ({"k": 5, "index": faiss.IndexFlatL2(3)}, TypeError, "index is a IndexFlatL2"),
])
def test_bad_arguments(arguments, kind, words):
    arguments = {"index": index_of(make("normal", 20, 3, 1)), **arguments}
    with pytest.raises(kind, match=words):
        all_knn(progress=False, **arguments)


def test_numbers_of_numpy():
    index = index_of(make("normal", 40, 3, 1))
    D, I = all_knn(index, 5, 2, 20, 3, progress=False)
    other = all_knn(index, *map(np.int32, (5, 2, 20, 3)), progress=False)
    np.testing.assert_array_equal(other[0], D)
    np.testing.assert_array_equal(other[1], I)


def test_leaves_that_get_too_small():
    index = index_of(make("normal", 30, 3, 1))
    with pytest.raises(ValueError, match="leaf_size = 20: .* of 15, less than"):
        all_knn(index, 16, 1, 20, progress=False)
    D, I = all_knn(index, 15, 1, 20, progress=False)
    assert (I >= 0).all()


def test_similarities_are_refused():
    index = index_of(make("normal", 20, 3, 1), faiss.METRIC_INNER_PRODUCT)
    with pytest.raises(ValueError, match="metric_type = 0"):
        all_knn(index, 3, progress=False)


def test_interrupted_refinement_keeps_what_is_there():
    x = make("normal", 400, 6, 1)
    index = index_of(x)
    calls = 0

    class Stops:
        ntotal, d, metric_type = index.ntotal, index.d, index.metric_type

        def vectors(self):
            return x

        def knn_subset(self, *args):
            nonlocal calls
            calls += 1
            if calls > 12:  # in the second of two trees of 8 leaves
                raise KeyboardInterrupt
            return index.knn_subset(*args)

    steps = []
    with pytest.raises(KeyboardInterrupt):
        for D, I in module.refine(Stops(), 3, 2, 50):
            steps.append((D.copy(), I.copy()))
    assert len(steps) == 1 and (steps[0][1] >= 0).all()


def test_embedded_gaussian_has_ten_dimensions():
    x = module.embedded_gaussian(200, 40, seed=1).astype(np.float64)
    assert np.linalg.matrix_rank(x, tol=1e-3) == 10
    np.testing.assert_array_equal(x, module.embedded_gaussian(200, 40, seed=1))
    assert module.embedded_gaussian(5, 3).shape == (5, 3)


# ---- the program ------------------------------------------------------------

SMALL = ["--n", "600", "--ds", "8,16", "--ks", "4", "--leaf-size", "100"]


def test_program_leaves_rows(tmp_path, capsys):
    path = tmp_path / "out" / "rows.json"
    assert module.main([*SMALL, "--json", str(path), "--commit", "abc"]) == 0
    data = json.loads(path.read_text())
    assert data["meta"]["commit"] == "abc"
    assert [(r["bench"], r["method"], r["d"]) for r in data["rows"]] == [
        ("all_knn_cpu", method, d) for d in (8, 16)
        for method in ("faiss_bits", "gathered_faiss")
    ]
    for row in data["rows"]:
        assert 0 < row["search_ms"] <= row["ms"] and 0 < row["recall"] <= 1
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_program_says_what_is_wrong(capsys):
    assert module.main([*SMALL[:-1], "3", "--only-ours"]) == 2
    assert "leaf_size = 3" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, words", [
    (["--n", "-5"], "--n -5"),
    (["--ds", "8,0"], "--ds 0"),
    (["--ds", "a"], "'a' is no list of whole numbers"),
])
def test_program_names_bad_arguments(capsys, arguments, words):
    with pytest.raises(SystemExit):
        module.main([*SMALL, *arguments])
    assert words in capsys.readouterr().err


def test_program_looks_at_the_file_first(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "run", None)
    assert module.main([*SMALL, "--json", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().err


def test_program_keeps_rows_when_interrupted(tmp_path, monkeypatch):
    path, solve = tmp_path / "rows.json", module._solve

    def once(index, args, k, label):
        if "gathered" in label:
            raise KeyboardInterrupt
        return solve(index, args, k, label)

    monkeypatch.setattr(module, "_solve", once)
    assert module.main([*SMALL, "--json", str(path)]) == 130
    assert len(json.loads(path.read_text())["rows"]) == 1


def test_as_a_program(monkeypatch):
    packages = [Path(p.__file__).parents[1] for p in (faiss_bits, faiss, np)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, packages)))
    result = subprocess.run(
        [sys.executable, "-m", "faiss_bits.contrib.all_knn", *SMALL,
         "--only-ours"],
        capture_output=True, text=True, timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("recall") == 2
