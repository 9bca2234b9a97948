"""What the methods of ivf_rivals.py have in common: data sets, one quantizer
and codebook for all, exact answers and the recall. On any device of torch."""

import torch

import flat_data

#: Of the made data: centers and directions around which vectors lie, how far
#: from their center, and what all components have besides.
CENTERS, DIRECTIONS, SPREAD, NOISE = 2000, 32, 0.6, 0.05
#: Vectors a list that the quantizer is trained with, and those of a codebook.
POINTS_OF_LIST, POINTS_OF_BOOK = 256, 65536
ITERATIONS = 20
#: Values of one tile of distances.
TILE = 1 << 28


def clustered(n, q, d, seed, device):
    """(vectors [n, d], queries [q, d]) float32 around CENTERS centers that
    overlap, in DIRECTIONS random directions and a little of all others: a
    search needs several lists, as it does with real vectors."""
    make = torch.Generator(device=device)
    make.manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=make, device=device)

    centers = normal(CENTERS, DIRECTIONS)
    directions = normal(DIRECTIONS, d) / DIRECTIONS**0.5

    def some(count):
        where = torch.randint(
            CENTERS, (count,), generator=make, device=device)
        at = centers[where].add_(normal(count, DIRECTIONS), alpha=SPREAD)
        return torch.addmm(NOISE * normal(count, d), at, directions)

    vectors = torch.empty((n, d), device=device)
    for part in vectors.split(1 << 20):
        part.copy_(some(len(part)))
    return vectors, some(q)


def make_data(name, n, d, q, seed, device):
    """(vectors [n, d], queries [q, d]), float32 on the device: clustered() of
    "clustered" and "clustered_10m", else a data set; the same for the same
    arguments and version of torch."""
    if name.startswith("clustered"):
        return clustered(n, q, d, seed, device)
    return flat_data.Data(device).make(name, n, q, d, seed)


def nearest(x, centers, count=1):
    """Numbers of the nearest centers, [len(x), count]; in float32 by norms."""
    norms = (centers * centers).sum(1)
    rows = max(1, TILE // len(centers))
    found = []
    for part in x.split(rows):
        keys = torch.addmm(norms, part, centers.T, alpha=-2)
        found.append(keys.argmin(1, keepdim=True) if count == 1 else
                     keys.topk(count, 1, largest=False).indices)
    return torch.cat(found)


def kmeans(x, count, seed, iterations=ITERATIONS):
    """Lloyd's centers [parts, count, d] of x [parts, n, d], the parts apart.
    A center that lost all its points becomes one of the points."""
    parts, n, d = x.shape
    if n < count:
        raise ValueError(f"{n} points are fewer than {count} centers")
    make = torch.Generator(device=x.device)
    make.manual_seed(seed)

    def draw():
        return torch.randperm(n, generator=make, device=x.device)[:count]

    centers = x[:, draw()].clone()
    for _ in range(iterations):
        spare = x[:, draw()]
        for part, own, other in zip(x, centers, spare):
            where = nearest(part, own)[:, 0]
            sums = torch.zeros_like(own).index_add_(0, where, part)
            sizes = torch.bincount(where, minlength=count)[:, None]
            own.copy_(torch.where(sizes > 0, sums / sizes.clamp(min=1), other))
    return centers


def sample(x, count, seed):
    """At most count of the vectors, without order."""
    make = torch.Generator(device=x.device)
    make.manual_seed(seed)
    return x[torch.randperm(len(x), generator=make, device=x.device)[:count]]


def train(x, nlist, parts, seed):
    """{"centroids": [nlist, d], and with parts "codebook": [parts, 256, d /
    parts] of what is left of a vector less its centroid}."""
    points = sample(x, nlist * POINTS_OF_LIST, seed)
    trained = {"centroids": kmeans(points[None], nlist, seed)[0]}
    if parts:
        d = x.shape[1]
        if d % parts:
            raise ValueError(f"{parts} parts do not divide d = {d}")
        points = sample(x, POINTS_OF_BOOK, seed + 1)
        rest = points - trained["centroids"][
            nearest(points, trained["centroids"])[:, 0]]
        cut = rest.view(len(rest), parts, d // parts).transpose(0, 1)
        trained["codebook"] = kmeans(cut.contiguous(), 256, seed + 2)
    return trained


def squares(x, ids, queries):
    """Squared distances of queries [m, d] to x[ids], ids [m, k], in float64."""
    return (x[ids].double() - queries[:, None].double()).square().sum(2)


def exact(x, queries, k):
    """ids [m, k] of the k nearest by float64 products, best first."""
    m, found, ids = len(queries), None, None
    wide = queries.double()
    rows = max(k, TILE // (4 * max(1, m)))
    for begin in range(0, len(x), rows):
        part = x[begin : begin + rows].double()
        keys = torch.addmm((part * part).sum(1), wide, part.T, alpha=-2)
        best = keys.topk(min(k, len(part)), 1, largest=False)
        here = best.indices + begin
        if found is not None:
            keys = torch.cat((found, best.values), 1)
            best = keys.topk(min(k, keys.shape[1]), 1, largest=False)
            here = torch.cat((ids, here), 1).gather(1, best.indices)
        found, ids = best.values, here
    return ids


def pairs(queries, centroids, sizes, nprobe):
    """Pairs of a query and a vector in one of the nprobe lists nearest to it,
    sizes being those of the lists."""
    return int(sizes[nearest(queries, centroids, nprobe)].sum())
