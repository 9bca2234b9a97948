"""Comparing answers of exact searches by what they mean.

Two exact searches may differ in two ways only: which of several equally near
vectors they name, and the last bits of a distance. The functions here tell
such differences from wrong answers.
"""

from typing import NamedTuple, Optional

import numpy as np

__all__ = ["Agreement", "compare_ids", "first_hit_recall", "true_distances"]


class Agreement(NamedTuple):
    """Shares of the n x k places of two answers, 0..1."""

    same: float  #: the same id in the same place
    same_or_tied: float  #: or ids whose true distances are tied


def true_distances(queries, vectors, ids, inner_product=False):
    """Distances in float64 of each query to the vectors of its row of `ids`.

    queries [q, d], vectors [n, d], ids [q, k]; -1 gives NaN. Squared L2, or
    the inner product.
    """
    found = vectors[np.maximum(ids, 0)].astype(np.float64)
    wide = queries.astype(np.float64)[:, None, :]
    if inner_product:
        out = np.einsum("qkd,qkd->qk", found, np.broadcast_to(wide, found.shape))
    else:
        found -= wide
        out = np.einsum("qkd,qkd->qk", found, found)
    out[ids < 0] = np.nan
    return out


def _rounding(queries, vectors, ids):
    """What float32 arithmetic may add to a distance, a little generously:
    sums of d terms round to about sqrt(d) units in the last place of
    |q|^2 + |x|^2, which bounds every term on the way. [q, k]"""
    found = vectors[np.maximum(ids, 0)].astype(np.float64)
    size = np.einsum("qkd,qkd->qk", found, found)
    size += np.square(queries.astype(np.float64)).sum(1)[:, None]
    return (4 + np.sqrt(queries.shape[1])) * np.finfo(np.float32).eps * size


def compare_ids(ours, theirs, queries, vectors, inner_product=False) -> Agreement:
    """How far two answers agree, ours and theirs [q, k]. Places where they
    name different vectors count as tied if the true distances of the two
    differ by less than float32 arithmetic rounds."""
    if ours.shape != theirs.shape:
        raise ValueError(f"ours is {ours.shape}, theirs {theirs.shape}")
    if ours.size == 0:
        return Agreement(1.0, 1.0)
    same = ours == theirs
    rows, places = np.nonzero(~same)
    tied = 0
    for start in range(0, len(rows), 4096):  # bounded memory
        part = slice(start, start + 4096)
        a = ours[rows[part], places[part]][:, None]
        b = theirs[rows[part], places[part]][:, None]
        asked = queries[rows[part]]
        gap = np.abs(
            true_distances(asked, vectors, a, inner_product)
            - true_distances(asked, vectors, b, inner_product)
        )
        allowed = np.maximum(
            _rounding(asked, vectors, a), _rounding(asked, vectors, b)
        )
        tied += int((gap <= allowed).sum())  # NaN, from id -1, is not tied
    return Agreement(
        float(same.mean()), float((same.sum() + tied) / ours.size)
    )


def first_hit_recall(
    ids, truth, queries, vectors, inner_product=False
) -> Optional[float]:
    """Share of the places of a supplied truth [q, t] that an answer [q, k]
    has right, over the first min(t, k) places; a tie counts as right."""
    places = min(ids.shape[1], truth.shape[1])
    return compare_ids(
        ids[:, :places],
        truth[:, :places].astype(ids.dtype),
        queries,
        vectors,
        inner_product,
    ).same_or_tied
