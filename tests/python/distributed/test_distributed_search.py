"""DistributedFlat on four CPU workers: the bits of one index, whatever the shards
and the batches; a float64 reference; messages; arguments."""

import faiss
import numpy as np
import oracle
import pytest
from clusters import (
    ShardSpec,
    client,
    fd,
    flat,
    in_time,
    needs_dask,
    one_index,
    same,
    saved,
)
from conftest import INDEX_METRICS, for_metric, make

from faiss_bits.contrib import datasets

pytestmark = [needs_dask, in_time]
L2, IP = faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT


def cut(path, *ends, **kwargs):
    """Shards of the rows up to each end."""
    return [ShardSpec(path, a, b, **kwargs) for a, b in zip((0, *ends), ends)]


# ---- real data ----------------------------------------------------------------


@pytest.mark.parametrize("metric", [L2, IP])
def test_sift(tmp_path, metric):
    data = datasets.sift()
    path = saved(tmp_path, data.base)
    queries = data.queries[:200]
    with flat(ShardSpec.split(path, 4), metric) as index:
        assert (index.d, index.ntotal) == (128, 99000)
        found = index.search(queries, 100, batch=128)
    same(found, one_index(data.base, metric).search(queries, 100))
    if metric == L2:
        D, I = found
        truth = data.truth[:200]
        exact = ((queries[:, None] - data.base[truth]) ** 2).sum(2)
        np.testing.assert_array_equal(D[:, : truth.shape[1]], np.sort(exact, axis=1))


def test_fashion_mnist_and_ranges(tmp_path):
    data = datasets.fashion_mnist()
    x, queries = data.train[:20000], data.test[:100]
    path = saved(tmp_path, x.astype(np.uint8))
    one = one_index(x)
    with flat(cut(path, 9000, 9001, 15000, 20000)) as index:
        same(index.search(queries, 20), one.search(queries, 20))
        radius = float(one.search(queries, 50)[0][:, -1].mean())
        expected = one.range_search(queries, radius)
        assert len(expected[1]) > 1000
        same(index.range_search(queries, radius, batch=64), expected)


# ---- shards -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ties", "equal", "normal"])
@pytest.mark.parametrize("metric", [L2, IP])
def test_reference(tmp_path, kind, metric):
    """Uneven and empty shards, ties across them, k beyond a shard and beyond all
    vectors, against float64."""
    x, queries = make(kind, 300, 5, 1), make(kind, 23, 5, 2)
    path = saved(tmp_path, x)
    exact = oracle.distances(queries, x, inner_product=metric == IP)
    with flat(cut(path, 0, 1, 1, 200, 290, 300), metric) as index:
        for k in (1, 7, 64, 299, 305):
            D, I = index.search(queries, k, batch=10)
            same((D, I), one_index(x, metric).search(queries, k))
            if kind != "normal":  # exact in float32: ties are ties
                for row, values in enumerate(exact):
                    np.testing.assert_array_equal(
                        I[row], oracle.best(values, k, largest=metric == IP)
                    )


@pytest.mark.parametrize("order", [1, -1])
def test_tiny_shards_in_any_order(tmp_path, order):
    """32 shards of 0 to 4 rows on four workers; ids that descend over them."""
    x = make("ties", 64, 3, 5)
    path = saved(tmp_path, x)
    ends = np.minimum(np.cumsum(np.arange(32) % 5), 64)
    specs = cut(path, *ends.tolist())[::order]
    specs = [ShardSpec(path, s.begin, s.end, first_id=s.begin) for s in specs]
    n = int(ends[-1])
    with flat(specs) as index:
        assert index.ntotal == n
        for k in (1, 10, 70):
            same(index.search(x, k, batch=7), one_index(x[:n]).search(x, k))
        same(index.range_search(x, 3.5), one_index(x[:n]).range_search(x, 3.5))


def test_ids_beyond_2_to_33(tmp_path):
    x = make("ties", 200, 4, 6)
    path = saved(tmp_path, x)
    first = [2**33 + 7, 3, 2**40, 2**62]
    specs = [
        ShardSpec(path, i * 50, (i + 1) * 50, first_id=f) for i, f in enumerate(first)
    ]
    ids = np.concatenate([f + np.arange(50) for f in first])
    order = np.argsort(ids)
    D, places = one_index(x[order]).search(x, 30)  # ties go to the lower id
    lims, rangeD, rangePlaces = one_index(x[order]).range_search(x, 2.5)
    with flat(specs) as index:
        same(index.search(x, 30), (D, ids[order][places]))
        same(
            index.range_search(x, 2.5),
            (lims, rangeD, ids[order][rangePlaces]),
        )


