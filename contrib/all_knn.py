"""All nearest neighbours by random projection trees.

The neighbours of every vector of a set among the others, nearly exactly: a tree
of random projections puts vectors that are near each other into the same leaf,
all pairs of a leaf are searched exactly (IndexFusedFlat.knn_subset, straight
from the index: nothing is gathered), and several trees with other projections
find what the first ones have cut apart. The solver that Yu et al. 2015 put
their kernel into (GSKNN, Table 1).

    index = faiss_bits.IndexFusedFlat(d)
    index.add(x)
    D, I = all_knn(index, k=10, iterations=8)

As a program it does what Table 1 of the paper does, on data of the same kind,
beside the same solver with gathered leaves and FAISS's own search:

    python -m faiss_bits.contrib.all_knn --json out/all_knn.json
"""

import argparse
import concurrent.futures
import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np

from faiss_bits.arrays import neighbours, whole_number
from faiss_bits.contrib.programs import check_output, status_of
from faiss_bits.contrib.progress import bar
from faiss_bits.contrib.projection_trees import (
    merge_neighbours,
    projection_leaves,
)

__all__ = ["GatheredLeaves", "all_knn", "embedded_gaussian", "recall", "refine"]

#: Metrics for which near projections go with near vectors. A similarity that
#: is largest for the nearest would be merged the wrong way round.
METRICS = (
    faiss.METRIC_L2,
    faiss.METRIC_L1,
    faiss.METRIC_Linf,
    faiss.METRIC_Lp,
)


# ---- the solver ------------------------------------------------------------


def _merge_into(D, I, ids, newD, newI, pool):
    """Merges the results of a leaf into the lists of its vectors, some rows at
    a time: numpy sorts without Python's lock, so the threads do work."""

    def merge(start):
        rows = ids[start : start + 512]
        part = slice(start, start + 512)
        D[rows], I[rows] = merge_neighbours(
            D[rows], I[rows], newD[part], newI[part]
        )

    list(pool.map(merge, range(0, len(ids), 512)))  # raises what they raise


def _checked(index, k, iterations, leaf_size, seed):
    """(k, iterations, leaf_size, seed) as ints."""
    vectors = "get_xb" if hasattr(index, "get_xb") else "vectors"
    for name in ("knn_subset", "ntotal", "metric_type", vectors):
        if not hasattr(index, name):
            raise TypeError(
                f"index is a {type(index).__name__}, which has no {name}; "
                "expected an IndexFusedFlat"
            )
    if index.metric_type not in METRICS:
        raise ValueError(
            f"index.metric_type = {index.metric_type}: all_knn needs a metric "
            "whose least distances are the nearest (L2, L1, Linf, Lp)"
        )
    k, iterations = neighbours(k), whole_number(iterations, "iterations", 1)
    leaf_size = whole_number(leaf_size, "leaf_size")
    seed = whole_number(seed, "seed", 0)
    if leaf_size < k:
        raise ValueError(
            f"leaf_size = {leaf_size} is less than k = {k}: no leaf could give "
            "k neighbours"
        )
    return k, iterations, leaf_size, seed


