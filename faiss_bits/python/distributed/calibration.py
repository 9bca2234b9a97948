"""The rates of a cluster, measured: what a plan of this machine is made with."""

import time

import numpy as np

from ..arrays import neighbours, whole_number
from .flat import BATCH, DistributedFlat
from .groups import Group
from .jobs import Deadline
from .planning import Rates


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
    group, d = index._groups[0], index.d
    workers = group.size

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
        read=4 * n * d / slowest("read", n, d),
        network=1 / max(per_byte, client_byte),
        message=max(near, small),
        setup=_setup(index),
        merge=part * k * workers / slowest("merge", part, k, workers),
        gpu=any(w["device"] == "gpu" for w in index.stats()["workers"]),
    )


def _setup(index):
    """Seconds in which workers get a host, without vectors."""
    times = []
    for _ in range(3):
        group = Group(
            index._transport, [[] for _ in index._groups[0].handles],
            index._options, index.d, "calibration",
        )
        begin = time.perf_counter()
        try:
            group.start(index._groups[0].addresses())
            group.call("shapes", [])
            group.join(Deadline(None, "calibrate"))
        finally:
            group.stop()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def _echo(group, size):
    """Seconds in which all workers send `size` bytes back to the client."""
    x = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        group.call("echo", x)
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) / group.size
