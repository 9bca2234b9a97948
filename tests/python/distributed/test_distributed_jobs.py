"""Inverted lists, the k-NN graph and k-means over shards: one index's results, a
float64 reference, checkpoints, lost workers."""

import json
import os

import faiss
import numpy as np
import pytest
from clusters import (
    ShardSpec,
    client,
    fd,
    flat,
    in_time,
    kill,
    needs_dask,
    pid,
    same,
    saved,
)
from conftest import make

import faiss_bits
from faiss_bits.contrib import datasets
from faiss_bits.contrib.knn_graph import knn_graph, open_graph

pytestmark = [needs_dask, in_time]
L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT


# ---- inverted lists -----------------------------------------------------------


def one_ivf(x, centroids, metric, nprobe, ids=None):
    quantizer = faiss_bits.IndexFusedFlat(x.shape[1], metric)
    quantizer.add(centroids)
    index = faiss_bits.IndexFusedIVFFlat(
        quantizer, x.shape[1], len(centroids), metric
    )
    index.is_trained, index.nprobe = True, nprobe
    index.add_with_ids(x, np.arange(len(x)) if ids is None else ids)
    return index


def ivf(specs, *args, **kwargs):
    return fd.DistributedIVF(client(), specs, *args, progress=False, **kwargs)


@pytest.mark.parametrize("metric", [L2, IP])
def test_lists_are_those_of_one_index(tmp_path, metric):
    data = datasets.sift()
    x, queries = data.base[:20000], data.queries[:300]
    path = saved(tmp_path, x)
    with ivf(ShardSpec.split(path, 5), 50, metric, 4, niter=4) as index:
        assert index.centroids.shape == (50, 128)
        for nprobe in (1, 4, 50, 60):
            index.nprobe = nprobe
            one = one_ivf(x, index.centroids, metric, min(nprobe, 50))
            same(index.search(queries, 20, batch=128), one.search(queries, 20))
        radius = float(np.median(one.search(queries, 30)[0][:, -1]))
        lims, D, I = index.range_search(queries, radius, batch=100)
        expected = one.range_search(queries, radius)
        np.testing.assert_array_equal(lims, expected[0])
        for a, b in zip(lims, lims[1:]):
            order = np.argsort(expected[2][a:b])
            same((D[a:b], I[a:b]), (expected[1][a:b][order], expected[2][a:b][order]))
        # The same centroids whatever the shards: the sample is.
        with ivf(ShardSpec.split(path, 3), 50, metric, niter=4) as other:
            same([other.centroids], [index.centroids])


def test_lists_with_given_centroids_and_a_lost_worker(tmp_path):
    x = make("ties", 400, 4, 1)
    path = saved(tmp_path, x)
    centroids, first = x[:7], 2**34
    specs = [ShardSpec(path, 0, 100, first_id=first), ShardSpec(path, 100)]
    with ivf(specs, 7, nprobe=2, centroids=centroids) as index:
        expected = one_ivf(x, centroids, L2, 2, first + np.arange(400)).search(x, 90)
        same(index.search(x, 90), expected)
        kill(index._groups[0].handles[0].worker)
        same(index.search(x, 90, batch=50), expected)


def test_arguments_of_lists(tmp_path):
    x = make("normal", 20, 4, 2)
    specs = [ShardSpec(saved(tmp_path, x))]
    for arguments, options, kind, message in [
        ((0,), {}, ValueError, "nlist = 0"),
        ((4, faiss.METRIC_L1), {}, ValueError, "metric = 2"),
        ((4, L2, 0), {}, ValueError, "nprobe = 0"),
        ((30,), {}, ValueError, "nlist = 30, but there are 20"),
        ((4,), {"centroids": x[:3]}, ValueError, r"centroids has shape \(3, 4\)"),
        ((4,), {"centroids": x[:4] + 1j}, TypeError, "centroids .* complex"),
        ((4,), {"metric_arg": 3.0}, TypeError, "metric_arg"),
        ((4,), {"niter": 0}, ValueError, "niter = 0"),
        ((4,), {"speed": 9}, TypeError, "speed"),
    ]:
        with pytest.raises(kind, match=message):
            ivf(specs, *arguments, **options)


# ---- the graph ----------------------------------------------------------------


