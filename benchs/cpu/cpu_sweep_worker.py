#!/usr/bin/env python3
"""One process of bench_sweep_cpu.py: the indexes of one library.

    cpu_sweep_worker.py ours     IndexFusedFlat and IndexFusedIVFFlat
    cpu_sweep_worker.py faiss    IndexFlat and IndexIVFFlat of the faiss that this
                             Python imports; also as "wheel"

Requests and replies are those of bench_worker.py. Times are around the C++
calls, without the checks of the Python wrappers.
"""

import sys
import time

import faiss
import numpy as np
from agreement import true_distances
from bench_worker import Worker, serve
from cpu_sweep_cells import centroids_of, selected_ids, vectors_of

METRICS = {"L2": (faiss.METRIC_L2, 0), "L1": (faiss.METRIC_L1, 0),
           "IP": (faiss.METRIC_INNER_PRODUCT, 0),
           "Linf": (faiss.METRIC_Linf, 0), "Lp3": (faiss.METRIC_Lp, 3),
           "Canberra": (faiss.METRIC_Canberra, 0),
           "BrayCurtis": (faiss.METRIC_BrayCurtis, 0),
           "JensenShannon": (faiss.METRIC_JensenShannon, 0)}
CHECKED = 4  # queries whose answers go to the driver


def selector_of(cell):
    """The IDSelector of a cell, with what it reads; None without one."""
    ids = selected_ids(cell)
    if ids is None:
        return None, None
    if cell["selector"] == "range":
        return faiss.IDSelectorRange(int(ids[0]), int(ids[-1]) + 1), None
    if cell["selector"] == "batch":
        return faiss.IDSelectorBatch(ids), ids
    bits = np.zeros(cell["n"], np.uint8)
    bits[ids] = 1
    bits = np.packbits(bits, bitorder="little")
    return faiss.IDSelectorBitmap(bits), bits


def radius_of(cell, vectors, queries):
    """One that about `hits` vectors of a query are within, between two distances
    that follow each other. They may tie, and others may be as near to it."""
    rows = np.linspace(0, len(queries) - 1, 8).astype(int)
    ids = np.broadcast_to(np.arange(len(vectors)), (1, len(vectors)))
    seen = [np.sort(true_distances(queries[row:row + 1], vectors, ids,
                                   cell["metric"])[0]) for row in rows]
    all_seen = np.sort(np.concatenate(seen))
    place = min(cell["hits"] * len(rows), len(all_seen) - 1)
    if cell["metric"] == "IP":
        place = max(len(all_seen) - 1 - place, 1)
    place = max(place, 1)
    return float((all_seen[place - 1] + all_seen[place]) / 2)


class SweepWorker(Worker):
    """An index of a cell, and its search."""

    def __init__(self, kind, threads):
        super().__init__(threads)
        self.ours = kind == "ours"
        if self.ours:
            import faiss_bits

            self.fused = faiss_bits
        faiss.omp_set_num_threads(threads)
        self.kept, self.call = (), None

    def methods(self):
        name = "faiss_cpu_" + faiss.__version__.replace(".", "")
        return {"methods": ["faiss_bits" if self.ours else name],
                "about": {"faiss": faiss.__version__}}

    def _index(self, cell, vectors):
        metric, argument = METRICS[cell["metric"]]
        d = cell["d"]
        if cell["index"] == "ivf":
            centroids = faiss.IndexFlat(d, metric)
            centroids.add(centroids_of(cell, vectors))
            make = (self.fused.IndexFusedIVFFlat if self.ours
                    else faiss.IndexIVFFlat)
            index = make(centroids, d, cell["nlist"], metric)
            self.kept += (centroids,)
            index.is_trained, index.nprobe = True, cell["nprobe"]
        elif self.ours:
            index = (self.fused.IndexFusedFlat(d, metric, argument) if argument
                     else self.fused.IndexFusedFlat(d, metric))
        else:
            index = faiss.IndexFlat(d, metric)
            index.metric_arg = argument
        index.add(vectors)
        return index

    def data(self, cell):
        """Makes the index, and answers the first queries."""
        self.kept, self.call = (), None
        vectors, queries = vectors_of(cell)
        index = self._index(cell, vectors)
        selector, read = selector_of(cell)
        params = None
        if selector and cell["index"] == "ivf":
            params = faiss.SearchParametersIVF(
                sel=selector, nprobe=cell["nprobe"])
        elif selector:
            params = faiss.SearchParameters(sel=selector)
        x = faiss.swig_ptr(queries)
        self.kept += (index, queries, selector, read, params)
        first, radius = min(CHECKED, cell["q"]), None
        if cell["call"] == "range_search":
            radius = radius_of(cell, vectors, queries)

            def search(q):
                found = faiss.RangeSearchResult(q)
                index.range_search_c(q, x, radius, found, params)
                return found

            found = search(first)
            lims = faiss.rev_swig_ptr(found.lims, first + 1).copy()
            ids = faiss.rev_swig_ptr(found.labels, int(lims[-1])).copy()
            answer = [sorted(ids[a:b].tolist()) for a, b in
                      zip(lims, lims[1:])]
        else:
            places = cell["q"], cell["k"]
            D, I = np.zeros(places, np.float32), np.zeros(places, np.int64)
            self.kept += (D, I)

            def search(q):
                index.search_c(q, x, cell["k"], faiss.swig_ptr(D),
                               faiss.swig_ptr(I), params)

            search(first)
            answer = I[:first].tolist()
        self.call = lambda: search(cell["q"])
        return {"answer": answer, "radius": radius}

    def time(self, seconds):
        """The least milliseconds of some calls that take so long together."""
        self.call()
        least, begin = float("inf"), time.perf_counter()
        for _ in range(2000):
            start = time.perf_counter()
            found = self.call()
            end = time.perf_counter()
            least = min(least, end - start)
            del found  # a result is freed outside the time
            if end - begin >= seconds:
                break
        return {"ms": 1e3 * least}


if __name__ == "__main__":
    serve(lambda threads: SweepWorker(sys.argv[1], threads))