def refine(index, k, iterations=8, leaf_size=2048, seed=0, progress=False):
    """all_knn() one tree at a time: yields (D, I) after each.

    The arrays are the same ones in every step and complete whenever they are
    seen, so that a caller may stop when it has waited long enough, or when
    recall() no longer grows.
    """
    k, iterations, leaf_size, seed = _checked(
        index, k, iterations, leaf_size, seed
    )
    n = index.ntotal
    x = _vectors(index)
    rng = np.random.default_rng(seed)
    D = np.full((n, k), np.finfo(np.float32).max, np.float32)
    I = np.full((n, k), -1, np.int64)
    leaves_a_tree = 1
    while n and -(-n // leaves_a_tree) > leaf_size:
        leaves_a_tree *= 2
    least = n // leaves_a_tree
    if leaves_a_tree > 1 and least < k:
        raise ValueError(
            f"leaf_size = {leaf_size}: halving {n} vectors gives leaves of "
            f"{least}, less than k = {k}"
        )
    shown = bar("all_knn", iterations * leaves_a_tree, "leaf", progress)
    pool = concurrent.futures.ThreadPoolExecutor(faiss.omp_get_max_threads())
    try:
        for tree in range(iterations):
            for ids in projection_leaves(x, leaf_size, rng):
                newD, newI = index.knn_subset(ids, ids, k)
                if tree:
                    _merge_into(D, I, ids, newD, newI, pool)
                else:
                    D[ids], I[ids] = newD, newI
                shown.update(1)
            yield D, I
    finally:
        pool.shutdown()
        shown.close()


def all_knn(
    index, k, iterations=8, leaf_size=2048, seed=0, progress=True
):
    """The k nearest stored vectors of every stored vector, nearly exactly.

    Parameters
    ----------
    index : IndexFusedFlat
        Holds the vectors, or anything with ntotal, metric_type, get_xb() or
        vectors() and knn_subset(query_ids, reference_ids, k)
    k : int
        Number of neighbours, 1 or more. A vector is its own first one, as with
        index.search(x, k)
    iterations : int, optional
        Number of trees; every further one finds some of what was missed
    leaf_size : int, optional
        Vectors of a leaf at most, k or more. The work of a tree grows with it,
        and so does what a tree finds. From n on the answer is exact
    seed : int, optional
        0 or more. The same seed gives the same trees
    progress : bool, optional
        Shows a bar of the leaves (with tqdm)

    Returns
    -------
    D : numpy.ndarray
        Distances, ascending, shape (n, k), float32; the largest float32 where
        there are fewer than k vectors
    I : numpy.ndarray
        Ids, shape (n, k), int64; -1 where there are fewer than k

    Notes
    -----
    Ctrl-C is heard between two leaves. Use refine() to keep what was found by
    then.
    """
    for D, I in refine(index, k, iterations, leaf_size, seed, progress):
        pass
    return D, I


def _vectors(index):
    """The stored vectors [n, d], in place where that is possible."""
    if hasattr(index, "vectors"):
        return index.vectors()
    if not index.ntotal:
        return np.empty((0, index.d), np.float32)
    flat = faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d)
    return flat.reshape(index.ntotal, index.d)


def recall(index, D, I, sample=1000, seed=0):
    """How much of the truth an answer of all_knn() has: the share of the k
    nearest that it names.

    An exact search for `sample` of the vectors (all, if there are fewer) tells
    the truth. A vector that is as near as the k-th one, to within rounding, is
    right too: which of several such is named is chance.

    index  has reconstruct_batch() and search()
    D, I   [n, k] of all_knn()
    """
    n, k = D.shape
    if n == 0:
        return 1.0
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.choice(n, min(n, sample), replace=False))
    true_D, true_I = index.search(index.reconstruct_batch(asked), k)
    right = 0
    for row, distances, ids in zip(asked, true_D, true_I):
        last = float(distances[-1])
        tied = np.abs(D[row] - last) <= 1e-5 * last
        right += np.count_nonzero(tied | np.isin(I[row], ids))
    return right / (len(asked) * k)


# ---- the paper's experiment -------------------------------------------------


class GatheredLeaves:
    """The same solver as it would be without knn_subset: the rows of a leaf are
    gathered and searched by FAISS. Can be given to all_knn() for an index."""

    def __init__(self, x):
        self.metric_type = faiss.METRIC_L2
        self.x = np.ascontiguousarray(x, np.float32)
        self.ntotal, self.d = self.x.shape

    def vectors(self):
        """The vectors, [n, d]."""
        return self.x

    def knn_subset(self, query_ids, reference_ids, k):
        """As IndexFusedFlat.knn_subset, by a copy of both lists' vectors."""
        D, I = faiss.knn(
            self.x[query_ids], self.x[reference_ids], min(k, len(reference_ids))
        )
        missing = k - D.shape[1]
        D = np.pad(
            D, ((0, 0), (0, missing)), constant_values=np.finfo(D.dtype).max
        )
        ids = np.pad(
            np.asarray(reference_ids)[I], ((0, 0), (0, missing)),
            constant_values=-1,
        )
        return D, ids