@pytest.mark.parametrize("metric, argument, name", INDEX_METRICS)
def test_metrics(tmp_path, metric, argument, name):
    (x,) = for_metric(name, make("normal", 500, 6, 7))
    one = one_index(x, metric, argument)
    radius = float(np.median(one.search(x[:40], 30)[0]))
    with flat(
        ShardSpec.split(saved(tmp_path, x), 5), metric, metric_arg=argument
    ) as index:
        same(index.search(x[:40], 9), one.search(x[:40], 9))
        found = index.range_search(x[:40], radius)
        assert len(found[1]) > 300
        same(found, one.range_search(x[:40], radius))


def test_values_that_are_no_numbers(tmp_path):
    x = make("normal", 120, 4, 8)
    x[::7, 1], x[3::7, 2], x[5::11, 0] = np.nan, np.inf, -np.inf
    queries = np.concatenate([x[:20], make("normal", 5, 4, 9)])
    with flat(ShardSpec.split(saved(tmp_path, x), 6)) as index:
        for k in (5, 130):
            same(index.search(queries, k), one_index(x).search(queries, k))
    with flat(ShardSpec.split(saved(tmp_path, x), 3), IP) as index:
        same(index.search(queries, 130), one_index(x, IP).search(queries, 130))


def test_queries_of_any_number(tmp_path):
    x = make("normal", 100, 4, 10)
    one = one_index(x)
    with flat(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        for n in (0, 1, 2, 3, 5):
            same(index.search(x[:n], 3), one.search(x[:n], 3))
            same(index.range_search(x[:n], 2.0), one.range_search(x[:n], 2.0))


def test_all_shards_empty(tmp_path):
    path = saved(tmp_path, make("normal", 10, 4, 11))
    with flat([ShardSpec(path, 3, 3), ShardSpec(path, 10, 10)]) as index:
        D, I = index.search(np.zeros((3, 4), np.float32), 2)
        assert index.ntotal == 0 and (I == -1).all()
        lims, _, _ = index.range_search(np.zeros((3, 4), np.float32), 1e9)
        assert lims.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["random", "ties", "sorted", "equal"])
