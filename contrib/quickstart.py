"""Exact nearest neighbours on real data, beside FAISS's own index.

Without arguments: the 10 nearest of 60,000 Fashion-MNIST images for each of
10,000 others, and of 99,000 SIFT descriptors for each of 1,000, by squared L2
and by inner product. Prints a table and draws out/quickstart_neighbours.png. Then
SIFT once more in inverted lists, on the CPU, of which only some are searched.
With --data: the same on a file of yours.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple, Optional

import faiss
import numpy as np

import faiss_bits
from faiss_bits.contrib import datasets, evaluation, quickstart_ivf
from faiss_bits.contrib.programs import check_output, status_of
from faiss_bits.contrib.quickstart_table import notes, table

METRICS = {"L2": faiss.METRIC_L2, "IP": faiss.METRIC_INNER_PRODUCT}
CPU_SLICE = 500  # queries between two looks at Ctrl-C


class Problem(NamedTuple):
    """One set of vectors to search."""

    name: str
    vectors: np.ndarray  # [n, d] float32
    queries: np.ndarray  # [q, d] float32
    truth: Optional[np.ndarray] = None  # [q, t] true neighbours by squared L2
    images: Optional[datasets.FashionMnist] = None  # to draw, if they are


# ---- data -----------------------------------------------------------------


def load_fashion_mnist():
    images = datasets.fashion_mnist()
    return Problem("Fashion-MNIST", images.train, images.test, None, images)


def load_sift():
    data = datasets.sift()
    return Problem("SIFT", data.base, data.queries, data.truth)


def load_own(args):
    """The user's file, and queries from a file, the same file, or itself."""
    path = Path(args.data)
    vectors = datasets.as_float32(
        datasets.read_vectors(path, args.h5_dataset), str(path)
    )
    if args.queries:
        queries = datasets.read_vectors(args.queries, args.h5_queries)
    elif path.suffix.lower() in (".h5", ".hdf5") and not args.h5_dataset:
        queries = _queries_inside(path)
    else:
        queries = None
    if queries is None:
        queries = vectors[:1000]
        say(
            f"no queries given: the first {len(queries)} vectors search for "
            "their neighbours, themselves included"
        )
    queries = datasets.as_float32(queries, args.queries or f"{path}: queries")
    if queries.shape[1] != vectors.shape[1]:
        raise ValueError(
            f"queries have dimension {queries.shape[1]}, vectors "
            f"{vectors.shape[1]}"
        )
    if not len(vectors) or not len(queries):
        raise ValueError(f"{len(vectors)} vectors, {len(queries)} queries")
    if not vectors.shape[1]:
        raise ValueError("vectors have dimension d = 0")
    return Problem(path.name, vectors, queries)


def _queries_inside(path):
    for name in datasets.H5_QUERY_NAMES:
        try:
            return datasets.read_h5(path, name)
        except ValueError:
            continue
    return None


# ---- searching ------------------------------------------------------------


