"""plan(): its bytes are those that jobs count, its times follow from the rates."""

import dataclasses

import numpy as np
import pytest
from clusters import ShardSpec, fd, flat, in_time, needs_dask, saved
from conftest import make

import faiss_bits

pytestmark = [needs_dask, in_time]
N, D, W = 1003, 12, 4
SLOW = None if fd is None else fd.Rates(
    scan=1e6, start=0.5, assign=1e5, sums=1e4, read=1e4, network=1e4, message=0.25, setup=2.0,
    merge=1e3, gpu=False,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("plan"), make("normal", N, D, 1))


def counted(index):
    """Traffic as plans name it."""
    stats = index.stats()
    found = {f"client {name}": size for name, size in stats["client"].items()}
    for worker in stats["workers"]:
        for name, size in worker["sent"].items():
            if name in ("inputs", "outputs", "rows"):
                found[name] = found.get(name, 0) + size
    return found, stats["workers"]


def there(traffic):
    return {name: size for name, size in traffic.items() if size}


@pytest.mark.parametrize("q, k, batch", [(301, 5, 100), (100, 40, 8192), (3, 1, 2)])
def test_bytes_of_a_search(path, q, k, batch):
    plan = fd.plan(N, D, q, k, W, batch=batch, rates=SLOW)
    with flat(ShardSpec.split(path, W)) as index:
        index.search(np.load(path)[:q], k, batch=batch)
        traffic, workers = counted(index)
    assert there(traffic) == there(plan.traffic)
    assert max(w["vector_bytes"] for w in workers) == plan.steps[0].memory
    assert max(w["largest_message"] for w in workers) == plan.largest_message
    jobs = max(w["most_job_bytes"] for w in workers)
    planned = plan.memory - plan.steps[0].memory
    # Of two batches at a time, which do not take their most at the same moment.
    assert jobs == planned if q <= batch else planned / 2 <= jobs <= planned


def test_bytes_of_a_graph(path):
    plan = fd.plan(N, D, N, 6, W, "knn_graph", batch=90, rates=SLOW)
    with flat(ShardSpec.split(path, W)) as index:
        fd.knn_graph(index, 6, batch=90, progress=False)
        traffic, _ = counted(index)
    assert there(traffic) == there(plan.traffic)
    assert plan.traffic["rows"] > N * D


def test_bytes_of_kmeans(path):
    plan = fd.plan(N, D, 0, 30, W, "kmeans", niter=3, rates=SLOW)
    with flat(ShardSpec.split(path, W)) as index:
        fd.kmeans(index, 30, 3, init_centroids=np.load(path)[:30], progress=False)
        traffic, workers = counted(index)
    assert there(traffic) == there(plan.traffic)
    assert max(w["largest_message"] for w in workers) == plan.largest_message


def test_times_are_sums_of_what_the_rates_say():
    plan = fd.plan(1000, 10, 200, 4, 2, batch=50, rates=SLOW)
    seconds = {step.name: step.seconds for step in plan.steps}
    assert seconds == pytest.approx({
        "load": 2 + 500 * 10 * 4 / 1e4,
        "queries to the workers": 200 * 40 / 1e4 + 2 * 4 * 0.25,
        "search": 4 * 0.5 + 200 * 500 * 10 / 1e6,
        "slices of results": 200 * 4 * 12 / 2 / 1e4 + 4 * 0.25,
        "merge": 200 * 4 / 1e3,
        "results to the client": 200 * 4 * 12 / 1e4 + 4 * 0.25,
    })
    assert plan.seconds == pytest.approx(sum(seconds.values()))
    rates = dataclasses.replace(SLOW, overhead=3.0)
    for step in fd.plan(1000, 10, 200, 4, 2, batch=50, rates=rates).steps:
        times = 1 if step.name in ("load", "search") else 3
        assert step.seconds == pytest.approx(times * seconds[step.name])
    plan = fd.plan(1000, 10, 0, 4, 2, "kmeans", niter=3, rates=SLOW)
    assert {step.name: step.seconds for step in plan.steps} == pytest.approx({
        "load": 2 + 500 * 10 * 4 / 1e4,
        "centroids to the workers": 3 * (4 * 40 / 1e4 + 2 * 0.25),
        "nearest centroids and sums": 3 * (0.5 + 500 * 40 / 1e5 + 5000 / 1e4),
        "slices of sums": 3 * ((8 * 10 + 8) * 4 / 2 / 1e4 + 0.25),
        "centroids to the client": 3 * ((4 * 10 + 8) * 4 / 1e4 + 0.25),
    })
    assert "| load |" in str(plan) and "| all |" in plan.table()


def test_calibrated_rates(path):
    """All are measured, and more vectors or queries are never less work."""
    with flat(ShardSpec.split(path, W)) as index:
        rates = fd.calibrate(index, 5, batch=200, n=4096)
    for name in ("scan", "assign", "sums", "read", "network", "message", "setup",
                 "merge", "overhead"):
        assert getattr(rates, name) > 0, name
    assert rates.start >= 0
    assert rates.gpu == (faiss_bits.get_num_gpus() > 0)
    times = [fd.plan(n, D, q, 5, W, rates=rates).seconds
             for n, q in ((1000, 10), (10**6, 10), (10**6, 10**4), (10**8, 10**4))]
    assert times == sorted(times)


def test_arguments():
    for arguments, kind, message in [
        ((10, 0, 1, 1, 1), ValueError, "d = 0"),
        ((10, 4, -1, 1, 1), ValueError, "q = -1"),
        ((10, 4, 1, 0, 1), ValueError, "k = 0"),
        ((10, 4, 1, 1, 0), ValueError, "workers = 0"),
        ((10, 4, 1, 1, 1, "sort"), ValueError, "task = 'sort'"),
        ((10, 4, 9, 1, 1, "knn_graph"), ValueError, "q = 9, but a graph has n = 10"),
    ]:
        with pytest.raises(kind, match=message):
            fd.plan(*arguments)
    with pytest.raises(TypeError, match="index is a int"):
        fd.calibrate(3, 4)