def embedded_gaussian(n, d, seed=0, inner=10):
    """Vectors [n, d] float32 of the paper's experiment: normal in `inner`
    dimensions (d, if that is fewer), turned at random into d."""
    rng = np.random.default_rng(seed)
    inner = min(inner, d)
    basis, _ = np.linalg.qr(rng.standard_normal((d, inner)))
    points = rng.standard_normal((n, inner), np.float32)
    return np.ascontiguousarray(points @ basis.T.astype(np.float32))


class _Timed:
    """A solver's index, with the seconds spent in its searches."""

    def __init__(self, index):
        self._index, self.seconds = index, 0.0

    def __getattr__(self, name):
        return getattr(self._index, name)

    def knn_subset(self, *arguments):
        begin = time.perf_counter()
        result = self._index.knn_subset(*arguments)
        self.seconds += time.perf_counter() - begin
        return result


def _numbers(text):
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no list of whole numbers, such as 16,64"
        ) from None


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="all_knn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--n", type=int, default=100_000, help="vectors (default: 100,000; the "
        "paper has 1,600,000)")
    add("--ds", type=_numbers, default=[16, 64, 256, 1024],
        help="dimensions (default: 16,64,256,1024)")
    add("--ks", type=_numbers, default=[16, 512],
        help="neighbours (default: 16,512)")
    add("--iterations", type=int, default=4, help="trees (default: 4)")
    add("--leaf-size", type=int, default=8192, help="default: 8192")
    add("--seed", type=int, default=0)
    add("--only-ours", action="store_true", help="leave FAISS's leaves out")
    add("--json", metavar="FILE", help="leave the rows here, as the benches do")
    add("--commit", default="unknown", help="for the file")
    args = parser.parse_args(arguments)
    if args.n < 0:
        parser.error(f"--n {args.n}: at least 0 is needed")
    if min(args.ds) < 1:
        parser.error(f"--ds {min(args.ds)}: at least 1 is needed")
    return args


def _solve(index, args, k, label):
    """(seconds, those of the searches alone, D, I) of one solver."""
    print(f"{label} ...", file=sys.stderr, flush=True)
    timed, begin = _Timed(index), time.perf_counter()
    D, I = all_knn(timed, k, args.iterations, args.leaf_size, args.seed,
                   progress=sys.stderr.isatty())
    return time.perf_counter() - begin, timed.seconds, D, I


def run(args, rows):
    """Measures every d and k; appends a row a method to `rows`."""
    import faiss_bits

    for d in args.ds:
        x = embedded_gaussian(args.n, d, args.seed)
        index = faiss_bits.IndexFusedFlat(d)
        index.add(x)
        solvers = {"faiss_bits": index}
        if not args.only_ours:
            solvers["gathered_faiss"] = GatheredLeaves(x)
        for k in args.ks:
            for method, solver in solvers.items():
                seconds, searching, D, I = _solve(
                    solver, args, k, f"d={d} k={k} {method}")
                rows.append({
                    "bench": "all_knn_cpu", "method": method, "n": args.n,
                    "d": d, "k": k, "leaf_size": args.leaf_size,
                    "iterations": args.iterations, "ms": round(1e3 * seconds, 3),
                    "search_ms": round(1e3 * searching, 3),
                    "recall": round(recall(index, D, I), 5)})
                print(f"{args.n:9d} x {d:<5d} k={k:<5d} {method:15s} "
                      f"{seconds:8.2f} s, {searching:8.2f} s in searches, "
                      f"recall {rows[-1]['recall']:.4f}",
                      flush=True)


def main(arguments=None):
    """Returns the exit status."""
    args = _parse(arguments)
    return status_of(lambda: _measure(args), "stopped before the first row")


def _measure(args):
    if args.json:
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        check_output("--json", args.json)
    rows, status = [], 0
    try:
        run(args, rows)
    except KeyboardInterrupt:
        print("stopped; what was finished is above", file=sys.stderr)
        status = 130
    except ValueError as error:
        print(error, file=sys.stderr)
        status = 2
    if args.json and rows:
        meta = {"faiss": faiss.__version__, "commit": args.commit,
                "threads": faiss.omp_get_max_threads(),
                "date": time.strftime("%Y-%m-%d")}
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        Path(args.json).write_text(
            f'{{"meta": {json.dumps(meta)},\n "rows": [\n  {lines}\n ]}}\n')
    return status


if __name__ == "__main__":
    sys.exit(main())
