"""Exact nearest neighbours of vectors in files, from the command line.

    python -m faiss_bits.contrib.search vectors.npy -k 10
    python -m faiss_bits.contrib.search vectors.npy --queries q.npy --out near.npz

The files are .npy, .fvecs, .bvecs or .h5. Without --queries every vector is
searched for, itself included. The result is a NumPy archive: D, the distances
(float32), and I, the numbers of the vectors (int64), both of shape
(queries, k), nearest first. It runs on the GPU if there is one, else on the CPU.
"""

import argparse
import sys
import time

import faiss
import numpy as np

import faiss_bits
from faiss_bits.arrays import neighbours, whole_number
from faiss_bits.contrib import datasets
from faiss_bits.contrib.programs import check_output, status_of
from faiss_bits.contrib.progress import bar

__all__ = ["search"]

METRICS = {
    "L2": faiss.METRIC_L2,
    "IP": faiss.METRIC_INNER_PRODUCT,
    "L1": faiss.METRIC_L1,
    "Linf": faiss.METRIC_Linf,
}


def search(xq, xb, k, metric=faiss.METRIC_L2, block=16384, progress=True):
    """The k nearest of `xb` for every row of `xq`, in blocks of queries, so
    that progress is shown and Ctrl-C is heard.

    Parameters
    ----------
    xq, xb : numpy.ndarray
        Queries (nq, d) and vectors (n, d), float32
    k : int
        Neighbours a query, 1 or more
    metric : MetricType, optional
        One that GpuIndexBitsFlat has, or without a GPU IndexFusedFlat
    block : int, optional
        Queries at a time; never changes the result
    progress : bool, optional
        Shows a bar (with tqdm)

    Returns
    -------
    D, I : numpy.ndarray
        Shape (nq, k), as index.search returns them
    """
    k = neighbours(k)
    block = whole_number(block, "block", 1)
    d = xb.shape[1]
    if xq.shape[1] != d:
        raise ValueError(
            f"queries have dimension {xq.shape[1]}, vectors {d}"
        )
    if d == 0:
        raise ValueError("vectors have dimension d = 0")
    if faiss_bits.backend(metric) == "gpu":
        index = faiss_bits.GpuIndexBitsFlat(
            faiss.StandardGpuResources(), d, metric
        )
    else:
        index = faiss_bits.best_flat_index(d, metric)
    index.add(xb)
    D = np.empty((len(xq), k), np.float32)
    I = np.empty((len(xq), k), np.int64)
    shown = bar("search", len(xq), "q", progress)
    try:
        for begin in range(0, len(xq), block):
            rows = slice(begin, begin + block)
            D[rows], I[rows] = index.search(xq[rows], k)
            shown.update(len(xq[rows]))
    finally:
        shown.close()
    return D, I


def _read(path):
    return datasets.as_float32(datasets.read_vectors(path), path)


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m faiss_bits.contrib.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("vectors", help="file of the vectors to search")
    add("--queries", metavar="FILE", help="default: the vectors themselves")
    add("-k", type=int, default=10, help="neighbours a query (default: 10)")
    add("--metric", choices=[*METRICS], default="L2",
        help="squared L2 (default), inner product, L1 or Linf")
    add("--out", metavar="FILE", default="neighbours.npz",
        help="where the result goes (default: neighbours.npz)")
    args = parser.parse_args(arguments)
    if args.k < 1:
        parser.error(f"-k {args.k}: at least 1 is needed")
    return args


def main(arguments=None):
    args = _parse(arguments)
    return status_of(
        lambda: _run(args), f"stopped; {args.out} was not written"
    )


def _run(args):
    metric = METRICS[args.metric]
    check_output("--out", args.out, args.vectors, args.queries)
    xb = _read(args.vectors)
    xq = _read(args.queries) if args.queries else xb
    begin = time.perf_counter()
    D, I = search(xq, xb, args.k, metric)
    seconds = time.perf_counter() - begin
    with open(args.out, "wb") as file:  # the name as given
        np.savez(file, D=D, I=I)
    print(
        f"{len(xq):,} queries, {len(xb):,} vectors of dimension {xb.shape[1]}, "
        f"k = {args.k}, {args.metric}, on the {faiss_bits.backend(metric).upper()}: "
        f"{seconds:.2f} s"
    )
    for row in range(min(3, len(xq))):
        shown = ", ".join(f"{i} ({x:.6g})" for i, x in zip(I[row, :5], D[row]))
        print(f"nearest to query {row}: {shown}{' ...' * (args.k > 5)}")
    print(f"D and I: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