def say(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """A bar on a terminal, a line in ten seconds elsewhere."""

    def __init__(self, label, total):
        self.label, self.total, self.done = label, total, 0
        self.bar, self.spoken = None, time.monotonic()
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                pass
            else:
                self.bar = tqdm(
                    total=total, desc=label, unit="q", leave=False, ncols=79
                )
        if self.bar is None:
            say(f"{label}: {total} queries ...")

    def step(self, count):
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
        elif time.monotonic() - self.spoken > 10 and self.done < self.total:
            self.spoken = time.monotonic()
            say(f"{self.label}: {self.done} of {self.total} queries")

    def close(self):
        if self.bar is not None:
            self.bar.close()


def search(index, queries, k, slice_size, progress):
    """Searches in slices, so that Ctrl-C is heard between two of them.
    Returns distances, ids and the seconds spent searching."""
    D = np.empty((len(queries), k), np.float32)
    I = np.empty((len(queries), k), np.int64)
    seconds = 0.0
    for start in range(0, len(queries), slice_size):
        part = slice(start, start + slice_size)
        asked = queries[part]
        begin = time.perf_counter()
        D[part], I[part] = index.search(asked, k)
        seconds += time.perf_counter() - begin
        progress.step(len(asked))
    return D, I, seconds


def timed_search(index, queries, k, on_gpu, label):
    """On a GPU the median of three runs, after one to warm up; on the CPU one
    run, after a few queries to wake its threads and, for ours, to measure the
    machine."""
    runs, slice_size = (4, 16384) if on_gpu else (1, CPU_SLICE)
    if not on_gpu:
        index.search(queries[:32], k)
    progress = Progress(label, runs * len(queries))
    try:
        results = [
            search(index, queries, k, slice_size, progress) for _ in range(runs)
        ]
    finally:
        progress.close()
    D, I, _ = results[-1]
    return D, I, statistics.median(r[2] for r in results[runs > 1 :])


def indexes(d, metric, res):
    """Our index and FAISS's own of the same kind, both empty."""
    if res is not None:
        config = faiss_bits.GpuIndexBitsFlatConfig()
        ours = faiss_bits.GpuIndexBitsFlat(res, d, metric, config)
        return ours, faiss.GpuIndexFlat(res, d, metric)
    return faiss_bits.best_flat_index(d, metric), faiss.IndexFlat(d, metric)


def run(problem, metric_name, k, res, rival_queries):
    """Searches with ours and with FAISS's; returns the row and our ids."""
    on_gpu = res is not None
    n, d = problem.vectors.shape
    inner = metric_name == "IP"
    ours, theirs = indexes(d, METRICS[metric_name], res)
    what = f"{problem.name} {metric_name}"

    ours.add(problem.vectors)
    D, I, seconds = timed_search(
        ours, problem.queries, k, on_gpu, f"{what}, faiss_bits"
    )
    ours.reset()
    theirs.add(problem.vectors)
    fewer = problem.queries[:rival_queries] if rival_queries else problem.queries
    _, I_faiss, faiss_seconds = timed_search(
        theirs, fewer, k, on_gpu, f"{what}, FAISS"
    )
    theirs.reset()

    agreement = evaluation.compare_ids(
        I[: len(fewer)], I_faiss, fewer, problem.vectors, inner
    )
    recall = None
    if problem.truth is not None and not inner:
        recall = evaluation.first_hit_recall(
            I, problem.truth, problem.queries, problem.vectors
        )
    rate = len(problem.queries) / seconds
    faiss_rate = len(fewer) / faiss_seconds
    row = {
        "data": problem.name,
        "metric": metric_name,
        "backend": faiss_bits.backend(),
        "index": type(ours).__name__,
        "threads": faiss.omp_get_max_threads(),
        "n": n,
        "d": d,
        "q": len(problem.queries),
        "k": k,
        "seconds": seconds,
        "queries_per_second": rate,
        "recall": recall,
        "same_ids": agreement.same,
        "same_or_tied": agreement.same_or_tied,
        "faiss_index": type(theirs).__name__,
        "faiss": faiss.__version__,
        "faiss_q": len(fewer),
        "faiss_seconds": faiss_seconds,
        "faiss_queries_per_second": faiss_rate,
        "speed_up": rate / faiss_rate,
    }
    return row, D, I


# ---- report ---------------------------------------------------------------


def draw(rows, drawn, picture):
    try:
        from faiss_bits.contrib import quickstart_plot
    except ImportError as error:
        say(f"no picture: {error}")
        return
    quickstart_plot.draw(rows, drawn, picture)
    print(f"picture: {picture}")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="quickstart",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", metavar="FILE", help="your vectors: .npy .fvecs .bvecs .h5")
    add("--queries", metavar="FILE", help="your queries (default: the queries "
        "in the .h5 file, else the first 1,000 vectors)")
    add("--h5-dataset", metavar="NAME", help="array of the .h5 file of --data")
    add("--h5-queries", metavar="NAME", help="array of the .h5 file of --queries")
    add("-k", type=int, default=10, help="neighbours a query (default: 10)")
    add("--metric", choices=[*METRICS, "both"], default="both",
        help="squared L2, inner product, or both (default)")
    add("--only", choices=["fashion-mnist", "sift"], help="one data set alone")
    add("--all-rival", action="store_true",
        help="give FAISS's own index all queries on the CPU too, not 2,000")
    add("--out", metavar="DIR", default="out", help="folder of the picture "
        "(default: out)")
    add("--json", metavar="FILE", help="leave the rows here as JSON")
    args = parser.parse_args(arguments)
    if args.k < 1:
        parser.error(f"-k {args.k}: at least 1 is needed")
    if args.data and args.only:
        parser.error("--only picks a built-in data set, --data a file: give one")
    for option in ("queries", "h5_dataset"):
        if getattr(args, option) and not args.data:
            parser.error(f"--{option.replace('_', '-')} needs --data")
    if args.h5_queries and not args.queries:
        parser.error("--h5-queries needs --queries")
    return args


def main(arguments=None):
    args = parse(arguments)
    return status_of(lambda: measure(args), "stopped")


def measure(args):
    """Prints the table of what was asked for; returns the exit status."""
    picture = Path(args.out) / "quickstart_neighbours.png"
    picture.parent.mkdir(parents=True, exist_ok=True)
    if args.json:
        check_output("--json", args.json, args.data, args.queries)
    rows, missing, drawn, inverted = [], 0, None, None
    on_gpu = faiss_bits.backend() == "gpu"
    say(f"faiss_bits {faiss_bits.__version__}, FAISS {faiss.__version__}, "
        f"backend {faiss_bits.backend()}")
    res = faiss.StandardGpuResources() if on_gpu else None
    rival_queries = None if on_gpu or args.all_rival else 2000
    metrics = list(METRICS) if args.metric == "both" else [args.metric]
    if args.data:
        loaders = {args.data: lambda: load_own(args)}
    else:
        loaders = {"fashion-mnist": load_fashion_mnist, "sift": load_sift}
        if args.only:
            loaders = {args.only: loaders[args.only]}

    stopped = False
    try:
        for name, load in loaders.items():
            say(f"reading {name} ...")
            try:
                problem = load()
            except (OSError, ValueError, ImportError) as error:
                say(f"{name} left out: {error}")
                missing += 1
                continue
            for metric in metrics:
                row, D, I = run(problem, metric, args.k, res, rival_queries)
                rows.append(row)
                if problem.images is not None and drawn is None:
                    drawn = (problem.images, metric, D, I)
            if problem.truth is not None and "L2" in metrics:
                inverted = quickstart_ivf.compare(problem, args.k)
    except KeyboardInterrupt:
        stopped = True
        say("stopped" + ("; what was finished:" if rows else " before the first row"))
    if rows:
        print(table(rows))
        for note in notes(rows, CPU_SLICE):
            print(note)
        if inverted:
            print(quickstart_ivf.text(inverted))
        if args.json:
            Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")
            say(f"rows: {args.json}")
    if rows and not stopped:
        draw(rows, drawn, picture)
    if missing:
        say(f"{missing} of {len(loaders)} data sets left out, see above")
    return 130 if stopped else 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
