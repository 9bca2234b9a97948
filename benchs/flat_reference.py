"""Exact answers of flat searches, from the formula that docs/exact.md has.

Nothing here is shared with the kernels: torch's float64, one operation a call,
so that none is fused with the next. On any device of torch.
"""

import copy

import torch

#: Bytes of the float64 sums of one part of the vectors.
PART_BYTES = 1 << 28


def _sum(part, queries, term):
    """Canonical sums [queries, rows] float64 of term(x, q), both widened.

    part [rows, d] and queries [m, d]; component i adds to sum i mod 8.
    """
    rows, d = part.shape
    sums = torch.zeros(
        (len(queries), rows, 8), dtype=torch.float64, device=part.device)
    for begin in range(0, d, 8):
        x = part[:, begin : begin + 8].double().unsqueeze(0)
        q = queries[:, begin : begin + 8].double().unsqueeze(1)
        sums[:, :, : x.shape[2]] += term(x, q)
    s = sums.unbind(2)
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))


def _square_of_difference(x, q):
    t = x - q
    return t * t


def _of_part(part, queries, metric):
    if metric == "L2":
        return _sum(part, queries, _square_of_difference)
    products = _sum(part, queries, lambda x, q: x * q)
    if metric == "IP":
        return products
    norms = _sum(part, queries[:1], lambda x, q: x * x)
    query_norms = _sum(queries, queries[:1], lambda x, q: x * x)[0]
    both = norms * query_norms[:, None]
    cosines = products / both.sqrt()
    return torch.where(both == 0, torch.zeros_like(cosines), cosines)


class Reference:
    """Canonical distances of some queries to all vectors.

    vectors  [n, d] as they are stored: float32, float16 or bfloat16
    queries  [m, d], as the search gets them; of the same device
    metric   "L2" (squared), "IP" or "cosine"

    Cost     4 m n bytes are kept; about 12 m n d bytes are moved
    """

    def __init__(self, vectors, queries, metric):
        if metric not in ("L2", "IP", "cosine"):
            raise ValueError(f"metric = {metric!r} is not L2, IP or cosine")
        n, m = len(vectors), len(queries)
        self.largest_first = metric != "L2"
        #: [m, n] float32; -0 is +0
        self.distances = torch.empty((m, n), device=vectors.device)
        rows = max(1, PART_BYTES // (64 * max(1, m)))
        for begin in range(0, n, rows):
            part = vectors[begin : begin + rows]
            self.distances[:, begin : begin + rows] = \
                _of_part(part, queries, metric).float()
        self.distances += 0.0
        self._order = None

    def first(self, count):
        """The reference of the first queries alone."""
        part = copy.copy(self)
        part.distances = self.distances[:count]
        part._order = None
        return part

    def nearest(self, k):
        """(distances, ids) of the k nearest, both [m, min(k, n)]: best first,
        equal distances by the lower id."""
        if self._order is None:
            keys = -self.distances if self.largest_first else self.distances
            self._order = torch.sort(keys, dim=1, stable=True).indices
        ids = self._order[:, :k]
        return self.distances.gather(1, ids), ids

    def wrong_places(self, distances, ids):
        """Places of an answer [>= m, k] that have another id or distance than
        the exact one, the empty ones behind n vectors included."""
        m, n = self.distances.shape
        distances, ids = distances[:m], ids[:m]
        k = ids.shape[1]
        best, exact = self.nearest(k)
        full = min(k, n)
        wrong = (ids[:, :full] != exact) | (distances[:, :full] != best)
        return int(wrong.sum()) + int((ids[:, full:] != -1).sum())

    def recall(self, ids):
        """Share of the places that an answer [>= m, k] fills with one of the
        nearest; any of equally near ones counts, each id once."""
        m, n = self.distances.shape
        ids = ids[:m].long()
        k = min(ids.shape[1], n)
        last = self.nearest(k)[0][:, -1:]
        known = (ids >= 0) & (ids < n)
        found = self.distances.gather(1, ids.clamp(0, n - 1))
        near = found >= last if self.largest_first else found <= last
        ordered = torch.where(known, ids, -1 - torch.arange(
            ids.shape[1], device=ids.device)).sort(dim=1)
        again = torch.zeros_like(near)
        again[:, 1:] = ordered.values[:, 1:] == ordered.values[:, :-1]
        good = (near & known).gather(1, ordered.indices) & ~again
        return float(good.sum(dim=1).clamp(max=k).double().mean() / k)


def checked(name, searcher, queries, k, reference):
    """Searches once, and returns what a row says of the answer: its recall,
    and of faiss_bits how many places are wrong and queries repeated."""
    searcher.repeated()
    distances, ids = searcher.search(queries, k)
    said = {"recall": float(f"{reference.recall(ids):.5g}")}
    if name == "faiss_bits":
        said["places_wrong"] = reference.wrong_places(distances, ids)
        repeated = searcher.repeated()
        if repeated is not None:
            said["repeated"] = float(f"{repeated:.4g}")
    return said
