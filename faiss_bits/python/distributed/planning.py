"""What a job on many machines takes: memory, traffic and time of each step, before
it starts."""

import dataclasses

import numpy as np

from ..arrays import whole_number
from .flat import BATCH
from .merge import BYTES_OF_RESULT, slice_bounds

# Batches of which a worker keeps arrays at a time.
_KEPT = 2


@dataclasses.dataclass(frozen=True)
class Rates:
    """How fast workers are. calibrate() measures them; the defaults are an H200
    (benchs/results/h200/flat.json: 10,240 queries, 2^20 x 128, k = 10;
    kmeans.json: 2^20 x 128 into 4,096) behind a network of 25 Gbit/s, with merges
    (32 workers, k = 10) and sums by one core of a server, as measured.

    scan     products of components a second: queries times vectors times d
    start    seconds that a batch takes besides, on a worker
    assign   products a second for the nearest centroid
    sums     components a second that are added to sums of clusters
    read     bytes a second of vectors that a worker reads and adds
    network  bytes a second that a worker, or the client, sends or receives
    message  seconds of a message
    setup    seconds in which the workers are made ready
    merge    results a second that a worker merges
    overhead  what all steps but `load` and `search` take together, over the sum
             of what each takes alone
    gpu      whether vectors are on a GPU, with their copy of 16 bits
    """

    scan: float = 2.7e14
    start: float = 2e-4
    assign: float = 1.1e14
    sums: float = 1.1e8
    read: float = 2e9
    network: float = 3.1e9
    message: float = 2e-3
    setup: float = 1.0
    merge: float = 2.7e7
    overhead: float = 1.0
    gpu: bool = True


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of a plan: `bytes` that the network carries in all, seconds, and
    the bytes that each worker keeps because of it."""

    name: str
    bytes: int
    seconds: float
    memory: int


class Plan:
    """Steps of a job and their sums.

    Attributes
    ----------
    steps : list of Step
        name, bytes, seconds and memory of each
    seconds : float
        Of all steps, one after another; what overlaps takes less
    traffic : dict
        Bytes of arrays in all, as DistributedFlat.stats() counts them: of the
        client its "inputs" and "results", of the workers "inputs", "outputs",
        "rows" and "results"
    memory : int
        Bytes that a worker keeps at most, of arrays and vectors
    largest_message : int
        Bytes
    """

    def __init__(self, title, steps, traffic, largest_message):
        self.title, self.steps, self.traffic = title, steps, traffic
        self.seconds = sum(step.seconds for step in steps)
        self.memory = sum(step.memory for step in steps)
        self.largest_message = largest_message

    def table(self):
        """The plan as a table of Markdown."""
        lines = [
            f"| {self.title} | network | time | memory of a worker |",
            "|---|---|---|---|",
        ]
        for step in self.steps:
            lines.append(
                f"| {step.name} | {_amount(step.bytes)} | {_time(step.seconds)} | "
                f"{_amount(step.memory)} |"
            )
        lines.append(
            f"| all | {_amount(sum(s.bytes for s in self.steps))} | "
            f"{_time(self.seconds)} | {_amount(self.memory)} |"
        )
        return "\n".join(lines)

    __str__ = table


def plan(
    n, d, q, k, workers, task="search", batch=BATCH, niter=25, rates=Rates(),
    bytes_of_component=4,
):
    """What a job takes on `workers` workers of one replica, with a shard of
    nearly the same size each.

    Parameters
    ----------
    n, d : int
        Vectors and their dimension
    q : int
        Queries; of "knn_graph" n, of "kmeans" not used
    k : int
        Neighbours, or clusters of "kmeans"
    workers : int
        Workers, 1 or more
    task : str, optional
        "search", "knn_graph" or "kmeans"
    batch : int, optional
        Queries at a time
    niter : int, optional
        Iterations of "kmeans"
    rates : Rates, optional
        Of calibrate(); else the defaults
    bytes_of_component : int, optional
        In the files: 4, or 1 for .bvecs

    Returns
    -------
    plan : Plan
        Bytes are what the job will count, exactly; times are as good as the
        rates (docs/distributed.md)
    """
    n, d = whole_number(n, "n", 0), whole_number(d, "d", 1)
    q, k = whole_number(q, "q", 0), whole_number(k, "k", 1)
    workers = whole_number(workers, "workers", 1)
    batch = whole_number(batch, "batch", 1)
    if task not in ("search", "knn_graph", "kmeans"):
        raise ValueError(
            f"task = {task!r} is none of 'search', 'knn_graph' and 'kmeans'"
        )
    if task == "knn_graph" and q != n:
        raise ValueError(f"q = {q}, but a graph has n = {n} queries")
    most = -(-n // workers)
    load = Step(
        "load",
        0,
        rates.setup + most * d * bytes_of_component / rates.read,
        most * (4 * d + (_image_bytes(d) if rates.gpu else 0)),
    )
    if task == "kmeans":
        return _kmeans_plan(n, d, k, workers, most, niter, rates, load)
    return _search_plan(n, d, q, k, workers, most, batch, rates, load, task)


def _image_bytes(d):
    """Of a vector's copy of 16 bits (docs/exact.md)."""
    return int(2.1 * d) + 38


