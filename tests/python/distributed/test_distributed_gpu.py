"""faiss_bits.distributed on GPU workers, and on workers of both kinds: the bits of
one index of the CPU. The four workers of LocalCluster share the first GPU."""

import contextlib
import gc
import time

import faiss
import numpy as np
import pytest
from clusters import (
    ShardSpec,
    client,
    distributed,
    fd,
    flat,
    kill,
    needs_dask,
    one_index,
    same,
    saved,
)
from conftest import INDEX_METRICS, for_metric, make

import faiss_bits
from faiss_bits.contrib import datasets

pytestmark = [needs_dask, pytest.mark.gpu]
L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT


def devices(index):
    return sorted(worker["device"] for worker in index.stats()["workers"])


def on_gpus(specs, *args, **kwargs):
    return flat(specs, *args, device="gpu", **kwargs)


@pytest.mark.parametrize("metric", [L2, IP])
def test_sift(tmp_path, metric):
    data = datasets.sift()
    path, queries = saved(tmp_path, data.base), data.queries[:500]
    one = faiss_bits.GpuIndexBitsFlat(faiss.StandardGpuResources(), 128, metric)
    one.add(data.base)
    expected = one_index(data.base, metric).search(queries, 100)
    same(one.search(queries, 100), expected)
    with on_gpus(ShardSpec.split(path, 4), metric) as index:
        assert devices(index) == ["gpu"] * 4
        same(index.search(queries, 100, batch=128), expected)
        same(index.search(queries[:1], 3000), one.search(queries[:1], 3000))


def test_fashion_mnist_and_ranges(tmp_path):
    data = datasets.fashion_mnist()
    x, queries = data.train[:20000], data.test[:100]
    path = saved(tmp_path, x.astype(np.uint8))
    one = one_index(x)
    ends = [0, 9000, 9001, 15000, 20000]
    specs = [ShardSpec(path, *pair) for pair in zip(ends, ends[1:])]
    with on_gpus(specs, replicas=2) as index:
        same(index.search(queries, 20, batch=30), one.search(queries, 20))
        radius = float(one.search(queries, 50)[0][:, -1].mean())
        expected = one.range_search(queries, radius)
        assert len(expected[1]) > 1000
        same(index.range_search(queries, radius, batch=64), expected)


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
@pytest.mark.parametrize("kind", ["ties", "equal", "normal"])
def test_metrics_and_hard_values(tmp_path, metric, argument, name, kind):
    """Uneven and empty shards, ties across them, NaN and infinities."""
    x, queries = for_metric(name, make(kind, 300, 5, 1), make(kind, 23, 5, 2))
    if kind == "normal":
        x[::7, 1], x[3::7, 2], x[5::11, 0] = np.nan, np.inf, -np.inf
        queries[:9] = x[:9]
    path, ends = saved(tmp_path, x), [0, 0, 1, 1, 200, 290, 300]
    specs = [ShardSpec(path, *pair) for pair in zip(ends, ends[1:])]
    one = one_index(x, metric, argument)
    with on_gpus(specs, metric, metric_arg=argument) as index:
        for k in (1, 7, 64, 305):
            same(index.search(queries, k, batch=10), one.search(queries, k))


def test_lists(tmp_path):
    data = datasets.sift()
    x, queries = data.base[:20000], data.queries[:300]
    specs = ShardSpec.split(saved(tmp_path, x), 5)
    with fd.DistributedIVF(
        client(), specs, 50, niter=4, device="gpu", progress=False
    ) as index:
        assert devices(index) == ["gpu"] * 4
        quantizer = one_index(index.centroids)
        one = faiss_bits.IndexFusedIVFFlat(quantizer, 128, 50)
        one.is_trained = True
        one.add(x)
        for nprobe in (1, 4, 50):
            index.nprobe = one.nprobe = nprobe
            found = index.search(queries, 20, batch=128)
            same(found, one.search(queries, 20))
        # Of all lists: what a flat index finds.
        radius = float(np.median(found[0][:, -1]))
        expected = one_index(x).range_search(queries, radius)
        same(index.range_search(queries, radius, batch=100), expected)


