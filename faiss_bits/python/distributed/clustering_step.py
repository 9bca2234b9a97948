"""Steps of k-means on one worker: samples, sums of clusters, centroids. What a
step computes depends on the shards, not on who holds them."""

import collections

import faiss
import numpy as np

from ..contrib.vector_files import take_rows
from ..kmeans import Kmeans
from .parts import BLOCK, flat_index

StepSums = collections.namedtuple("StepSums", "sums counts objectives")
StepSums.__doc__ = """What a step found in the shards of a worker.

sums        [shards, k, d] float64
counts      [shards, k] int64
objectives  [shards] float64, the sum of the distances
"""


def sampled_rows(total, count, seed):
    """`count` of the rows 0 .. total - 1, ascending: one at random of each of
    `count` nearly equal runs."""
    edges = np.arange(count + 1, dtype=np.int64) * total // count
    places = np.random.default_rng(seed).random(count)
    return edges[:-1] + (places * np.diff(edges)).astype(np.int64)


def training_sample(shard, rows, first, last):
    """Vectors of numbers first .. last - 1 of sampled_rows(*rows), which are all
    in one shard."""
    wanted = sampled_rows(*rows)[first:last] - shard.first_row + shard.begin
    return take_rows(shard.path, wanted, shard.column)


def trained(x, options, on_gpu):
    """Centroids [k, d] of vectors, by faiss_bits.Kmeans."""
    options = dict(options)
    kmeans = Kmeans(x.shape[1], options.pop("k"), gpu=on_gpu, **options)
    kmeans.train(x)
    return np.ascontiguousarray(kmeans.centroids)


def step_sums(part, centroids):
    """The vectors of a worker, each given to its nearest centroid, and summed."""
    k, d = centroids.shape
    count = len(part.shards)
    sums = np.zeros((count, k, d))
    counts = np.zeros((count, k), np.int64)
    objectives = np.zeros(count)
    index = flat_index(d, faiss.METRIC_L2, 0.0, part.device, part.resources, k)
    index.add(centroids)
    for i, shard in enumerate(part.shards):
        for begin in range(shard.first_row, shard.end_row, BLOCK):
            x = part.rows(shard.number, begin, min(begin + BLOCK, shard.end_row))
            D, labels = index.search(x, 1)
            if (labels < 0).any():
                row = begin + int(np.argmax(labels[:, 0] < 0))
                raise ValueError(f"{shard}: row {row} of the collection has a NaN")
            objectives[i] += D.sum(dtype=np.float64)
            _add_rows(sums[i], counts[i], x, labels[:, 0])
    return StepSums(sums, counts, objectives)


def _add_rows(sums, counts, x, labels):
    """x added to the sums of their labels, in an order that these alone decide."""
    order = np.argsort(labels, kind="stable")
    labels = labels[order]
    first = np.flatnonzero(np.diff(labels, prepend=-1))
    clusters = labels[first]
    sums[clusters] += np.add.reduceat(x[order].astype(np.float64), first, axis=0)
    counts[clusters] += np.diff(np.append(first, len(labels)))


def sum_of_shards(parts, numbers, centroids):
    """New centroids [m, d] and the sizes [m] of their clusters: parts are (sums,
    counts) of the ranks, whose shards `numbers` names; shards are summed in the
    order of their numbers. An empty cluster keeps its old centroid."""
    places = sorted(
        (number, rank, i)
        for rank, row in enumerate(numbers)
        for i, number in enumerate(row)
    )
    total = np.zeros(centroids.shape)
    counts = np.zeros(len(centroids), np.int64)
    if len(centroids):
        for _, rank, i in places:
            total += parts[rank][0][i]
            counts += parts[rank][1][i]
    means = total / np.maximum(counts, 1)[:, None]
    there = (counts > 0)[:, None]
    return np.where(there, means, centroids).astype(np.float32), counts


def sample_pieces(shards, rows, most):
    """sampled_rows(*rows) cut where shards end and after `most`: [(shard, first,
    last)], numbers first .. last - 1 of them are in one shard."""
    wanted, pieces = sampled_rows(*rows), []
    for shard in shards:
        begin, end = np.searchsorted(wanted, [shard.first_row, shard.end_row])
        pieces += [
            (shard, first, min(first + most, int(end)))
            for first in range(int(begin), int(end), most)
        ]
    return pieces