def _search_plan(n, d, q, k, W, most, batch, rates, load, task):
    graph = task == "knn_graph"
    if graph:
        k += 1  # with itself
    batches = -(-q // batch)
    size = min(batch, q)
    part = -(-size // W)
    own_rows = _own_rows(n, W, batch) if graph else 0
    traffic = {
        "client inputs": 0 if graph else 4 * d * q,
        "client results": BYTES_OF_RESULT * k * q,
        "inputs": (W - 1) * 4 * d * q,
        "outputs": (W - 1) * BYTES_OF_RESULT * k * q,
        "rows": 4 * d * (q - own_rows) if graph else 0,
    }
    kept = min(batches, _KEPT)
    queries = traffic["client inputs"] + traffic["inputs"] + traffic["rows"]
    # Of a link: the client's, or a worker's in one direction.
    link = max(traffic["client inputs"], 4 * d * q)
    steps = [
        load,
        Step(
            "queries to the workers",
            queries,
            rates.overhead * (link / rates.network + 2 * batches * rates.message),
            kept * 4 * d * (size + part),
        ),
        Step(
            "search",
            0,
            batches * rates.start + q * most * d / rates.scan,
            kept * BYTES_OF_RESULT * k * size,
        ),
        Step(
            "slices of results",
            traffic["outputs"],
            rates.overhead
            * (traffic["outputs"] / W / rates.network + batches * rates.message),
            kept * BYTES_OF_RESULT * k * (W - 1) * part,
        ),
        Step(
            "merge",
            0,
            rates.overhead * q * k / rates.merge,
            kept * BYTES_OF_RESULT * k * part,
        ),
        Step(
            "results to the client",
            traffic["client results"],
            rates.overhead
            * (traffic["client results"] / rates.network + batches * rates.message),
            0,
        ),
    ]
    return Plan(
        f"{task}, n = {n:,}, d = {d}, {W} workers, q = {q:,}, "
        f"k = {k - graph:,}",
        steps,
        traffic,
        max(4 * d * part, BYTES_OF_RESULT * k * part) if q else 0,
    )


def _own_rows(n, W, batch):
    """Rows that a worker searches for and holds itself: shard i is worker i's."""
    begins = np.arange(0, n, batch, dtype=np.int64)
    sizes = np.minimum(begins + batch, n) - begins
    shards = slice_bounds(n, W)
    own = 0
    for rank in range(W):
        first = begins + sizes * rank // W
        last = begins + sizes * (rank + 1) // W
        overlap = np.minimum(last, shards[rank + 1]) - np.maximum(first, shards[rank])
        own += int(np.maximum(overlap, 0).sum())
    return own


def _kmeans_plan(n, d, k, W, most, niter, rates, load):
    niter = whole_number(niter, "niter", 1)
    part = -(-k // W)
    of_step = {
        "client inputs": 4 * d * k,
        "client results": (4 * d + 8) * k,
        "inputs": (W - 1) * 4 * d * k,
        "outputs": (W - 1) * (8 * d + 8) * k,
    }
    traffic = {name: niter * value for name, value in of_step.items()}
    steps = [
        load,
        Step(
            "centroids to the workers",
            niter * (of_step["client inputs"] + of_step["inputs"]),
            niter * (4 * d * k / rates.network + 2 * rates.message),
            4 * d * (k + part),
        ),
        Step(
            "nearest centroids and sums",
            0,
            niter
            * (rates.start + most * k * d / rates.assign + most * d / rates.sums),
            (8 * d + 8) * k,
        ),
        Step(
            "slices of sums",
            niter * of_step["outputs"],
            niter * (of_step["outputs"] / W / rates.network + rates.message),
            (8 * d + 8) * (W - 1) * part,
        ),
        Step(
            "centroids to the client",
            niter * of_step["client results"],
            niter * (of_step["client results"] / rates.network + rates.message),
            0,
        ),
    ]
    return Plan(
        f"kmeans, n = {n:,}, d = {d}, {W} workers, k = {k:,}, {niter} iterations",
        steps,
        traffic,
        max(4 * d * part, (8 * d + 8) * part),
    )


def _amount(size):
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}" if size < 1000 * scale else (
                f"{size / scale:,.0f} {unit}"
            )
    return f"{size} B" if size else "-"


def _time(seconds):
    if seconds >= 120:
        return f"{seconds / 60:,.3g} min" if seconds < 7200 else (
            f"{seconds / 3600:,.3g} h"
        )
    if seconds >= 0.1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds else "-"