@pytest.mark.parametrize("metric", [L2, IP])
def test_graph_is_that_of_one_machine(tmp_path, metric):
    x = np.concatenate([make("ties", 150, 4, 3), make("normal", 250, 4, 4)])
    path, out = saved(tmp_path, x), tmp_path / "g.npy"
    specs = [ShardSpec(path, a, b) for a, b in ((0, 9), (9, 9), (9, 350), (350, 400))]
    expected = knn_graph(x, 6, metric=metric, progress=False)
    with flat(specs, metric) as index:
        same(fd.knn_graph(index, 6, progress=False), expected)
        graph = fd.knn_graph(index, 6, out, batch=37, progress=False)
        same((graph["distance"], graph["id"]), expected)
        assert not list(tmp_path.glob("*.checkpoint"))
        with pytest.raises(TypeError, match="expected a DistributedFlat"):
            fd.knn_graph("index", 6)
        with pytest.raises(ValueError, match="k = 0"):
            fd.knn_graph(index, 0)
    same([open_graph(out)["id"]], [expected[1]])


class Stop(Exception):
    pass


def stopped_after(calls, function):
    """A function that raises once it was called so often."""
    left = [calls]

    def stop(*args):
        if left[0] == 0:
            raise Stop
        left[0] -= 1
        return function(*args)

    return stop


def test_graph_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from faiss_bits.distributed import graph as module

    x = make("normal", 500, 5, 5)
    path, out = saved(tmp_path, x), tmp_path / "g.npy"
    expected = knn_graph(x, 4, progress=False)
    note = tmp_path / "g.npy.checkpoint"
    with flat(ShardSpec.split(path, 4)) as index:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_others", stopped_after(3, module._others))
            with pytest.raises(Stop):
                fd.knn_graph(index, 4, out, batch=60, checkpoint=0, progress=False)
        ids = open_graph(out)["id"]
        assert (ids[:180] >= 0).all() and (ids[180:] == -1).all()
        with pytest.raises(ValueError, match="of another job .k"):
            fd.knn_graph(index, 5, out, progress=False)
    # Other workers, another batch; a worker is lost, too. What is there stays.
    with flat(ShardSpec.split(path, 4), replicas=2) as index:
        begun = []
        batch_of = module._batch
        monkeypatch.setattr(
            module, "_batch", lambda *a: begun.append(a[1]) or batch_of(*a)
        )
        kill(index._groups[1].handles[0].worker)
        graph = fd.knn_graph(index, 4, out, batch=70, progress=False)
        assert begun[0] == 180
    same((graph["distance"], graph["id"]), expected)
    assert not note.exists()


def test_graph_from_the_start(tmp_path, monkeypatch):
    from faiss_bits.distributed import graph as module

    x = make("normal", 100, 5, 6)
    path, out = saved(tmp_path, x), tmp_path / "g.npy"
    with flat(ShardSpec.split(path, 4)) as index:
        with monkeypatch.context() as patch:
            patch.setattr(module, "_others", stopped_after(1, module._others))
            with pytest.raises(Stop):
                fd.knn_graph(index, 4, out, batch=30, checkpoint=0, progress=False)
        (tmp_path / "g.npy.checkpoint").write_bytes(b"not one")
        with pytest.raises(ValueError, match="not a readable checkpoint"):
            fd.knn_graph(index, 3, out, progress=False)
        graph = fd.knn_graph(index, 3, out, resume=False, progress=False)
        same([graph["id"]], [knn_graph(x, 3, progress=False)[1]])
        # What is no graph of these vectors stays as it is.
        for other in (np.zeros(100), np.zeros((100, 3)), {"id": 1}):
            with monkeypatch.context() as patch:
                patch.setattr(module, "_others", stopped_after(1, module._others))
                with pytest.raises(Stop):
                    fd.knn_graph(
                        index, 3, out, batch=30, checkpoint=0, progress=False
                    )
            with open(out, "wb") as file:
                if isinstance(other, dict):
                    np.savez(file, **other)
                else:
                    np.save(file, other)
            before = out.read_bytes()
            with pytest.raises(ValueError, match="g.npy: is not the graph that"):
                fd.knn_graph(index, 3, out, progress=False)
            assert out.read_bytes() == before
            (tmp_path / "g.npy.checkpoint").unlink()
        with pytest.raises(TimeoutError, match="knn_graph did not end"):
            fd.knn_graph(index, 3, batch=1, timeout=0.01, progress=False)