def test_jobs_give_the_bits_of_cpu_workers(tmp_path):
    x = np.concatenate([make("ties", 150, 8, 3), make("normal", 1850, 8, 4)])
    specs = ShardSpec.split(saved(tmp_path, x), 6)

    def jobs(device):
        with flat(specs, device=device) as index:
            return [
                *fd.knn_graph(index, 6, batch=333, progress=False),
                *fd.kmeans(index, 20, 5, progress=False),
            ]

    same(map(np.asarray, jobs("gpu")), map(np.asarray, jobs("cpu")))


def test_a_lost_worker_is_replaced(tmp_path):
    x = make("normal", 3000, 16, 5)
    with on_gpus(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        expected = one_index(x).search(x, 9)
        kill(index._groups[0].handles[1].worker)
        same(index.search(x, 9, batch=500), expected)
        assert devices(index) == ["gpu"] * 4


def holders_of_memory():
    """How many objects of this process hold memory of a GPU."""
    gc.collect()
    kinds = (faiss_bits.GpuIndexBitsFlat, faiss.StandardGpuResources)
    return sum(isinstance(one, kinds) for one in gc.get_objects())


def test_a_closed_index_gives_its_memory_back(tmp_path):
    specs = ShardSpec.split(saved(tmp_path, make("normal", 2000, 64, 6)), 4)
    before = client().run(holders_of_memory)
    index = on_gpus(specs)
    assert all(count >= 2 for count in client().run(holders_of_memory).values())
    index.close()
    end = time.monotonic() + 30
    while True:
        now = client().run(holders_of_memory)
        if all(now[worker] <= count for worker, count in before.items()):
            break
        assert time.monotonic() < end, (now, before)
        time.sleep(0.1)


def test_times_of_gpu_workers(tmp_path):
    x = make("normal", 4000, 16, 7)
    with on_gpus(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        rates = fd.calibrate(index, 10)
        planned = fd.plan(4000, 16, 100, 10, 4, rates=rates)
        assert 0 < planned.seconds < 60
        index.search(x[:100], 10)


@contextlib.contextmanager
def workers_that_see(*gpus):
    """A client of a cluster with a worker for each value of CUDA_VISIBLE_DEVICES."""
    workers = {
        number: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "env": {"CUDA_VISIBLE_DEVICES": seen},
                "dashboard_address": None,
            },
        }
        for number, seen in enumerate(gpus)
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"dashboard_address": None, "port": 0},
    }
    with distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster:
        with distributed.Client(cluster) as there:
            there.wait_for_workers(len(gpus))
            yield there


@pytest.mark.parametrize("gpus, kinds", [
    (("", "0"), ["cpu", "gpu"]),
    (("0", "1"), ["gpu", "gpu"]),
])
def test_workers_that_see_other_gpus(tmp_path, gpus, kinds):
    """Both kinds of workers mixed, and a GPU for each."""
    if "1" in gpus and faiss_bits.get_num_gpus() < 2:
        pytest.skip("one GPU")
    x = np.concatenate([make("ties", 500, 6, 8), make("normal", 2500, 6, 9)])
    specs = ShardSpec.split(saved(tmp_path, x), 5)
    with workers_that_see(*gpus) as there:
        for metric in (L2, IP):
            with fd.DistributedFlat(there, specs, metric, progress=False) as index:
                assert devices(index) == kinds
                found = index.search(x[:600], 40, batch=256)
                same(found, one_index(x, metric).search(x[:600], 40))
                clusters = fd.kmeans(index, 12, 4, progress=False)
                assert clusters.counts.sum() == len(x)
                radius = float(np.median(found[0][:, 9]))
                same(
                    index.range_search(x[:100], radius),
                    one_index(x, metric).range_search(x[:100], radius),
                )
