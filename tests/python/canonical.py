"""The canonical distances of docs/exact.md and the answers that follow, bit for
bit, in numpy's float64: one rounded operation a call, so that none is fused."""

import numpy as np
import oracle

# Of ln 2, a part of 33 bits and what is left of it.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")


def log(a):
    """ln of numbers of 0 and more: a = 2^e m, s = (m - 1) / (m + 1), and a series
    in s^2."""
    m, e = np.frexp(a)
    low = m < _SQRT_HALF
    m, e = np.where(low, m * 2, m), np.where(low, e - 1, e)
    s = (m - 1) / (m + 1)
    z = s * s
    series = np.full_like(z, 1 / 23)
    for odd in range(21, 2, -2):
        series = series * z
        series = series + 1 / odd
    twice = 2 * s
    of_m = twice + (twice * z) * series
    return np.where(a == 0, -np.inf, e * _LN2_HIGH + (of_m + e * _LN2_LOW))


def power(a, p):
    """a^p for multiples of a half, by a square root and products."""
    halves = int(2 * p)
    assert halves == 2 * p and 0 < halves <= 64, p
    result = np.sqrt(a) if halves % 2 else np.ones_like(a)
    square = a
    for bit in range(6):
        if halves // 2 >> bit & 1:
            result = result * square
        square = square * square
    return result


def _sum(terms):
    """Sums of terms [n, d]: component i to sum i mod 8, then in one order."""
    n, d = terms.shape
    s = np.zeros((n, 8))
    for begin in range(0, d, 8):
        part = terms[:, begin : begin + 8]
        s[:, : part.shape[1]] += part
    return ((s[:, 0] + s[:, 4]) + (s[:, 2] + s[:, 6])) + (
        (s[:, 1] + s[:, 5]) + (s[:, 3] + s[:, 7])
    )


def _ratio(a, b):
    """a / b, where 0 / 0 is 0."""
    return np.where((a == 0) & (b == 0), 0, a / b)


def _x_log(x, middle):
    return np.where(x == 0, 0, x * log(_ratio(x, middle)))


def _of_query(row, x, metric, p):
    """Of one query, in float64."""
    if metric == "ip":
        return _sum(x * row)
    if metric == "cosine":
        squares = _sum(x * x) * _sum(row[None] * row)
        return _ratio(_sum(x * row), np.sqrt(squares))
    if metric == "jaccard":
        return _ratio(_sum(np.minimum(x, row)), _sum(np.maximum(x, row)))
    if metric == "jensenshannon":
        middle = 0.5 * (x + row)
        return 0.5 * _sum(_x_log(x, middle) + _x_log(row, middle))
    gaps = np.abs(x - row)
    if metric == "l2":
        return _sum(gaps * gaps)
    if metric == "l1":
        return _sum(gaps)
    if metric == "linf":
        return gaps.max(1)
    if metric == "lp":
        return _sum(power(gaps, p))
    if metric == "canberra":
        return _sum(_ratio(gaps, np.abs(x) + np.abs(row)))
    if metric == "braycurtis":
        return _ratio(_sum(gaps), _sum(np.abs(x + row)))
    raise ValueError(metric)


def distances(queries, vectors, metric, p=None):
    """float32 [q, n]; of finite vectors, for Jensen-Shannon of 0 and more. Lp:
    p a multiple of a half up to 32."""
    x = np.asarray(vectors, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows = [_of_query(q, x, metric, p) for q in np.asarray(queries, np.float64)]
    return np.stack(rows).astype(np.float32) + np.float32(0)  # zero has no sign


def distances_of_whole_numbers(queries, vectors, metric):
    """The same for components that are whole numbers up to 255 in size, whose
    sums are exact in any order: by products, for many large vectors."""
    assert np.array_equal(vectors, np.rint(vectors)) and np.abs(vectors).max() < 256
    if metric in ("l1", "linf"):
        gaps = np.empty_like(vectors)
        found = np.empty((len(queries), len(vectors)), np.float32)
        for row, query in zip(found, queries):
            np.abs(np.subtract(vectors, query, out=gaps), out=gaps)
            row[:] = gaps.sum(1) if metric == "l1" else gaps.max(1)
        return found
    q = np.asarray(queries, np.float64)
    x = np.asarray(vectors, np.float64)
    products = q @ x.T
    if metric == "ip":
        return products.astype(np.float32)
    of_x = np.einsum("ij,ij->i", x, x)[None, :]
    of_q = np.einsum("ij,ij->i", q, q)[:, None]
    if metric == "l2":
        return (of_x - 2 * products + of_q).astype(np.float32)
    assert metric == "cosine", metric
    with np.errstate(invalid="ignore"):
        return _ratio(products, np.sqrt(of_x * of_q)).astype(np.float32)


def check(true, k, D, I, metric):
    """Raises AssertionError unless D and I are the k best of each row of `true`
    [q, n] in every place and every bit; equal ones by the lower id."""
    full = min(k, true.shape[1])
    order = -true if metric in oracle.SIMILARITIES else true
    best = np.argsort(order, axis=1, kind="stable")[:, :full]
    np.testing.assert_array_equal(I[:, :full], best)
    wanted = np.take_along_axis(true, best, 1)
    np.testing.assert_array_equal(D[:, :full].view(np.uint32), wanted.view(np.uint32))
    assert (I[:, full:] == -1).all()
