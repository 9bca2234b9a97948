"""Results of several parts of a collection made those of the whole of it, and
how the queries of a batch are cut into slices. Distances are canonical, so that
the bits are those of one index (docs/exact.md)."""

import numpy as np

#: Bytes of a neighbour in a message: a float32 distance and a 64-bit id.
BYTES_OF_RESULT = 12

_LARGEST = np.finfo(np.float32).max


def slice_bounds(n, parts):
    """n queries cut for `parts` workers: slice i is [bounds[i], bounds[i + 1])."""
    return [n * i // parts for i in range(parts + 1)]


def merge_neighbours(parts, k, largest):
    """The k best of sorted results (D [q, any], I [q, any]): best first, equal
    distances by the lower id, empty places (id -1) last. `largest`: the best are
    the largest distances."""
    # NaN is behind every number, infinity too; no distance of a result is NaN.
    keys = [
        np.where(I < 0, np.float32(np.nan), -D if largest else D) for D, I in parts
    ]
    widths = _widths(keys, k)
    D, I = (
        np.concatenate([part[i][:, :w] for part, w in zip(parts, widths)], axis=1)
        for i in (0, 1)
    )
    keys = np.concatenate([key[:, :w] for key, w in zip(keys, widths)], axis=1)
    order = np.argsort(keys, axis=1, kind="stable")
    keys = np.take_along_axis(keys, order, 1)
    I = np.take_along_axis(I, order, 1)
    D = np.take_along_axis(D, order, 1)
    # Parts are in any order: rows whose equal distances are not by id again.
    tied = (keys[:, 1:] == keys[:, :-1]) & (I[:, 1:] < I[:, :-1])
    for row in np.flatnonzero(tied.any(axis=1)):
        order = np.lexsort((I[row], keys[row]))
        D[row], I[row] = D[row, order], I[row, order]
    return _of_width(D[:, :k], I[:, :k], k, largest)


def _widths(keys, k):
    """How many columns of each part can be among the k best of a row. The first
    ceil(k / parts) of all parts are k or more, so that nothing beyond the last of
    these is."""
    each = -(-k // len(keys))
    if len(keys) == 1 or any(key.shape[1] < each for key in keys):
        return [key.shape[1] for key in keys]
    # NaN, where a part is short, is the greatest: then there is no limit.
    limit = np.max([key[:, each - 1] for key in keys], axis=0)
    unlimited = np.isnan(limit)
    return [
        key.shape[1] if unlimited.any()
        else int((key <= limit[:, None]).sum(1).max(initial=0))
        for key in keys
    ]


def _of_width(D, I, k, largest):
    """Results with k columns: empty places where there were fewer."""
    q, width = D.shape
    if width == k:
        return np.ascontiguousarray(D), np.ascontiguousarray(I)
    more = (q, k - width)
    empty = np.full(more, -_LARGEST if largest else _LARGEST, np.float32)
    return (
        np.concatenate([D, empty], axis=1),
        np.concatenate([I, np.full(more, -1, np.int64)], axis=1),
    )


def merge_ranges(parts):
    """Range results (lims [q + 1], D, I) of the parts as one, the results of a
    query by ascending id."""
    counts = np.stack([np.diff(lims) for lims, _, _ in parts])
    lims = np.concatenate([[0], np.cumsum(counts.sum(0))]).astype(np.int64)
    D = np.concatenate([part[1] for part in parts])
    I = np.concatenate([part[2] for part in parts])
    queries = np.arange(counts.shape[1])
    owner = np.concatenate([np.repeat(queries, row) for row in counts])
    order = np.lexsort((I, owner))
    return lims, D[order], I[order]


def cut_range(result, begin, end):
    """The results of queries begin .. end - 1 of a range result."""
    lims, D, I = result
    first, last = int(lims[begin]), int(lims[end])
    return lims[begin : end + 1] - first, D[first:last], I[first:last]


def empty_pairs():
    """No distances and no ids."""
    return np.empty(0, np.float32), np.empty(0, np.int64)


def joined_ranges(parts):
    """Range results of queries that follow each other as one."""
    counts, pairs = [np.zeros(1, np.int64)], [empty_pairs()]
    for lims, D, I in parts:
        counts.append(np.diff(lims))
        pairs.append((D, I))
    return (np.cumsum(np.concatenate(counts)), *map(np.concatenate, zip(*pairs)))
