#!/usr/bin/env python3
"""One process of bench_flat_cpu.py: some methods on one library each.

Two builds of FAISS cannot share a process, and BLAS libraries should not share
one either: each has its threads. The driver starts

    bench_worker.py native LIBRARY   ours, Algorithm 2.1, and the FAISS that
                                     libbench_cpu.so is linked with
    bench_worker.py before LIBRARY   ours of an earlier commit, before there were
                                     certified searches
    bench_worker.py wheel            the FAISS that this Python imports
    bench_worker.py scale            numpy and scikit-learn

and sends requests, a line of JSON each, to which a line of JSON answers:
{"do": name, argument: value, ...}, and {...} or {"error": text}.
"""

import ctypes
import json
import os
import sys
import time
import zlib

import numpy as np

CHECKED_ROWS = 16


def make(rows, d, dtype, seed):
    """The data of a cell: uniform in [0, 1), as in the paper's experiments, the
    same in every process."""
    return np.random.default_rng(seed).random((rows, d), np.dtype(dtype))


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


class Worker:
    """What all have in common. A subclass has methods(), load(), and
    search(method, variant, q, k, D, I), which may return a dict of extras."""

    def __init__(self, threads):
        self.threads = threads
        self.cell, self.queries, self.vectors = {}, None, None

    def data(self, n, q, d, metric, dtype):
        """Makes vectors and queries, and indexes over them."""
        self.unload()
        self.cell = {"metric": metric, "dtype": dtype}
        vectors = make(n, d, dtype, 1)
        self.queries = make(q, d, dtype, 2)
        sums = [zlib.crc32(part.tobytes()) for part in
                (vectors[:4], vectors[-4:], self.queries[:4])]
        self.load(vectors)
        return {"checksum": sums}

    def unload(self):
        self.queries = self.vectors = None

    def load(self, vectors):
        self.vectors = vectors

    def time(self, method, q, k, calls, warm, variant="auto", answer=False):
        """Milliseconds of `calls` searches for the first q queries, after
        `warm` that do not count; on request the first rows of the answer."""
        D = np.empty((q, k), self.cell["dtype"])
        I = np.empty((q, k), np.int64)
        D.fill(0)  # pages that the first call would have to ask for
        I.fill(0)
        for _ in range(warm):
            self.search(method, variant, q, k, D, I)
        spent, extras = [], []
        for _ in range(calls):
            begin = time.perf_counter()
            extra = self.search(method, variant, q, k, D, I)
            spent.append(1e3 * (time.perf_counter() - begin))
            extras.append(extra)
        reply = {"ms": spent}
        if extras[0]:
            reply["extras"] = extras
        if answer:
            rows = slice(0, CHECKED_ROWS)
            reply["D"], reply["I"] = D[rows].tolist(), I[rows].tolist()
        return reply

    def serve(self, requests, replies):
        """Answers until the requests end."""
        for line in requests:
            request = json.loads(line)
            try:
                reply = getattr(self, request.pop("do"))(**request)
            except Exception as error:  # whatever it is, the driver tells it
                reply = {"error": f"{type(error).__name__}: {error}"}
            try:
                replies.write(json.dumps(reply or {}) + "\n")
                replies.flush()
            except BrokenPipeError:  # the driver is gone
                os._exit(1)  # what is still buffered would fail once more


