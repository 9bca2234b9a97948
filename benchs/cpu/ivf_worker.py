#!/usr/bin/env python3
"""One process of bench_ivf_cpu.py: inverted lists of one library.

    ivf_worker.py ours INDEX QUERIES     IndexFusedIVFFlat of faiss_bits
    ivf_worker.py faiss INDEX QUERIES    IndexIVFFlat of the faiss that this
                                         Python imports

INDEX is a file of FAISS, QUERIES a .npy file. Requests are lines of JSON, to
which lines of JSON answer: {"q", "k", "nprobe", "first", "calls", "answer"}.
"""

import json
import os
import sys
import time

import faiss
import numpy as np


def load(kind, path):
    """The index and the name of the method."""
    index = faiss.read_index(path)
    if kind == "faiss":
        return index, "faiss_cpu_" + faiss.__version__.replace(".", "")
    import faiss_bits

    return faiss_bits.index_to_fused(index), "faiss_bits"


def run(index, queries, q, k, nprobe, first, calls, answer):
    """Milliseconds of `calls` searches of q queries each, every one of others;
    on request the ids of the first search."""
    index.nprobe = nprobe
    D = np.zeros((q, k), np.float32)
    I = np.zeros((q, k), np.int64)
    spent, ids = [], None
    for call in range(calls):
        begin = (first + call) * q % (len(queries) - q + 1)
        part = queries[begin:begin + q]
        start = time.perf_counter()
        index.search(part, k, D=D, I=I)
        spent.append(1e3 * (time.perf_counter() - start))
        if answer and call == 0:
            ids = I[:1000].tolist()
    return {"ms": spent, "ids": ids}


def main(kind, index_path, queries_path):
    faiss.omp_set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    index, method = load(kind, index_path)
    queries = np.load(queries_path)
    print(json.dumps({"method": method, "faiss": faiss.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(index, queries, **json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