def test_graph_in_batches_of_fewer_rows_than_workers(tmp_path):
    x = make("normal", 31, 5, 6)
    path = saved(tmp_path, x)
    with flat(ShardSpec.split(path, 4)) as index:
        for batch in (1, 3, 15):
            graph = fd.knn_graph(index, 3, batch=batch, progress=False)
            same(graph, knn_graph(x, 3, progress=False))


def test_vectors_are_not_written_over(tmp_path, monkeypatch):
    """By whatever name they go."""
    x = make("normal", 40, 5, 11)
    path = saved(tmp_path, x)
    (tmp_path / "link.npy").symlink_to(path)
    os.link(path, tmp_path / "same.npy")
    monkeypatch.chdir(tmp_path)
    sizes = np.full((40, 1), 5, np.int32).view(np.float32)
    np.hstack([sizes, x]).tofile("y.fvecs")
    for specs, own in (
        (ShardSpec.split(path, 2), (path, "x.npy", "link.npy", "same.npy")),
        ([ShardSpec(tmp_path / "link.npy")], ("x.npy",)),
        ([ShardSpec(path), ShardSpec(tmp_path / "y.fvecs")], ("./y.fvecs",)),
    ):
        with flat(specs) as index:
            for out in own:
                for call in (
                    lambda: fd.knn_graph(index, 3, out, progress=False),
                    lambda: fd.knn_graph(index, 3, out, resume=False, progress=False),
                    lambda: fd.kmeans(index, 3, 1, path=out, progress=False),
                    lambda: fd.kmeans(
                        index, 3, 1, path=out, resume=False, progress=False
                    ),
                ):
                    with pytest.raises(ValueError, match="path = .*which is the file"):
                        call()
    np.testing.assert_array_equal(np.load(path), x)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "link.npy", "same.npy", "x.npy", "y.fvecs"
    ]


# ---- k-means ------------------------------------------------------------------


def lloyd(x, centroids, niter):
    """k-means in float64, centroids rounded to float32 after every step."""
    x, obj = x.astype(np.float64), []
    for _ in range(niter):
        keys = ((x[:, None] - centroids[None].astype(np.float64)) ** 2).sum(2)
        labels = keys.argmin(1)
        obj.append(keys.min(1).sum())
        centroids = np.stack(
            [x[labels == c].mean(0) for c in range(len(centroids))]
        ).astype(np.float32)
    return centroids, obj, np.bincount(labels, minlength=len(centroids))


def test_kmeans_is_the_reference(tmp_path):
    x = np.random.default_rng(7).integers(0, 50, (3000, 6)).astype(np.float32)
    path = saved(tmp_path, x)
    ends = ((0, 7), (7, 7), (7, 2500), (2500, 3000))
    specs = [ShardSpec(path, a, b) for a, b in ends]
    expected = lloyd(x, x[:12], 6)
    with flat(specs) as index:
        found = fd.kmeans(index, 12, 6, init_centroids=x[:12], progress=False)
        np.testing.assert_allclose(found.centroids, expected[0], rtol=1e-6)
        np.testing.assert_allclose(found.obj, expected[1], rtol=1e-6)
        np.testing.assert_array_equal(found.counts, expected[2])
        # Its own start: k different vectors, the same for a seed.
        a, b = (fd.kmeans(index, 12, 3, seed=5, progress=False) for _ in range(2))
        same(a, b)
        c = fd.kmeans(index, 12, 3, seed=6, progress=False)
        assert (c.centroids != a.centroids).any()