@pytest.mark.parametrize("largest", [False, True])
def test_merges(kind, largest):
    """Against a sort of everything, also where all of the best are in one part."""
    from faiss_bits.distributed.merge import merge_neighbours

    rng, parts = np.random.default_rng(20), (1, 2, 7)
    for count, k in [(c, k) for c in parts for k in (1, 2, 5, 30)]:
        n, q = 60 * count, 11
        keys = {
            "random": rng.random((q, n)), "ties": rng.integers(0, 4, (q, n)),
            "sorted": np.tile(np.arange(n), (q, 1)), "equal": np.zeros((q, n)),
        }[kind].astype(np.float32)
        keys[0, : n // 2], keys[1] = np.nan, np.nan  # short, empty
        keys[2, ::3] = np.inf
        owner = np.arange(n) // 60 if kind == "sorted" else rng.integers(0, count, n)
        cut = []
        for part in range(count):
            ids = np.flatnonzero(owner == part)
            cut.append(oracle.select(keys[:, ids], k, largest))
            found = cut[-1][1]
            found[found >= 0] = ids[found[found >= 0]]
            gone = np.isnan(cut[-1][0])  # an index returns no NaN
            found[gone], cut[-1][0][gone] = -1, -oracle.FLOAT32_MAX if largest else (
                oracle.FLOAT32_MAX
            )
        D, I = oracle.select(keys, k, largest)
        gone = np.isnan(D)
        I[gone], D[gone] = -1, -oracle.FLOAT32_MAX if largest else oracle.FLOAT32_MAX
        same(merge_neighbours(cut, k, largest), (D, I))


# ---- files, replicas, threads -------------------------------------------------


def test_kinds_of_files_mixed(tmp_path):
    x = np.random.default_rng(12).integers(0, 9, (90, 8)).astype(np.float32)
    dims = np.full((90, 1), 8, "<i4")
    with open(tmp_path / "x.fvecs", "wb") as file:
        file.write(np.hstack([dims.view("u1"), x.view("u1")]).tobytes())
    with open(tmp_path / "x.bvecs", "wb") as file:
        file.write(np.hstack([dims.view("u1"), x.astype("u1")]).tobytes())
    specs = [
        ShardSpec(saved(tmp_path, x), 0, 20),
        ShardSpec(tmp_path / "x.fvecs", 20, 61),
        ShardSpec(str(tmp_path / "x.bvecs"), 61),
    ]
    with flat(specs) as index:
        same(index.search(x, 5), one_index(x).search(x, 5))


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas(tmp_path, replicas):
    x = make("ties", 300, 4, 13)
    with flat(
        ShardSpec.split(saved(tmp_path, x), 4), replicas=replicas
    ) as index:
        same(index.search(x, 8, batch=17), one_index(x).search(x, 8))
        workers = index.stats()["workers"]
        assert len(workers) == 4 and len({w["worker"] for w in workers}) == 4
        assert sum(w["vectors"] for w in workers) == replicas * 300
        # Every copy answered.
        assert all(w["sent"]["results"] > 0 for w in workers)


def test_threads_search_at_the_same_time(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    x = make("normal", 400, 8, 14)
    expected = one_index(x).search(x, 6)
    with flat(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: index.search(x, 6, batch=50), range(8)):
                same(found, expected)


# ---- messages -----------------------------------------------------------------


def count_messages():
    """Notes the size of what this process writes to any other, from now on."""
    from distributed.comm import tcp

    if not hasattr(tcp.TCP, "sizes_of_tests"):
        write, tcp.TCP.sizes_of_tests = tcp.TCP.write, []

        async def counted(self, *args, **kwargs):
            size = await write(self, *args, **kwargs)
            tcp.TCP.sizes_of_tests.append(size)
            return size

        tcp.TCP.write = counted
    tcp.TCP.sizes_of_tests.clear()


def largest_message():
    from distributed.comm import tcp

    return max(tcp.TCP.sizes_of_tests, default=0)


@pytest.mark.parametrize("what", ["search", "range"])
def test_no_message_is_larger_than_its_batch(tmp_path, what):
    """Of bytes that processes really send, whatever for."""
    rng = np.random.default_rng(15)  # floats that nothing compresses
    x = rng.random((2000, 32)).astype(np.float32)
    queries = rng.random((3000, 32)).astype(np.float32)
    batch, k = 1000, 50
    one = one_index(x)
    with flat(ShardSpec.split(saved(tmp_path, x), 4)) as index:
        client().run(count_messages)
        count_messages()
        if what == "search":
            same(index.search(queries, k, batch=batch), one.search(queries, k))
            limit = max(4 * 32 * batch, 12 * k * batch)
        else:
            radius = float(np.median(one.search(queries, 400)[0][:, -1]))
            found = index.range_search(queries, radius, batch=batch)
            same(found, one.range_search(queries, radius))
            limit = 4 * 32 * batch  # of more than 64 KiB
            assert 12 * len(found[1]) > 40 * limit
        sizes = client().run(largest_message)
    largest = max(*sizes.values(), largest_message())
    assert 0.1 * limit < largest <= limit + 8192, (largest, limit)


def test_only_slices_travel(tmp_path):
    """Bytes of arrays: queries once from the client and once to every other
    worker, results once from every other worker and once to the client."""
    x = make("normal", 600, 16, 16)
    q, k, W = 101, 7, 4
    with flat(ShardSpec.split(saved(tmp_path, x), W)) as index:
        index.search(x[:q], k, batch=40)
        stats = index.stats()
    sent = [worker["sent"] for worker in stats["workers"]]
    assert stats["client"] == {"inputs": q * 16 * 4, "results": q * k * 12}
    assert sum(s["inputs"] for s in sent) == (W - 1) * q * 16 * 4
    assert sum(s["outputs"] for s in sent) == (W - 1) * q * k * 12
    assert sum(s["results"] for s in sent) == q * k * 12
    largest = max(w["largest_message"] for w in stats["workers"])
    assert largest == max(10 * 16 * 4, 10 * k * 12)  # a quarter of a batch


# ---- arguments ----------------------------------------------------------------


def test_specs():
    for arguments, kind, text in [
        ((3,), TypeError, "path is a int"),
        (("x.npy", -1), ValueError, "begin = -1"),
        (("x.npy", 5, 4), ValueError, "end = 4"),
        (("x.npy", 0, 4, -2), ValueError, "first_id = -2"),
        (("x.npy", 0.5), TypeError, "begin = 0.5"),
    ]:
        with pytest.raises(kind, match=text):
            ShardSpec(*arguments)


def test_arguments_of_the_index(tmp_path):
    x = make("normal", 20, 4, 17)
    path, other = saved(tmp_path, x), saved(tmp_path, x[:, :3], "y.npy")
    good = [ShardSpec(path)]
    text = tmp_path / "x.txt"
    text.write_text("1 2 3")
    for specs, options, kind, message in [
        ([], {}, ValueError, "specs is empty"),
        (None, {}, TypeError, "specs is a NoneType, expected a list of ShardSpec"),
        (path, {}, TypeError, "specs is a .*Path, expected a list of ShardSpec"),
        (str(path), {}, TypeError, "specs is a str, expected a list of ShardSpec"),
        ([path], {}, TypeError, r"specs\[0\] is a .*Path"),
        ([ShardSpec(tmp_path / "no.npy")], {}, FileNotFoundError, "no.npy"),
        ([ShardSpec(path, 0, 21)], {}, ValueError, r"specs\[0\]: rows 0 .. 21"),
        ([*good, ShardSpec(other)], {}, ValueError, "dimension 3"),
        ([ShardSpec(text)], {}, ValueError, "unknown kind of file"),
        ([ShardSpec(path, column="a")], {}, ValueError, "only .parquet"),
        ([*good, ShardSpec(path, first_id=19)], {}, ValueError, "are the same"),
        ([ShardSpec(path, first_id=2**63 - 5)], {}, ValueError, "too large"),
        (good, {"metric": 30}, ValueError, "metric = 30"),
        (good, {"metric": "cosine"}, ValueError, "metric = 'cosine'"),
        (good, {"metric_arg": 2.0}, ValueError, "metric_arg = 2.0"),
        (good, {"replicas": 0}, ValueError, "replicas = 0"),
        (good, {"replicas": 5}, ValueError, "replicas = 5, but there are 4"),
        (good, {"device": "tpu"}, ValueError, "device = 'tpu'"),
        (good, {"threads": -1}, ValueError, "threads = -1"),
        (good, {"timeout": 0}, ValueError, "timeout = 0"),
        (good, {"workers": ["tcp://1.2.3.4:5"]}, ValueError, "1.2.3.4:5"),
    ]:
        with pytest.raises(kind, match=message):
            flat(specs, **options)
    with pytest.raises(TypeError, match="client is a str"):
        fd.DistributedFlat("localhost:8786", good)


def test_a_gpu_that_is_not_there(tmp_path):
    import faiss_bits

    if faiss_bits.get_num_gpus() > 0:
        pytest.skip("there is a GPU here")
    path = saved(tmp_path, make("normal", 20, 4, 18))
    with pytest.raises(RuntimeError, match="device = 'gpu' needs a GPU"):
        flat([ShardSpec(path)], device="gpu")


def test_arguments_of_searches(tmp_path):
    x = make("normal", 20, 4, 19)
    with flat([ShardSpec(saved(tmp_path, x))]) as index:
        for call, kind, message in [
            (lambda: index.search(x[:, :3], 2), ValueError, r"xq has shape \(20, 3\)"),
            (lambda: index.search(x, 0), ValueError, "k = 0"),
            (lambda: index.search(x, 1.5), TypeError, "k = 1.5"),
            (lambda: index.search(x, 1, batch=0), ValueError, "batch = 0"),
            (lambda: index.search(x, 1, timeout=-1), ValueError, "timeout = -1"),
            (lambda: index.search(x, 1, timeout="9"), TypeError, "timeout = '9'"),
            (lambda: index.range_search(x[0], 1), ValueError, r"xq has shape \(4,\)"),
            (lambda: index.search(x + 1j, 2), TypeError, "xq .* complex"),
            (lambda: index.range_search(x + 1j, 2), TypeError, "xq .* complex"),
            (lambda: index.search(None, 2), TypeError, "xq is None"),
            (lambda: index.search(3.0, 2), ValueError, r"xq has shape \(\)"),
            (lambda: index.search("ab", 2), TypeError, "xq is no array"),
            (lambda: index.range_search(x, np.nan), ValueError, "radius is NaN"),
            (lambda: index.range_search(x[:0], np.nan), ValueError, "radius is NaN"),
        ]:
            with pytest.raises(kind, match=message):
                call()
        same(index.search(x, 2), one_index(x).search(x, 2))  # as it was
    with pytest.raises(RuntimeError, match="closed"):
        index.search(x, 2)
