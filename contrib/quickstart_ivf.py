"""The part of the quickstart on inverted lists: not all vectors are searched,
but the lists whose centroids are nearest. On the CPU, with or without a GPU."""

import time
from typing import NamedTuple

import faiss
import numpy as np

import faiss_bits
from faiss_bits.contrib import evaluation

LISTS, PROBES = 256, 16


class Result(NamedTuple):
    """One index, and how it did."""

    index: str
    seconds: float
    recall: float  #: of the true neighbours that came with the data


class Comparison(NamedTuple):
    """Our index and FAISS's with the same lists."""

    queries: int
    k: int
    lists: int
    probes: int
    results: list
    same_ids: float  #: share of the places where both name the same vector


def compare(problem, k):
    """Searches the lists of a Problem with a truth, by squared L2."""
    n, d = problem.vectors.shape
    lists = max(1, min(LISTS, n // 40))
    quantizer = faiss.IndexFlatL2(d)
    theirs = faiss.IndexIVFFlat(quantizer, d, lists)
    theirs.train(problem.vectors)
    theirs.add(problem.vectors)
    theirs.nprobe = min(PROBES, lists)
    ours = faiss_bits.IndexFusedIVFFlat(theirs)
    results, found = [], []
    for index in (ours, theirs):
        index.search(problem.queries[:32], k)  # wakes the threads
        start = time.perf_counter()
        ids = index.search(problem.queries, k)[1]
        seconds = time.perf_counter() - start
        recall = evaluation.first_hit_recall(
            ids, problem.truth, problem.queries, problem.vectors
        )
        results.append(Result(type(index).__name__, seconds, recall))
        found.append(ids)
    return Comparison(
        len(problem.queries),
        k,
        lists,
        theirs.nprobe,
        results,
        float(np.mean(found[0] == found[1])),
    )


def text(comparison):
    """The comparison as a few lines."""
    c = comparison
    ours, theirs = c.results
    lines = [
        f"{r.index:18s} {1e3 * r.seconds:9.2f} ms   recall {r.recall:.4f}"
        for r in c.results
    ]
    return "\n".join(
        [
            f"Inverted lists on the CPU: SIFT by L2, {c.queries:,} queries, the "
            f"{c.k} nearest in {c.probes} of {c.lists} lists",
            *lines,
            f"The same lists; {100 * c.same_ids:.2f} % of the ids are the same, "
            f"{theirs.seconds / ours.seconds:.2f}x as fast.",
        ]
    )