def test_kmeans_does_not_depend_on_the_workers(tmp_path, monkeypatch):
    """The same shards on four workers, on two, after a stop, with a loss."""
    from faiss_bits.distributed import clustering as module

    x = make("normal", 2000, 8, 8)
    specs = ShardSpec.split(saved(tmp_path, x), 6)
    note = tmp_path / "k.npz"
    with flat(specs) as index:
        whole = fd.kmeans(index, 20, 6, progress=False)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_step", stopped_after(3, module._step))
            with pytest.raises(Stop):
                fd.kmeans(index, 20, 6, path=note, progress=False)
        with pytest.raises(ValueError, match="of another job .k"):
            fd.kmeans(index, 21, 6, path=note, progress=False)
    with flat(specs, workers=sorted(client().nthreads())[:2]) as index:
        same(fd.kmeans(index, 20, 6, progress=False), whole)
        step, calls = module._step, []
        victim = index._groups[0].handles[1].worker
        process = pid(victim)

        def lose(*args):
            calls.append(1)
            if len(calls) == 2:
                kill(victim, process)
            return step(*args)

        monkeypatch.setattr(module, "_step", lose)
        index._workers = None  # any may take its place
        same(fd.kmeans(index, 20, 6, path=note, progress=False), whole)
        assert len(calls) == 3  # half of it was done before
        # All of it is done: nothing more runs.
        same(fd.kmeans(index, 20, 6, path=note, progress=False), whole)
        assert len(calls) == 3


def test_files_that_are_no_checkpoint(tmp_path):
    x, file = make("normal", 30, 4, 12), tmp_path / "c.npz"
    path = saved(tmp_path, x)

    def text(value):
        return lambda: np.savez(file, text=np.array(value))

    with flat([ShardSpec(path)]) as index:
        fd.kmeans(index, 3, 2, path=file, progress=False)
        good = file.read_bytes()
        with np.load(file) as whole:
            parts = dict(whole)
        found = json.loads(str(parts.pop("text")))
        other = json.dumps({**found, "state": {}})
        for write in (
            lambda: file.write_bytes(path.read_bytes()),
            lambda: file.write_bytes(b""),
            lambda: file.write_bytes(good[:300]),
            lambda: file.write_bytes(good[:300] + b"x" * 40 + good[340:]),
            lambda: np.savez(file, x=x),
            lambda: np.savez(file, text=np.array([{}], object)),
            text("[1]"),
            text("{}"),
            text('{"job": 3, "state": {}}'),
            text('{"job": {}}'),
            text(json.dumps(found)),
            lambda: np.savez(file, text=np.array(other), **parts),
        ):
            write()
            before = file.read_bytes()
            with pytest.raises(ValueError, match="c.npz: not a readable checkpoint"):
                fd.kmeans(index, 3, 2, path=file, progress=False)
            assert file.read_bytes() == before
        file.write_bytes(good)
        fd.kmeans(index, 3, 2, path=file, progress=False)


def test_kmeans_splits_for_empty_clusters(tmp_path):
    x = np.repeat(np.float32([[0, 0], [9, 9], [50, 1]]), 40, axis=0)
    x += np.random.default_rng(9).integers(0, 3, x.shape)
    far = np.float32([[0, 0], [9, 9], [50, 1], [1e6, 1e6], [2e6, 0]])
    with flat(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        found = fd.kmeans(index, 5, 8, init_centroids=far, progress=False)
    assert found.nsplit[0] == 2 and found.nsplit[-1] == 0
    assert (found.counts > 0).all() and found.counts.sum() == 120
    assert found.obj[-1] < found.obj[0]


def test_arguments_of_kmeans(tmp_path):
    x = make("normal", 30, 4, 10)
    with flat([ShardSpec(saved(tmp_path, x))]) as index:
        for call, kind, message in [
            (lambda: fd.kmeans(index, 31), ValueError, "k = 31, but there are 30"),
            (lambda: fd.kmeans(index, 0), ValueError, "k = 0"),
            (lambda: fd.kmeans(index, 3, 0), ValueError, "niter = 0"),
            (lambda: fd.kmeans(index, 3, seed=-1), ValueError, "seed = -1"),
            (lambda: fd.kmeans(index, 3, init_centroids=x[:2]), ValueError,
             r"init_centroids has shape \(2, 4\)"),
            (lambda: fd.kmeans(index, 3, init_centroids=x[:3] + 1j), TypeError,
             "init_centroids .* complex"),
            (lambda: fd.kmeans(x, 3), TypeError, "index is a ndarray"),
        ]:
            with pytest.raises(kind, match=message):
                call()
    x[17, 2] = np.nan
    with flat([ShardSpec(saved(tmp_path, x))]) as index:
        with pytest.raises(ValueError, match="row 17 of the collection has a NaN"):
            fd.kmeans(index, 3, init_centroids=x[:3], progress=False)
