"""The reference of the Python tests: plain numpy in float64.

It shares no code with what it checks, and is itself checked by hand-written
tables in test_oracle.py. Answers are compared by meaning: ids may differ where
true distances differ by less than float32 arithmetic rounds.
"""

import numpy as np

FLOAT32_MAX = np.finfo(np.float32).max


SIMILARITIES = ("ip", "cosine", "jaccard")


def distances(queries, vectors, inner_product=False, metric=None, p=None):
    """All distances [q, n] in float64: squared L2 or inner product, or `metric`
    of "l2", "ip", "cosine", "l1", "linf", "lp" (the sum of p-th powers),
    "canberra", "braycurtis", "jensenshannon" and "jaccard" (0 / 0 is 0)."""
    q = np.asarray(queries, np.float64)
    x = np.asarray(vectors, np.float64)
    out = np.empty((len(q), len(x)))
    metric = metric or ("ip" if inner_product else "l2")
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for i, row in enumerate(q):
            gaps = np.abs(x - row)
            if metric in ("ip", "cosine"):
                out[i] = (x * row).sum(1)
            elif metric == "l2":
                out[i] = np.square(gaps).sum(1)
            elif metric == "l1":
                out[i] = gaps.sum(1)
            elif metric == "linf":
                out[i] = gaps.max(1)
            elif metric == "lp":
                out[i] = (gaps**p).sum(1)
            elif metric == "canberra":
                out[i] = _ratio(gaps, np.abs(x) + np.abs(row)).sum(1)
            elif metric == "braycurtis":
                out[i] = _ratio(gaps.sum(1), np.abs(x + row).sum(1))
            elif metric == "jensenshannon":
                middle = (x + row) / 2
                out[i] = (_x_log(x, middle) + _x_log(row, middle)).sum(1) / 2
            elif metric == "jaccard":
                out[i] = _ratio(
                    np.minimum(x, row).sum(1), np.maximum(x, row).sum(1)
                )
            else:
                raise ValueError(metric)
            if metric == "cosine":
                sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(row)
                out[i] = np.where(sizes == 0, 0, out[i] / sizes)
    return out


def _ratio(a, b):
    return np.where((a == 0) & (b == 0), 0, a / b)


def _x_log(x, middle):
    return np.where(x == 0, 0, x * np.log(x / middle))


def bfloat16(x):
    """float32 numbers rounded to bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


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


def rounding(queries, vectors, metric="l2", p=None, dtype=np.float32):
    """An upper bound on what arithmetic in `dtype` does to a distance, [q, n].

    l2, ip     (d + 4) units in the last place of (|q| + |x|)^2, which bounds
               |q|^2 + 2 |<q, x>| + |x|^2 and so every term on the way, in any
               order of sums
    cosine     3 d + 12 units: of a value of at most 1 in size
    l1, linf   d + 2 units of the value
    canberra   d + 12 units of the value; braycurtis 2 d + 8, jaccard 4 d + 12
    jensenshannon  d units of the value, and those of the logarithms: 8 (2 + log2
               of d and of the sums) units of the sums of the components
    lp         d + 16 p (1 + |ln gap|) + 16 units of it: the power is taken of a
               logarithm times p
    """
    d = np.shape(queries)[1]
    unit = np.finfo(dtype).eps
    if np.dtype(dtype) == np.float64:
        unit *= 2  # the reference rounds too
    if metric in ("l2", "ip"):
        q = np.linalg.norm(np.asarray(queries, np.float64), axis=1)[:, None]
        x = np.linalg.norm(np.asarray(vectors, np.float64), axis=1)[None, :]
        return (d + 4) * unit * np.square(q + x)
    if metric == "cosine":
        return np.full((len(queries), len(vectors)), (3 * d + 12) * unit)
    value = distances(queries, vectors, metric=metric, p=p)
    if metric == "jensenshannon":
        sums = np.abs(queries).sum(1)[:, None] + np.abs(vectors).sum(1)[None, :]
        logs = 2 + np.log2(2 * d) + np.abs(np.log2(sums + 1e-30))
        return d * unit * value + 8 * logs * unit * sums
    if metric != "lp":
        factor = {"canberra": d + 12, "braycurtis": 2 * d + 8}.get(metric)
        factor = 4 * d + 12 if metric == "jaccard" else factor or d + 2
        return factor * unit * value
    gaps = np.abs(np.subtract(queries[:, None], vectors[None], dtype=np.float64))
    logs = np.abs(np.log(gaps, out=np.zeros_like(gaps), where=gaps > 0))
    most = logs.max(2, initial=0)
    return (d + 16 + 16 * p * (1 + most)) * unit * value


def check_knn(
    queries, vectors, k, D, I, inner_product=False, metric=None, p=None
):
    """Raises AssertionError, with the place, unless D and I [q, k] are a right
    answer for input that is finite or NaN.

    Checked for every query: ids in range and unique, none at a true distance of
    NaN, -1 exactly where there is no k-th number, D what the id's true distance
    is, D in order, no vector outside that is truly nearer, by more than
    rounding, than one inside.
    """
    q, n = len(queries), len(vectors)
    assert D.shape == (q, k) and I.shape == (q, k), (D.shape, I.shape)
    metric = metric or ("ip" if inner_product else "l2")
    true = distances(queries, vectors, metric=metric, p=p)
    slack = rounding(queries, vectors, metric, p, D.dtype)
    sign = -1.0 if metric in SIMILARITIES else 1.0
    true = sign * true
    limit = np.finfo(D.dtype).max
    for row in range(q):
        numbers = ~np.isnan(true[row])
        found = min(k, int(numbers.sum()))
        where = f"query {row} of {q}, n={n}, k={k}, {metric}"
        ids, got = I[row, :found], sign * D[row, :found].astype(np.float64)
        assert (I[row, found:] == -1).all(), f"{where}: ids {I[row]}"
        assert (sign * D[row, found:] == limit).all(), f"{where}: {D[row]}"
        assert ((ids >= 0) & (ids < n)).all(), f"{where}: ids {ids}"
        assert len(set(ids.tolist())) == found, f"{where}: ids repeat, {ids}"
        assert numbers[ids].all(), f"{where}: NaN is no result, {ids}"
        assert not np.isnan(got).any(), f"{where}: NaN is no result, {got}"
        wrong = np.abs(got - true[row, ids]) > slack[row, ids]
        assert not wrong.any(), (
            f"{where}: distances {got[wrong]}, true {true[row, ids][wrong]}"
        )
        assert (np.diff(got) >= 0).all(), f"{where}: not in order, {got}"
        if 0 < found < numbers.sum():
            outside = numbers.copy()
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