class Native(Worker):
    """The methods of libbench_cpu.so."""

    def __init__(self, threads, library):
        super().__init__(threads)
        self.library = ctypes.CDLL(library)
        for name in ("benchCpuKnn", "benchCpuPlan", "benchGemmHeap",
                     "benchIndexNew", "benchIndexSearch", "benchAbout"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.library.benchFmaPeak.restype = ctypes.c_double
        self.library.benchReading.restype = ctypes.c_double
        self.index = ctypes.c_void_p()
        self.versions = json.loads(self.library.benchAbout())
        self.faiss = "faiss_cpu_" + self.versions["faiss"].replace(".", "")

    def methods(self):
        return {"methods": ["faiss_bits", "faiss_bits_plain", self.faiss,
                            "gemm_heap"],
                "about": self.versions}

    def _check(self, problem):
        if problem:
            raise RuntimeError(problem.decode())

    def unload(self):
        super().unload()
        if self.index:
            self.library.benchIndexFree(self.index)
            self.index = ctypes.c_void_p()

    def load(self, vectors):
        """float32 vectors lie in an index, where all methods read them; it
        knows no float64."""
        self.vectors = vectors
        if self.cell["dtype"] != "float32":
            return
        n, d = vectors.shape
        stored = ctypes.POINTER(ctypes.c_float)()
        self._check(self.library.benchIndexNew(
            self.cell["metric"].encode(), ctypes.c_int64(n), d,
            address(vectors), ctypes.byref(self.index), ctypes.byref(stored)))
        self.vectors = np.ctypeslib.as_array(stored, (n, d))

    def _problem(self, q, k):
        n, d = self.vectors.shape
        return (ctypes.c_int64(q), ctypes.c_int64(n), d, ctypes.c_int64(k),
                address(self.queries), address(self.vectors), self.threads)

    @property
    def is_in_index(self):
        """Whether the index knows this metric and type."""
        return self.index and self.cell["metric"] not in ("cosine", "Jaccard")

    def _search_index(self, q, k, variant, D, I, plain=False):
        self._check(self.library.benchIndexSearch(
            self.index, ctypes.c_int64(q), address(self.queries),
            ctypes.c_int64(k), self.threads, variant, int(plain), address(D),
            address(I)))

    def search(self, method, variant, q, k, D, I):
        dtype = self.cell["dtype"].encode()
        metric = self.cell["metric"].encode()
        if method == "faiss_bits" and self.is_in_index:
            self._search_index(q, k, variant.encode(), D, I)
        elif method == "faiss_bits_plain" and self.is_in_index:
            self._search_index(q, k, variant.encode(), D, I, plain=True)
        elif method == "faiss_bits":
            self._check(self.library.benchCpuKnn(
                dtype, metric, *self._problem(q, k), variant.encode(),
                address(D), address(I)))
        elif method == self.faiss:
            self._search_index(q, k, None, D, I)
        elif method == "gemm_heap":
            times = (ctypes.c_double * 4)()
            self._check(self.library.benchGemmHeap(
                dtype, *self._problem(q, k), address(D), address(I), times))
            return dict(zip(("collect_ms", "gemm_ms", "norms_ms", "heap_ms"),
                            times))
        else:
            raise ValueError(f"no method {method!r} here")
        return None

    def plan(self, q, k, variant="auto"):
        """The cost model's plan for a search."""
        text = ctypes.c_char_p()
        self._check(self.library.benchCpuPlan(
            self.cell["dtype"].encode(), self.cell["metric"].encode(),
            *self._problem(q, k), variant.encode(), ctypes.byref(text)))
        return json.loads(text.value)

    def peak(self, dtype):
        return {"gflops": self.library.benchFmaPeak(dtype.encode(),
                                                    self.threads)}

    def read(self, calls):
        """Milliseconds to read the vectors once, `calls` times."""
        size = ctypes.c_int64(self.vectors.nbytes)
        return {"ms": [self.library.benchReading(
            address(self.vectors), size, self.threads) for _ in range(calls)]}

    def bandwidth(self):
        """GB/s of reading 1 GiB, the best of ten."""
        block = np.ones(2**28, np.float32)
        ms = min(self.library.benchReading(
            address(block), ctypes.c_int64(block.nbytes), self.threads)
            for _ in range(10))
        return {"gbps": block.nbytes / ms / 1e6}

    def compare(self, ours, theirs):
        """Share of places that agree, of two answers to the first queries."""
        from agreement import share_agreed

        ours, theirs = (np.array(ids, np.int64) for ids in (ours, theirs))
        return {"agreed": share_agreed(ours, theirs, self.queries[:len(ours)],
                                       self.vectors, self.cell["metric"])}

    def verify(self, D, I):
        """The largest error of an answer's distances, in its tolerances."""
        from agreement import worst_distance

        D, I = np.array(D, np.float64), np.array(I, np.int64)
        return {"excess": worst_distance(D, I, self.queries[:len(I)],
                                         self.vectors, self.cell["metric"])}


class Before(Native):
    """Ours of a commit that has no modes of searching, so that
    benchIndexSearch has no `plain`."""

    def methods(self):
        return {"methods": ["faiss_bits_before"], "about": {}}

    def search(self, method, variant, q, k, D, I):
        if not self.is_in_index:
            super().search("faiss_bits", variant, q, k, D, I)
            return
        self._check(self.library.benchIndexSearch(
            self.index, ctypes.c_int64(q), address(self.queries),
            ctypes.c_int64(k), self.threads, variant.encode(), address(D),
            address(I)))


class Wheel(Worker):
    """IndexFlat of an installed FAISS."""

    METRICS = {"L2": "METRIC_L2", "IP": "METRIC_INNER_PRODUCT",
               "L1": "METRIC_L1", "Linf": "METRIC_Linf", "Lp": "METRIC_Lp",
               "Canberra": "METRIC_Canberra", "BrayCurtis": "METRIC_BrayCurtis",
               "JensenShannon": "METRIC_JensenShannon"}

    def __init__(self, threads):
        super().__init__(threads)
        import faiss

        self.module = faiss
        faiss.omp_set_num_threads(threads)
        self.name = "faiss_cpu_" + faiss.__version__.replace(".", "")
        self.index = None

    def methods(self):
        options = self.module.get_compile_options().strip()
        return {"methods": [self.name],
                "about": {self.name: f"{self.module.__version__} ({options})"}}

    def unload(self):
        super().unload()
        self.index = None

    def load(self, vectors):
        metric = self.cell["metric"]
        name = self.METRICS["Lp" if metric.startswith("Lp") else metric]
        self.index = self.module.IndexFlat(
            vectors.shape[1], getattr(self.module, name))
        if metric.startswith("Lp"):
            self.index.metric_arg = float(metric[2:])
        self.index.add(vectors)

    def search(self, method, variant, q, k, D, I):
        pointer = self.module.swig_ptr
        self.index.search_c(q, pointer(self.queries), k, pointer(D),
                            pointer(I))


class Scale(Worker):
    """What is at hand without FAISS: numpy, and scikit-learn's brute force."""

    MATRIX_BYTES = 2**30

    def __init__(self, threads):
        super().__init__(threads)
        import sklearn
        from sklearn.neighbors import NearestNeighbors

        self.version, self.brute = sklearn.__version__, NearestNeighbors
        self.fitted = None

    def methods(self):
        return {"methods": ["numpy", "sklearn"],
                "about": {"numpy": np.__version__, "sklearn": self.version}}

    def unload(self):
        super().unload()
        self.fitted = None

    def load(self, vectors):
        self.vectors = vectors
        self.fitted = self.brute(algorithm="brute",
                                 metric="sqeuclidean").fit(vectors)

    def search(self, method, variant, q, k, D, I):
        queries = self.queries[:q]
        if method == "sklearn":
            D[:], I[:] = self.fitted.kneighbors(queries, k)
            return
        norms = np.einsum("nd,nd->n", self.vectors, self.vectors)
        step = max(1, self.MATRIX_BYTES
                   // (D.itemsize * len(self.vectors)))
        for start in range(0, q, step):
            part = slice(start, start + step)
            matrix = queries[part] @ self.vectors.T
            matrix *= -2
            matrix += norms
            matrix += np.square(queries[part]).sum(1)[:, None]
            some = np.argpartition(matrix, k - 1, axis=1)[:, :k]
            keys = np.take_along_axis(matrix, some, 1)
            order = np.argsort(keys, axis=1)
            D[part] = np.take_along_axis(keys, order, 1)
            I[part] = np.take_along_axis(some, order, 1)


def serve(make):
    """Serves on stdin and stdout, with what make(threads) returns, until stdin
    ends."""
    # What a library prints must not end up between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    make(int(os.environ["BENCH_THREADS"])).serve(sys.stdin, replies)


def main(kind, *arguments):
    kinds = {"native": Native, "before": Before, "wheel": Wheel,
             "scale": Scale}
    serve(lambda threads: kinds[kind](threads, *arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
