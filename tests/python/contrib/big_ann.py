"""What the tests of contrib/big_ann_benchmarks share: checkouts with the
adapters, data sets of a test's own, and the reference."""

import numpy as np
import pytest
from checkouts import checkout, kinds

pytest.importorskip("yaml", reason="PyYAML is not installed")
sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

MODULES = {
    "none": "benchmark.algorithms.faiss_bits_flat",
    "ood": "neurips23.ood.faiss_bits.ood",
    "filter": "neurips23.filter.faiss_bits.filter",
}
METRICS = ("euclidean", "ip")
MODES = ("certified", "plain")
GPU = pytest.param("FaissBitsGPU", marks=pytest.mark.gpu)


@pytest.fixture(scope="module", params=kinds("big_ann_benchmarks"))
def theirs(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("big_ann") / "checkout"
    with checkout("big_ann_benchmarks", request.param, folder) as found:
        yield found


@pytest.fixture(params=["FaissBitsCPU", GPU])
def name(request):
    return request.param


def make_algorithm(theirs, track, name, metric="euclidean", mode="certified"):
    return getattr(theirs.module(MODULES[track]), name)(metric, mode)


@pytest.fixture
def add_dataset(theirs, monkeypatch):
    """A function that adds a data set and returns it; its name is "ours"."""
    module = theirs.module("benchmark.datasets")

    def add(x, queries=None, metric="euclidean", kind="knn", tags=None,
            wanted=None):
        class Ours(module.Dataset):
            nb, d = x.shape
            dtype = x.dtype.name
            nq = 0 if queries is None else len(queries)
            blocks = []

            def get_dataset_iterator(self, bs=512, split=(1, 0)):
                assert split == (1, 0)
                for begin in range(0, self.nb, bs):
                    self.blocks.append(min(bs, self.nb - begin))
                    yield x[begin : begin + bs]

            def get_queries(self):
                return queries

            def get_dataset_metadata(self):
                return tags

            def get_queries_metadata(self):
                return wanted

            def search_type(self):
                return kind

            def distance(self):
                return metric

            def data_type(self):
                return "dense"

        monkeypatch.setitem(module.DATASETS, "ours", Ours)
        return Ours()

    return add


def keys_of(metric, queries, vectors):
    """What orders the vectors, in float64, [nq, n]: the smallest is best."""
    queries, vectors = np.float64(queries), np.float64(vectors)
    if metric == "euclidean":
        return np.square(queries[:, None] - vectors[None]).sum(2)
    return -(queries @ vectors.T)


def ranks(metric, queries, vectors, k, allowed=None):
    """Ids [nq, k], best first, by stable sorts; -1 behind the last allowed."""
    keys = keys_of(metric, queries, vectors)
    if allowed is None:
        allowed = np.ones(keys.shape, bool)
    out = np.full((len(keys), k), -1)
    for row, key in enumerate(keys):
        ids = np.flatnonzero(allowed[row])
        ids = ids[np.argsort(key[ids], kind="stable")][:k]
        out[row, : len(ids)] = ids
    return out


def some_tags(n, number, seed, most=4):
    """A CSR matrix [n, number]: 0 to `most` tags a row, low ones often."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, most + 1, n)
    rows = [np.unique(number * rng.random(m) ** 2 // 1) for m in counts]
    start = np.cumsum([0, *map(len, rows)])
    ids = np.concatenate(rows).astype(int)
    return sparse.csr_matrix((np.ones(len(ids)), ids, start), (n, number))


def allowed_by(tags, wanted):
    """[nq, n]: has the vector all tags of the query?"""
    have, need = tags.toarray() > 0, wanted.toarray() > 0
    width = max(have.shape[1], need.shape[1])
    have = np.pad(have, ((0, 0), (0, width - have.shape[1])))
    need = np.pad(need, ((0, 0), (0, width - need.shape[1])))
    return (~need[:, None] | have[None]).all(2)
