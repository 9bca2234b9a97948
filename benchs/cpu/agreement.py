"""Whether two answers of exact searches agree, for every metric."""

import numpy as np


def _power(metric):
    """p of a metric named Lp3 and so on."""
    return float(metric[2:])


def _quotient(a, b):
    """a / b, 0 for 0 / 0; b is 0 or more."""
    return np.divide(a, b, out=np.zeros_like(b), where=b > 0)


def _divergence(x, middle):
    """sum x log(x / middle), where 0 log 0 counts 0."""
    parts = _quotient(x, middle)
    return (x * np.log(np.where(parts > 0, parts, 1))).sum(2)


def true_distances(queries, vectors, ids, metric):
    """[q, k] float64 distances of each query to the vectors of its row of
    `ids`, as the metric defines them; ids of -1 give NaN."""
    found = vectors[np.maximum(ids, 0)].astype(np.float64)
    asked = queries.astype(np.float64)[:, None, :]
    if metric in ("IP", "cosine"):
        out = (found * asked).sum(2)
        if metric == "cosine":
            lengths = np.linalg.norm(found, axis=2) * np.linalg.norm(
                asked, axis=2)
            out = np.divide(out, lengths, out=np.zeros_like(out),
                            where=lengths > 0)
    elif metric == "Jaccard":
        out = _quotient(np.minimum(found, asked).sum(2),
                        np.maximum(found, asked).sum(2))
    elif metric == "JensenShannon":
        middle = (found + asked) / 2
        out = sum(_divergence(x, middle) for x in (found, asked)) / 2
    else:
        gap = np.abs(found - asked)
        if metric == "L2":
            out = np.square(gap).sum(2)
        elif metric == "L1":
            out = gap.sum(2)
        elif metric == "Linf":
            out = gap.max(2)
        elif metric == "Canberra":
            out = _quotient(gap, np.abs(found) + np.abs(asked)).sum(2)
        elif metric == "BrayCurtis":
            out = _quotient(gap.sum(2), np.abs(found + asked).sum(2))
        else:
            out = (gap ** _power(metric)).sum(2)
    out[ids < 0] = np.nan
    return out


def rounding(queries, vectors, ids, metric):
    """[q, k] what the arithmetic of the vectors' type may add to a distance,
    a little generously: sums of d terms round to about sqrt(d) units in the
    last place of what bounds every term on the way."""
    found = np.abs(vectors[np.maximum(ids, 0)].astype(np.float64))
    asked = np.abs(queries.astype(np.float64))[:, None, :]
    if metric in ("L2", "IP"):
        size = np.square(found).sum(2) + np.square(asked).sum(2)
    elif metric in ("cosine", "BrayCurtis", "Jaccard"):
        size = np.full(ids.shape, 2.0)
    elif metric == "Canberra":
        size = np.full(ids.shape, float(queries.shape[1]))
    elif metric == "JensenShannon":
        size = (found + asked).sum(2)
    elif metric == "L1":
        size = found.sum(2) + asked.sum(2)
    elif metric == "Linf":
        size = np.maximum(found.max(2), asked.max(2))
    else:
        p = _power(metric)
        size = p * ((found + asked) ** p).sum(2)
    units = 4 + np.sqrt(queries.shape[1])
    return units * np.finfo(vectors.dtype).eps * size


def share_agreed(ours, theirs, queries, vectors, metric):
    """Share of the places [q, k] in which two answers name the same vector, or
    two whose true distances differ by less than the arithmetic rounds."""
    if ours.shape != theirs.shape:
        raise ValueError(f"ours is {ours.shape}, theirs {theirs.shape}")
    same = ours == theirs
    rows, places = np.nonzero(~same)
    tied = 0
    for start in range(0, len(rows), 1024):  # bounded memory
        part = slice(start, start + 1024)
        asked = queries[rows[part]]
        a = ours[rows[part], places[part]][:, None]
        b = theirs[rows[part], places[part]][:, None]
        gap = np.abs(true_distances(asked, vectors, a, metric)
                     - true_distances(asked, vectors, b, metric))
        allowed = np.maximum(rounding(asked, vectors, a, metric),
                             rounding(asked, vectors, b, metric))
        tied += int((gap <= allowed).sum())  # NaN, from id -1, is not tied
    return float((same.sum() + tied) / max(1, same.size))


def worst_distance(distances, ids, queries, vectors, metric):
    """Largest error of an answer's distances, as a share of what the
    arithmetic may add: above 1 is too much. Places without a vector do not
    count."""
    there = ids >= 0
    if not there.any():
        return 0.0
    worst = 0.0
    for row in range(len(ids)):  # bounded memory
        part = slice(row, row + 1)
        error = np.abs(distances[part].astype(np.float64)
                       - true_distances(queries[part], vectors, ids[part],
                                        metric))
        allowed = rounding(queries[part], vectors, ids[part], metric)
        allowed = np.maximum(allowed, np.finfo(vectors.dtype).tiny)
        if there[part].any():
            worst = max(worst, float((error / allowed)[there[part]].max()))
    return worst
