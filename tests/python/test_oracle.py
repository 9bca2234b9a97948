"""The oracle against tables written by hand, and its checks against wrong
answers: a check that cannot fail checks nothing."""

import numpy as np
import oracle
import pytest

NAN, INF = np.nan, np.inf

VECTORS = np.array([[0, 0], [3, 4], [1, 0], [0, 1]], np.float32)
QUERY = np.array([[1, 1]], np.float32)


def test_distances_by_hand():
    assert oracle.distances(QUERY, VECTORS).tolist() == [[2, 13, 1, 1]]
    assert oracle.distances(QUERY, VECTORS, True).tolist() == [[0, 7, 1, 1]]
    for metric, p, expected in (
        ("l1", None, [2, 5, 1, 1]),
        ("linf", None, [1, 3, 1, 1]),
        ("lp", 3, [2, 35, 1, 1]),
        ("cosine", None, [0, 7 / np.sqrt(50), np.sqrt(0.5), np.sqrt(0.5)]),
        ("canberra", None, [2, 1.1, 1, 1]),
        ("braycurtis", None, [1, 5 / 9, 1 / 3, 1 / 3]),
        ("jaccard", None, [0, 2 / 7, 1 / 2, 1 / 2]),
        (
            "jensenshannon",
            None,
            [
                np.log(2),
                np.log(1.5**3 * 0.5 * 1.6**4 * 0.4) / 2,
                np.log(2) / 2,
                np.log(2) / 2,
            ],
        ),
    ):
        got = oracle.distances(QUERY, VECTORS, metric=metric, p=p)
        np.testing.assert_allclose(got, [expected], rtol=1e-14)


@pytest.mark.parametrize(
    "values, k, largest, expected",
    [
        ([3, 1, 2], 2, False, [1, 2]),
        ([3, 1, 2], 2, True, [0, 2]),
        ([5, 5, 5], 2, False, [0, 1]),
        ([5, 5, 5], 2, True, [0, 1]),
        ([1, 2], 4, False, [0, 1, -1, -1]),
        ([], 2, False, [-1, -1]),
        ([NAN, 2, 1], 3, False, [2, 1, 0]),
        ([NAN, 2, 1], 3, True, [1, 2, 0]),
        ([NAN, NAN], 2, False, [0, 1]),
        ([INF, -INF, NAN, 0], 4, False, [1, 3, 0, 2]),
        ([INF, -INF, NAN, 0], 4, True, [0, 3, 1, 2]),
        ([0.0, -0.0], 2, False, [0, 1]),
    ],
)
def test_best_by_hand(values, k, largest, expected):
    assert oracle.best(values, k, largest).tolist() == expected


def test_select_by_hand():
    keys, ids = oracle.select(np.array([[2, 1], [NAN, 3]], np.float32), 3)
    assert ids.tolist() == [[1, 0, -1], [1, 0, -1]]
    assert keys[0].tolist() == [1, 2, oracle.FLOAT32_MAX]
    assert keys[1, 0] == 3 and np.isnan(keys[1, 1])


RIGHT_D, RIGHT_I = [[1, 1, 2]], [[2, 3, 0]]


def check(D, I):
    oracle.check_knn(
        QUERY, VECTORS, len(D[0]), np.array(D, np.float32), np.array(I)
    )


def test_check_takes_right_answers():
    check(RIGHT_D, RIGHT_I)
    check(RIGHT_D, [[3, 2, 0]])  # a tie the other way round
    check([[1, 1, 2, 13, oracle.FLOAT32_MAX]], [[2, 3, 0, 1, -1]])


def test_check_of_other_metrics():
    for metric, p, D, I in (
        ("l1", None, [[1, 1, 2]], [[2, 3, 0]]),
        ("linf", None, [[1, 1, 1, 3]], [[0, 2, 3, 1]]),
        ("lp", 3, [[1, 1, 2, 35]], [[2, 3, 0, 1]]),
        ("cosine", None, [[0.98994949, 0.70710678]], [[1, 2]]),
        ("canberra", None, [[1, 1, 1.1]], [[2, 3, 1]]),
        ("braycurtis", None, [[1 / 3, 1 / 3, 5 / 9]], [[2, 3, 1]]),
        ("jaccard", None, [[0.5, 0.5, 2 / 7]], [[2, 3, 1]]),
        ("jensenshannon", None, [[0.34657359, 0.34657359]], [[2, 3]]),
    ):
        D = np.array(D, np.float32)
        args = QUERY, VECTORS, D.shape[1]
        oracle.check_knn(*args, D, np.array(I), metric=metric, p=p)
        with pytest.raises(AssertionError):
            oracle.check_knn(*args, D * 1.001, np.array(I), metric=metric, p=p)
        with pytest.raises(AssertionError):
            oracle.check_knn(*args, D, np.array(I)[:, ::-1], metric="l2")


@pytest.mark.parametrize(
    "D, I",
    [
        ([[1, 1, 13]], [[2, 3, 1]]),  # a nearer one is missing
        ([[1, 1, 1]], [[2, 3, 3]]),  # the same twice
        ([[1, 2, 1]], [[2, 0, 3]]),  # out of order
        ([[1, 1, 2.1]], [[2, 3, 0]]),  # not its distance
        ([[1, 1, 2]], [[2, 3, 4]]),  # no such vector
        ([[1, 1, 2]], [[2, 3, -1]]),  # short without need
        ([[1, 1, 2, 13, 14]], [[2, 3, 0, 1, 1]]),  # not short where it must be
        ([[NAN, 1, 2]], [[2, 3, 0]]),
    ],
)
def test_check_refuses_wrong_answers(D, I):
    with pytest.raises(AssertionError):
        check(D, I)


def test_check_of_nan():
    """A vector at NaN is no result; the row is short for it."""
    vectors = np.array([[0, 0], [3, NAN], [1, 0], [NAN, 1]], np.float32)

    def check(D, I, queries=QUERY):
        D = np.array(D, np.float32)
        oracle.check_knn(queries, vectors, D.shape[1], D, np.array(I))

    most = oracle.FLOAT32_MAX
    check([[1]], [[2]])
    check([[1, 2]], [[2, 0]])
    check([[1, 2, most, most]], [[2, 0, -1, -1]])
    check([[most]], [[-1]], QUERY * NAN)
    for D, I in (
        ([[1, 2, NAN]], [[2, 0, 1]]),
        ([[1, 2, most]], [[2, 0, 1]]),
        ([[1, 2, NAN]], [[2, 0, -1]]),
        ([[1, most, most]], [[2, -1, -1]]),
        ([[2, most]], [[0, -1]]),
    ):
        with pytest.raises(AssertionError):
            check(D, I)


def test_check_tie_order():
    D = np.array([[1, 1, 2]])
    oracle.check_tie_order(D, np.array([[2, 3, 0]]))
    with pytest.raises(AssertionError, match="ties"):
        oracle.check_tie_order(D, np.array([[3, 2, 0]]))


def test_bfloat16():
    # 1 + 2^-8 and 1 + 3 2^-8 are halfway: to the even neighbour.
    given = [1, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 0.1, 3.4e38, 2.0**-133]
    wanted = [1, 1, 1 + 4 * 2**-8, -1, 0.10009765625, np.inf, 2.0**-133]
    assert oracle.bfloat16(np.float32(given)).tolist() == wanted
