"""A LocalCluster of four CPU workers that the tests share, and what they do to it.
Where Dask is missing the tests are skipped, by name."""

import atexit
import logging
import os
import signal
import time

import faiss
import numpy as np
import pytest

import faiss_bits

try:
    import dask
    from distributed import Client  # noqa: F401 (not a folder of that name)
except ImportError:
    dask = distributed = fd = ShardSpec = None
else:
    import distributed

    import faiss_bits.distributed as fd
    from faiss_bits.distributed import ShardSpec

needs_dask = pytest.mark.skipif(
    fd is None, reason="Dask is not installed (Debian: python3-distributed)"
)
# The longest takes 8 s on two cores.
in_time = pytest.mark.timeout(180)
WORKERS = 4
_shared = {}


def client():
    """Of the cluster, which starts when it is first asked for."""
    if not _shared:
        # Else a cluster gives up a worker that is dead 15 seconds after it died
        # before.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})
        cluster = distributed.LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
        _shared["cluster"] = cluster
        _shared["client"] = distributed.Client(cluster)
        atexit.register(close)
    whole(_shared["client"])
    return _shared["client"]


def close():
    """The next that asks for a client gets a new cluster."""
    client = _shared.pop("client", None)
    cluster = _shared.pop("cluster", None)
    for one in (client, cluster):
        try:
            if one is not None:
                one.close(timeout=10)
        except TimeoutError:  # of a sick one; its processes end with this one
            pass


def state():
    """What the scheduler knows of the workers and of all that it runs, and their
    processes: for the report of a test that failed."""
    if not _shared:
        return "no cluster"
    cluster = _shared["cluster"]
    lines = [
        f"{ws.address} {ws.name} {ws.status.name}, heard of "
        f"{time.time() - ws.last_seen:.1f} s ago, {len(ws.actors)} actors"
        for ws in list(cluster.scheduler.workers.values())
    ]
    lines += [
        f"{ts.key}: {ts.state}, on {ts.processing_on}"
        for ts in list(cluster.scheduler.tasks.values())
    ]
    lines += [
        f"process {nanny.pid} of {nanny.worker_address}: {nanny.status.name}"
        for nanny in list(cluster.workers.values())
    ]
    return "\n".join(lines)


def whole(one, count=WORKERS):
    """Waits until all workers are there."""
    end = time.monotonic() + 60
    while len(one.nthreads()) != count:
        assert time.monotonic() < end, one.nthreads()
        time.sleep(0.05)


def pid(address):
    return client_of().run(os.getpid, workers=[address])[address]


def client_of():
    return _shared["client"]


def kill(address, process=None):
    """A worker ends as if its machine had lost power; Dask starts another."""
    os.kill(process or pid(address), signal.SIGKILL)


def flat(specs, metric=faiss.METRIC_L2, replicas=1, **kwargs):
    return fd.DistributedFlat(
        client(), specs, metric, replicas, progress=False, **kwargs
    )


def saved(tmp_path, x, name="x.npy"):
    np.save(tmp_path / name, x)
    return tmp_path / name


def one_index(x, metric=faiss.METRIC_L2, argument=0):
    index = faiss_bits.IndexFusedFlat(x.shape[1], metric, argument)
    index.add(x)
    return index


def same(found, expected):
    """The same bits."""
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype or a.dtype.itemsize == b.dtype.itemsize
        np.testing.assert_array_equal(a, b)
        assert a.tobytes() == np.asarray(b, a.dtype).tobytes()
