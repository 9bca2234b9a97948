"""benchs/cpu: whether answers agree, and how many rounds a method plays."""

import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchs"), str(ROOT / "benchs" / "cpu")]
sys.dont_write_bytecode = True

import agreement  # noqa: E402
import turns  # noqa: E402

# ---- agreement --------------------------------------------------------------

X = np.array([[0, 0], [2, 0], [0, 2], [3, 4]], np.float32)
Q = np.array([[0, 0], [3, 4]], np.float32)


@pytest.mark.parametrize("metric, expected", [
    ("L2", [[4, 25], [17, 0]]),
    ("IP", [[0, 0], [6, 25]]),
    ("cosine", [[0, 0], [0.6, 1]]),
    ("L1", [[2, 7], [5, 0]]),
    ("Linf", [[2, 4], [4, 0]]),
    ("Lp3", [[8, 91], [65, 0]]),
    ("Canberra", [[1, 2], [1.2, 0]]),
    ("BrayCurtis", [[1, 1], [5 / 9, 0]]),
    ("JensenShannon", [
        [np.log(2), 3.5 * np.log(2)],
        [(2 * np.log(0.8) + 3 * np.log(1.2) + 4 * np.log(2)) / 2, 0],
    ]),
    ("Jaccard", [[0, 0], [2 / 7, 1]]),
])
def test_distances_by_hand(metric, expected):
    out = agreement.true_distances(Q, X, np.array([[1, 3], [1, 3]]), metric)
    np.testing.assert_allclose(out, expected)
    assert np.isnan(agreement.true_distances(Q, X, np.array([[-1], [0]]),
                                             metric)[0, 0])


@pytest.mark.parametrize("theirs, share", [
    ([[0, 1], [3, 1]], 1), ([[0, 2], [3, 1]], 1), ([[0, 3], [3, 1]], 0.75),
    ([[0, -1], [3, 1]], 0.75), ([[1, 0], [3, 1]], 0.5),
])
def test_ties_agree(theirs, share):
    ours = np.array([[0, 1], [3, 1]])
    assert agreement.share_agreed(ours, np.array(theirs), Q, X, "L2") == share


def test_answers_of_other_shapes():
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        agreement.share_agreed(np.zeros((2, 1)), np.zeros((2, 2)), Q, X, "L2")


@pytest.mark.parametrize("metric", [
    "L2", "IP", "cosine", "L1", "Linf", "Lp3", "Canberra", "BrayCurtis",
    "JensenShannon", "Jaccard",
])
def test_float32_is_within_its_rounding(metric):
    rng = np.random.default_rng(1)
    x, q = (rng.random((n, 50), np.float32) for n in (30, 4))
    ids = np.tile(np.arange(30), (4, 1))
    exact = agreement.true_distances(q, x, ids, metric)
    assert agreement.worst_distance(exact.astype(np.float32), ids, q, x,
                                    metric) < 0.1
    assert agreement.worst_distance(exact * 1.01, ids, q, x, metric) > 1
    assert agreement.worst_distance(exact, ids - 40, q, x, metric) == 0


# ---- turns ------------------------------------------------------------------


def test_rounds_get_fewer_as_calls_get_longer():
    rounds = [turns.rounds_for(s) for s in (0.01, 1, 5, 15, 500)]
    assert rounds == [9, 7, 5, 3, 2]


def test_far_behind_plays_less():
    turn = turns.Turn(None, "faiss_bits", "var6")
    turn.first = 0.5
    assert turns.wanted_rounds(turn, 9, best=0.4) == 9
    assert turns.wanted_rounds(turn, 9, best=0.1) == 1
    turn.first = 5
    assert turns.wanted_rounds(turn, 9, best=0.1) == 0  # the first call counts
    slow = turns.Turn(None, "faiss_cpu_173")
    slow.first = 5
    assert turns.wanted_rounds(slow, 9, best=0.1) == 9
    assert turns.wanted_rounds(turns.Turn(None, "numpy"), 9, 1) == 3
