"""The rates of a cluster, measured: what a plan of this machine is made with."""

import dataclasses
import time

import numpy as np

from ..arrays import neighbours, whole_number
from .batches import Batch, Runner
from .flat import BATCH, DistributedFlat
from .groups import Group
from .jobs import Deadline
from .planning import Rates, plan


def calibrate(index, k, batch=BATCH, n=1 << 15):
    """Measures how fast the workers of an index are, all at the same time, with
    made-up vectors of its dimension. It takes some seconds.

    Parameters
    ----------
    index : DistributedFlat
        On the workers that are meant, of the metric and the dimension of the plan;
        what vectors it has does not matter
    k : int
        Neighbours, or clusters, of the plan
    batch : int, optional
        Queries at a time, of the plan
    n : int, optional
        Vectors on a worker that are searched and read

    Returns
    -------
    rates : Rates
        For plan(); of the slowest worker
    """
    if type(index) is not DistributedFlat:
        raise TypeError(
            f"index is a {type(index).__name__}, expected a DistributedFlat"
        )
    k, batch = neighbours(k), whole_number(batch, "batch", 1)
    n = whole_number(n, "n", 1024)
    setup, group = _made_up_group(index)
    try:
        rates = _measured(index, group, k, batch, n, setup)
        overhead = _overhead(index, group, k, batch, rates)
        return dataclasses.replace(rates, overhead=overhead)
    finally:
        group.stop()


# Vectors of a worker that is searched for what a search takes besides.
_FEW = 512
_BATCHES = 5


def _made_up_group(index):
    """(seconds, a group): hosts of some random vectors, on the workers of an
    index."""
    def new(parts):
        return Group(index._transport, parts, index._options, index.d, "calibration")

    addresses = index._groups[0].addresses()
    group, first = new([[] for _ in addresses]), new([[]])
    begin = time.perf_counter()
    try:
        # As an index does: one that looks at the files, then all.
        first.start(addresses[:1])
        first.call("shapes", [])
        first.stop()
        group.start(addresses)
        group.join(Deadline(None, "calibrate"))
        group.results(
            [
                (handle, ("make_up", _FEW, index.d, rank * _FEW))
                for rank, handle in enumerate(group.handles)
            ]
        )
        seconds = time.perf_counter() - begin
    except BaseException:
        first.stop()
        group.stop()
        raise
    return seconds, group


def _overhead(index, group, k, batch, rates):
    """What a whole search takes besides its scan, over what a plan of the other
    rates says of that."""
    W, d = group.size, index.d
    x = np.random.default_rng(5).random((_BATCHES * batch, d), np.float32)
    runner = Runner(index._transport, [group], None)

    def search():
        batches = (
            Batch(
                "search", batch,
                lambda bounds, i=i: [
                    x[i + a : i + b] for a, b in zip(bounds, bounds[1:])
                ],
                {"k": k},
                lambda send, number, results: [
                    np.concatenate(part) for part in zip(*results)
                ],
            )
            for i in range(0, len(x), batch)
        )
        begin = time.perf_counter()
        list(runner.run(batches, Deadline(None, "calibrate")))
        return time.perf_counter() - begin

    scan = max(group.call("measure", "search", _FEW, d, batch, k))
    found = np.median([search() for _ in range(3)]) - _BATCHES * scan
    steps = plan(W * _FEW, d, len(x), k, W, batch=batch, rates=rates).steps
    planned = sum(s.seconds for s in steps if s.name not in ("load", "search"))
    return float(max(found / planned, 0.1))


def _measured(index, group, k, batch, n, setup):
    """Rates of single steps."""
    d, workers = index.d, group.size

    def slowest(what, *args):
        return max(group.call("measure", what, *args))

    # A line through the times of few vectors and of many.
    few = max(1, n // 8)
    short, long = (slowest("search", m, d, batch, k) for m in (few, n))
    pair = max(long - short, long / 4) / (n - few)  # seconds a vector
    part = -(-batch // workers)
    clusters = min(k, n)
    size = max(4 * part * max(12 * k, 4 * d), 1 << 20)
    near, far = (max(group.call("exchange", x, 5)) for x in (1024, size + 1024))
    small, large = (_echo(group, x) for x in (1024, size + 1024))
    per_byte = max(far - near, far / 4) / max(1, workers - 1) / size
    client_byte = max(large - small, large / 4) / 2 / size
    return Rates(
        scan=batch * d / pair,
        start=max(long - pair * n, 0.0),
        assign=n * clusters * d / slowest("assign", n, d, clusters),
        sums=n * d / slowest("sums", n, d, clusters),
        read=4 * n * d / slowest("read", n, d),
        network=1 / max(per_byte, client_byte),
        message=max(near, small),
        setup=setup,
        merge=part * k * workers / slowest("merge", part, k, workers),
        gpu=any(w["device"] == "gpu" for w in index.stats()["workers"]),
    )


def _echo(group, size):
    """Seconds in which all workers send `size` bytes back to the client."""
    x = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        group.call("echo", x)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) / group.size
