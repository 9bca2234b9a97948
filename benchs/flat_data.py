"""Vectors and queries of the flat benches, made on the device from a seed, and
the data sets that contrib/datasets.py reads."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

#: {name: (dimensions, most vectors, most queries)} of the data sets.
REAL = {"sift": (128, 99000, 1000), "fashion_mnist": (784, 60000, 10000)}

CLUSTERS = 256
#: How far from the origin "far" lies: float32's distances by norms are useless
#: there. 16 bits hold nothing but the offset then, so that theirs is less.
FAR = {"float32": 1e4, "float16": 1e2, "bfloat16": 1e2}


def _uniform(make, n, q, d, dtype):
    return make.rand(n, d), make.rand(q, d)


def _gaussian(make, n, q, d, dtype):
    return make.normal(n, d), make.normal(q, d)


def _clustered(make, n, q, d, dtype, in_order=False):
    centers = make.normal(CLUSTERS, d)
    where = make.integers(CLUSTERS, n)
    if in_order:
        where = where.sort().values
    x = centers[where].add_(make.normal(n, d), alpha=0.1)
    xq = centers[make.integers(CLUSTERS, q)].add_(make.normal(q, d), alpha=0.1)
    return x, xq


def _clustered_sorted(make, n, q, d, dtype):
    return _clustered(make, n, q, d, dtype, in_order=True)


def _random_walk(make, n, q, d, dtype):
    """Neighbours in the collection are neighbours in space."""
    x = make.normal(n, d).mul_(0.1).cumsum_(0)
    xq = x[make.integers(n, q)].add_(make.normal(q, d), alpha=0.1)
    return x, xq


def _duplicates(make, n, q, d, dtype):
    """Each vector about eight times, in any order."""
    some = make.rand(max(1, n // 8), d)
    return some[make.integers(len(some), n)], some[make.integers(len(some), q)]


def _integers(make, n, q, d, dtype):
    """0 to 3: distances are small whole numbers, with ties everywhere."""
    return make.integers(4, n, d).float(), make.integers(4, q, d).float()


def _far(make, n, q, d, dtype):
    return make.rand(n, d).add_(FAR[dtype]), make.rand(q, d).add_(FAR[dtype])


SYNTHETIC = {
    "uniform": _uniform,
    "gaussian": _gaussian,
    "clustered": _clustered,
    "clustered_sorted": _clustered_sorted,
    "random_walk": _random_walk,
    "duplicates": _duplicates,
    "integers": _integers,
    "far": _far,
}


class _Make:
    """Random tensors of one generator."""

    def __init__(self, seed, device):
        import torch  # names and sizes above are of use without it

        self.torch, self.device = torch, device
        self.generator = torch.Generator(device=device)
        self.generator.manual_seed(seed)

    def rand(self, *shape):
        return self.torch.rand(
            shape, generator=self.generator, device=self.device)

    def normal(self, *shape):
        return self.torch.randn(
            shape, generator=self.generator, device=self.device)

    def integers(self, below, *shape):
        return self.torch.randint(
            below, shape, generator=self.generator, device=self.device)


def read(name):
    """(vectors, queries) of a data set, numpy float32. FileNotFoundError that
    says how to get it where it is not there."""
    from contrib import datasets

    if name == "sift":
        data = datasets.sift()
        return data.base, data.queries
    data = datasets.fashion_mnist()
    return data.train, data.test


class Data:
    """Makes vectors and queries; data sets are read once."""

    def __init__(self, device):
        self.device = device
        self._read = {}

    def why_missing(self, name):
        """Why a kind of data is not to be had, or None."""
        if name in SYNTHETIC:
            return None
        self._check(name)
        try:
            self._arrays(name)
        except (OSError, ImportError, ValueError) as error:
            return str(error).splitlines()[0]
        return None

    def make(self, name, n, q, d, seed, dtype="float32"):
        """(vectors [n, d], queries [q, d]), float32, on the device; the same
        for the same arguments and version of torch. Of a data set the first n
        vectors and the first q queries."""
        if name in SYNTHETIC:
            make = _Make(seed, self.device)
            return SYNTHETIC[name](make, n, q, d, dtype)
        import torch

        vectors, queries = self._arrays(name)
        if n > len(vectors) or q > len(queries) or d != vectors.shape[1]:
            raise ValueError(
                f"{name} has {len(vectors)} vectors and {len(queries)} queries "
                f"of {vectors.shape[1]} dimensions, not n={n} q={q} d={d}")
        return tuple(
            torch.from_numpy(part).to(self.device)
            for part in (vectors[:n], queries[:q]))

    @staticmethod
    def _check(name):
        if name not in REAL:
            raise ValueError(
                f"data = {name!r} is none of {', '.join([*SYNTHETIC, *REAL])}")

    def _arrays(self, name):
        self._check(name)
        if name not in self._read:
            self._read[name] = read(name)
        return self._read[name]
