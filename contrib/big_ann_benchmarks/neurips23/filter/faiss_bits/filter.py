"""Exact search in the filter track: the nearest among the vectors that have
all tags of a query."""

from multiprocessing.pool import ThreadPool

import faiss
import numpy as np

from faiss_bits.arrays import whole_number

from benchmark.algorithms import faiss_bits_flat
from benchmark.datasets import DATASETS
from neurips23.filter.base import BaseFilterANN

_PIECE = 64  # queries of one filter that one thread takes at a time


class _Filtered:
    """Before FaissBitsCPU or FaissBitsGPU: filtered_query(), by IDSelectors.
    Queries with the same tags are searched together, among the vectors of an
    IDSelectorArray. Of a few selected vectors an index reads no others."""

    _rows_of_tag = None

    def fit(self, dataset):
        """Stores the vectors of a data set, and which have which tag."""
        super().fit(dataset)
        ds = DATASETS[dataset]()
        self._rows_of_tag = None
        if ds.search_type() == "knn_filtered":
            tags = ds.get_dataset_metadata()
            if tags.shape[0] != ds.nb:
                raise ValueError(
                    f"dataset = {dataset!r} has tags of {tags.shape[0]} "
                    f"vectors, but {ds.nb} vectors"
                )
            self._rows_of_tag = tags.T.tocsr()
            self._rows_of_tag.sum_duplicates()  # sorts them, too

    def filtered_query(self, X, filter, k):
        """Finds the k nearest of every row of X [nq, d] among the vectors
        that have all tags of its row of `filter` [nq, tags], a CSR matrix; a
        row without tags allows all. get_results() as after query()."""
        self._ready()
        if self._rows_of_tag is None:
            raise RuntimeError(f"{self.name}: the data set has no tags")
        k = whole_number(k, "k", 1)
        x = np.ascontiguousarray(X, np.float32)
        if filter.shape[0] != len(x):
            raise ValueError(
                f"filter has {filter.shape[0]} rows, X has {len(x)}"
            )
        found = np.full((len(x), k), -1, np.int64)

        def search(job):
            tags, rows = job
            selected = self._with_all(tags)
            if selected is None:
                found[rows] = self._index.search(x[rows], k)[1]
                return len(rows) * self._index.ntotal
            # SearchParameters of FAISS 1.7.3 does not keep its selector.
            selector = faiss.IDSelectorArray(selected)
            params = faiss.SearchParameters(sel=selector)
            found[rows] = self._index.search(x[rows], k, params=params)[1]
            return len(rows) * len(selected)

        self._compared += sum(self._run_all(search, _jobs(filter)))
        self.res = found

    def _with_all(self, tags):
        """Ids of the vectors that have all of `tags`; None: no tags."""
        if not tags:
            return None
        if tags[-1] >= self._rows_of_tag.shape[0]:  # a tag of no vector
            return np.empty(0, np.int64)
        start, rows = self._rows_of_tag.indptr, self._rows_of_tag.indices
        lists = sorted((rows[start[t] : start[t + 1]] for t in tags), key=len)
        common = lists[0]
        for other in lists[1:]:
            common = _in_both(common, other)
        return common.astype(np.int64)


class FaissBitsCPU(_Filtered, BaseFilterANN, faiss_bits_flat.FaissBitsCPU):
    __doc__ = faiss_bits_flat.FaissBitsCPU.__doc__

    def _run_all(self, search, jobs):
        # One filter has few queries and mostly few vectors: too little work
        # to share, so that every thread takes filters of its own.
        threads = faiss.omp_get_max_threads()
        with ThreadPool(threads, faiss.omp_set_num_threads, (1,)) as pool:
            return pool.map(search, jobs, chunksize=1)


class FaissBitsGPU(_Filtered, BaseFilterANN, faiss_bits_flat.FaissBitsGPU):
    __doc__ = faiss_bits_flat.FaissBitsGPU.__doc__

    def _run_all(self, search, jobs):
        return map(search, jobs)


def _jobs(filter):
    """[(tags, rows)]: up to _PIECE rows of a CSR matrix with the same tags,
    and those, ascending."""
    rows_of = {}
    for row in range(filter.shape[0]):
        tags = filter.indices[filter.indptr[row] : filter.indptr[row + 1]]
        rows_of.setdefault(tuple(sorted(set(tags.tolist()))), []).append(row)
    return [
        (tags, rows[i : i + _PIECE])
        for tags, rows in rows_of.items()
        for i in range(0, len(rows), _PIECE)
    ]


def _in_both(few, many):
    """What two ascending arrays share; quick where the first is short."""
    if len(many) == 0:
        return many
    place = np.searchsorted(many, few)
    place[place == len(many)] = 0
    return few[many[place] == few]
