"""What an all-nearest-neighbour solver is made of: leaves of a random projection
tree, and lists of neighbours that are merged."""

import numpy as np

__all__ = ["merge_neighbours", "projection_leaves"]


def projection_leaves(x, leaf_size, rng):
    """Splits the rows of x into leaves of at most `leaf_size` rows.

    Every split is at the median along a random direction, so that leaves are
    equally large but for one. The nodes of a level share their direction, as in
    MRPT (Hyvonen et al. 2016): all projections then are one product of
    matrices.

    x          [n, d] float32
    leaf_size  1 or more
    rng        numpy.random.Generator

    Returns a list of arrays of ids, int64, each id in one of them.
    """
    n, d = x.shape
    if leaf_size < 1:
        raise ValueError(f"leaf_size = {leaf_size}, at least 1 is needed")
    levels = 0
    while -(-n // 2**levels) > leaf_size:
        levels += 1
    directions = rng.standard_normal((d, levels), np.float32)
    projected = x @ directions
    leaves = [np.arange(n, dtype=np.int64)]
    for level in range(levels):
        halves = []
        for ids in leaves:
            middle = len(ids) // 2
            order = np.argpartition(projected[ids, level], middle)
            halves += [ids[order[:middle]], ids[order[middle:]]]
        leaves = halves
    # Neighbouring rows of the index are read one after another.
    return [np.sort(ids) for ids in leaves]


_NONE = np.uint64(2**64 - 1)
_HALF = np.uint64(32)


def _pack(high, low):
    return high.astype(np.uint64) << _HALF | low.astype(np.uint64)


def merge_neighbours(D, I, newD, newI):
    """The k nearest of two lists for each row, every id once.

    D, I        [n, k] distances, float32 and not negative, and ids below 2^32;
                -1 = none
    newD, newI  [n, k'] the same

    Returns new D and I [n, k], ascending; equal distances come lower id first.
    Where both lists have an id, the lower of its distances counts (their last
    bits may differ).
    """
    k = D.shape[1]
    ids = np.hstack([I, newI])
    # Bits of numbers that are not negative are ordered as the numbers are; the
    # sum makes 0 of -0. Id and distance in one word are sorted much faster than
    # two arrays are by each other.
    bits = (np.hstack([D, newD]) + np.float32(0)).view(np.uint32)
    words = _pack(ids, bits)
    words[ids < 0] = _NONE
    words.sort(axis=1)
    again = words[:, 1:] >> _HALF == words[:, :-1] >> _HALF
    words[:, 1:][again] = _NONE
    words = words << _HALF | words >> _HALF
    words = np.partition(words, k - 1, axis=1)[:, :k]
    words.sort(axis=1)
    D = (words >> _HALF).astype(np.uint32).view(np.float32)
    I = (words & np.uint64(2**32 - 1)).astype(np.int64)
    none = words == _NONE
    D[none], I[none] = np.finfo(np.float32).max, -1
    return D, I
