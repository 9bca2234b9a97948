"""The reference of the Python tests: plain numpy in float64.

It shares no code with what it checks, and is itself checked by hand-written
tables in test_oracle.py. Answers are compared by meaning: ids may differ where
true distances differ by less than float32 arithmetic rounds.
"""

import numpy as np

FLOAT32_MAX = np.finfo(np.float32).max


def distances(queries, vectors, inner_product=False):
    """All distances [q, n] in float64: squared L2 or inner product."""
    q = np.asarray(queries, np.float64)
    x = np.asarray(vectors, np.float64)
    out = np.empty((len(q), len(x)))
    with np.errstate(invalid="ignore", over="ignore"):
        for i, row in enumerate(q):
            if inner_product:
                out[i] = (x * row).sum(1)
            else:
                out[i] = np.square(x - row).sum(1)
    return out


def best(values, k, largest=False):
    """The k best of one row as positions: best first, equal values by lower
    position, NaN behind every number, -1 where the row is short."""
    values = np.asarray(values)
    numbers = [i for i in range(len(values)) if not np.isnan(values[i])]
    numbers.sort(key=lambda i: (-values[i] if largest else values[i], i))
    nans = [i for i in range(len(values)) if np.isnan(values[i])]
    order = (numbers + nans)[:k]
    return np.array(order + [-1] * (k - len(order)), np.int64)


def select(keys, k, largest=False):
    """select_k: keys [rows, cols] to keys and ids [rows, k]."""
    limit = np.finfo(keys.dtype).max
    ids = np.array([best(row, k, largest) for row in keys], np.int64)
    ids = ids.reshape(len(keys), k)
    out = np.full(ids.shape, -limit if largest else limit, keys.dtype)
    for row in range(len(keys)):
        found = ids[row] >= 0
        out[row, found] = keys[row, ids[row, found]]
    return out, ids


def rounding(queries, vectors):
    """An upper bound on what float32 arithmetic does to a distance, [q, n].

    (d + 4) units in the last place of (|q| + |x|)^2, which bounds |q|^2 +
    2 |<q, x>| + |x|^2 and so every term on the way, in any order of sums.
    """
    q = np.linalg.norm(np.asarray(queries, np.float64), axis=1)[:, None]
    x = np.linalg.norm(np.asarray(vectors, np.float64), axis=1)[None, :]
    d = np.shape(queries)[1]
    return (d + 4) * np.finfo(np.float32).eps * np.square(q + x)


def check_knn(queries, vectors, k, D, I, inner_product=False):
    """Raises AssertionError, with the place, unless D and I [q, k] are a right
    answer for finite input.

    Checked for every query: ids in range and unique, -1 exactly where there
    is no k-th vector, D what the id's true distance is, D in order, no vector
    outside that is truly nearer, by more than rounding, than one inside.
    """
    q, n = len(queries), len(vectors)
    assert D.shape == (q, k) and I.shape == (q, k), (D.shape, I.shape)
    true = distances(queries, vectors, inner_product)
    slack = rounding(queries, vectors)
    if inner_product:
        true = -true
    sign = -1.0 if inner_product else 1.0
    found = min(k, n)
    for row in range(q):
        where = f"query {row} of {q}, n={n}, k={k}"
        ids, got = I[row, :found], sign * D[row, :found].astype(np.float64)
        assert (I[row, found:] == -1).all(), f"{where}: ids {I[row]}"
        assert (sign * D[row, found:] == FLOAT32_MAX).all(), f"{where}: {D[row]}"
        assert ((ids >= 0) & (ids < n)).all(), f"{where}: ids {ids}"
        assert len(set(ids.tolist())) == found, f"{where}: ids repeat, {ids}"
        wrong = np.abs(got - true[row, ids]) > slack[row, ids]
        assert not wrong.any(), (
            f"{where}: distances {got[wrong]}, true {true[row, ids][wrong]}"
        )
        assert (np.diff(got) >= 0).all(), f"{where}: not in order, {got}"
        if 0 < found < n:
            outside = np.ones(n, bool)
            outside[ids] = False
            lead = true[row, ids].max() - true[row][outside]
            allowed = slack[row, ids].max() + slack[row][outside]
            assert (lead <= allowed).all(), (
                f"{where}: vector {np.flatnonzero(outside)[(lead - allowed).argmax()]}"
                " is nearer than one that was returned"
            )


def check_tie_order(D, I):
    """Equal distances come lower id first."""
    equal = (D[:, 1:] == D[:, :-1]) & (I[:, 1:] >= 0)
    swapped = equal & (I[:, 1:] <= I[:, :-1])
    assert not swapped.any(), f"ties out of order at {np.argwhere(swapped)[:5]}"
