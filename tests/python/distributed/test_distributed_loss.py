"""Workers that are killed, or do not answer: what was lost is replaced and the
answer is whole, or the call raises."""

import os
import signal
import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest
from clusters import (
    ShardSpec,
    client,
    close,
    distributed,
    fd,
    flat,
    in_time,
    kill,
    needs_dask,
    one_index,
    pid,
    same,
    saved,
)

pytestmark = [needs_dask, in_time]


@pytest.fixture(scope="module", autouse=True)
def own_cluster():
    """Whose workers are others in the end than in the beginning."""
    close()
    yield
    close()


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    x = np.random.default_rng(1).standard_normal((60000, 24)).astype(np.float32)
    return x, saved(tmp_path_factory.mktemp("loss"), x)


@pytest.fixture(scope="module")
def expected(vectors):
    x, _ = vectors
    return one_index(x).search(x[:4000], 10)


def address_of(index, rank=1):
    return index._groups[0].handles[rank].worker


def later(seconds, function, *args):
    thread = threading.Timer(seconds, function, args)
    thread.start()
    return thread


@pytest.mark.parametrize("replicas", [1, 2])
def test_between_searches(vectors, expected, replicas):
    x, path = vectors
    with flat(ShardSpec.split(path, 4), replicas=replicas) as index:
        for rank in (0, 1):
            lost = address_of(index, rank)
            kill(lost)
            same(index.search(x[:4000], 10, batch=500), expected)
            assert lost not in [w["worker"] for w in index.stats()["workers"]]
        # The vectors are all there again, on a worker each.
        assert sum(w["vectors"] for w in index.stats()["workers"]) == replicas * 60000


def test_other_replicas_go_on_at_once(vectors, expected):
    """While nobody can take the lost worker's place; later it is made whole."""
    x, path = vectors
    with flat(ShardSpec.split(path, 4), replicas=2, replace_timeout=60) as index:
        spare, open_ = index._spare, threading.Event()
        index._spare = lambda: spare() if open_.is_set() else []
        begin = time.monotonic()
        kill(address_of(index))
        for _ in range(3):
            same(index.search(x[:4000], 10, batch=500), expected)
        assert time.monotonic() - begin < 20
        assert not index._groups[0].is_whole() and index._groups[1].is_whole()
        open_.set()
        index.stats()  # waits for the repair, which finds a worker now
        assert all(group.is_whole() for group in index._groups)
        same(index.search(x[:4000], 10, batch=500), expected)
        workers = index.stats()["workers"]
        assert sum(w["vectors"] for w in workers) == 120000
        assert all(w["sent"]["results"] > 0 for w in workers)


def test_closed_while_it_is_repaired(vectors, expected):
    x, path = vectors
    with flat(ShardSpec.split(path, 4), replicas=2, replace_timeout=60) as index:
        index._spare = lambda: []
        kill(address_of(index))
        same(index.search(x[:4000], 10, batch=500), expected)
        begin = time.monotonic()
    assert time.monotonic() - begin < 10


def test_ranges_between_searches(vectors):
    x, path = vectors
    radius = 8.0
    with flat(ShardSpec.split(path, 3)) as index:
        kill(address_of(index))
        same(
            index.range_search(x[:500], radius, batch=100),
            one_index(x).range_search(x[:500], radius),
        )


@pytest.mark.parametrize("rank", [0, 3])
def test_during_a_search(vectors, expected, rank):
    """At several moments of it; a search of 80 batches takes longer than that."""
    x, path = vectors
    with flat(ShardSpec.split(path, 4)) as index:
        for moment in (0.05, 0.3):
            lost = address_of(index, rank)
            thread = later(moment, kill, lost, pid(lost))
            begin = time.monotonic()
            found = index.search(x[:4000], 10, batch=50)
            assert time.monotonic() - begin > moment, "it was over before"
            thread.join()
            same(found, expected)
            assert lost not in client().nthreads()


def test_all_workers_at_once(vectors, expected):
    x, path = vectors
    with flat(ShardSpec.split(path, 4)) as index:
        for process in [pid(address_of(index, rank)) for rank in range(4)]:
            kill(None, process)
        same(index.search(x[:4000], 10), expected)


class SlowFile:
    """While it is on, workers sleep before they read a block of a file."""

    @staticmethod
    def put(seconds):
        from faiss_bits.distributed import parts

        if not hasattr(parts, "row_blocks_of_tests"):
            parts.row_blocks_of_tests = parts.row_blocks

        def slow(*args):
            for block in parts.row_blocks_of_tests(*args):
                time.sleep(seconds)
                yield block

        parts.row_blocks = slow if seconds else parts.row_blocks_of_tests


def test_while_loading(vectors, expected):
    x, path = vectors
    specs = ShardSpec.split(path, 8)
    one = client()
    one.run(SlowFile.put, 0.5)  # two shards a worker: a second
    try:
        victim = sorted(one.nthreads())[2]
        thread = later(0.6, kill, victim, pid(victim))
        begin = time.monotonic()
        with flat(specs) as index:
            assert time.monotonic() - begin > 0.9
            thread.join()
            workers = [w["worker"] for w in index.stats()["workers"]]
            assert victim not in workers and len(workers) == 4
            same(index.search(x[:4000], 10), expected)
    finally:
        client().run(SlowFile.put, 0)


def test_while_it_looks_at_the_files(vectors, expected, monkeypatch):
    """Another worker looks at them, and the index is whole."""
    from faiss_bits.distributed import transport

    x, path = vectors
    victim, begin = sorted(client().nthreads())[0], transport.DaskTransport.call
    asked = []

    def call(self, handle, name, *args):
        if name == "shapes":
            asked.append(handle.worker)
            if handle.worker == victim:
                kill(victim)
        return begin(self, handle, name, *args)

    monkeypatch.setattr(transport.DaskTransport, "call", call)
    with flat(ShardSpec.split(path, 4)) as index:
        assert asked[0] == victim and len(asked) == 2 and asked[1] != victim
        same(index.search(x[:4000], 10), expected)


def test_progress_while_loading(vectors, monkeypatch):
    """A bar of all vectors of a copy, which moves before it is full."""
    from faiss_bits.distributed import groups

    _, path = vectors
    bars = []

    class Bar:
        def __init__(self, name, total, unit, progress):
            self.shown, self.name, self.total, self.steps = progress, name, total, []
            bars.append(self)

        def update(self, count):
            self.steps.append(count)

        def close(self):
            self.closed = True

    monkeypatch.setattr(groups, "bar", Bar)
    client().run(SlowFile.put, 0.4)
    try:
        with fd.DistributedFlat(client(), ShardSpec.split(path, 8)):
            pass
    finally:
        client().run(SlowFile.put, 0)
    assert len(bars) == 1 and bars[0].total == 60000 and bars[0].closed
    assert bars[0].shown and sum(bars[0].steps) == 60000
    assert len([step for step in bars[0].steps if step]) > 1


def test_nobody_takes_its_place(vectors, expected):
    x, path = vectors
    with flat(ShardSpec.split(path, 4), replace_timeout=0.5) as index:
        index._spare = lambda: []  # as if Dask started none
        kill(address_of(index))
        for _ in range(2):
            with pytest.raises(fd.WorkerLostError, match="replace_timeout = 0.5"):
                index.search(x[:4000], 10)
        del index._spare
        same(index.search(x[:4000], 10), expected)


def test_spare_workers_take_its_place(vectors, expected):
    x, path = vectors
    with flat(ShardSpec.split(path, 2)) as index:
        before = {w["worker"] for w in index.stats()["workers"]}
        spare = set(client().nthreads()) - before
        assert len(before) == len(spare) == 2
        lost = address_of(index)
        kill(lost)
        same(index.search(x[:4000], 10), expected)
        after = {w["worker"] for w in index.stats()["workers"]}
        # A spare one, or the lost one's process, started again meanwhile under
        # an address of its own.
        assert len(after) == 2 and len(after - before) == 1 and lost not in after


def test_its_file_is_gone(vectors, tmp_path):
    """Then the shard cannot be built again: an exception that names the file."""
    x, _ = vectors
    path = saved(tmp_path, x[:1000])
    with flat(ShardSpec.split(path, 4)) as index:
        path.unlink()
        kill(address_of(index))
        with pytest.raises(FileNotFoundError, match="x.npy"):
            index.search(x[:10], 3)
        saved(tmp_path, x[:1000])
        client()
        same(index.search(x[:10], 3), one_index(x[:1000]).search(x[:10], 3))


def test_timeouts(vectors, expected):
    x, path = vectors
    with flat(ShardSpec.split(path, 4)) as index:
        process = pid(address_of(index))
        os.kill(process, signal.SIGSTOP)
        try:
            for call in (
                lambda: index.search(x[:4000], 10, timeout=0.7),
                lambda: index.range_search(x[:10], 1.0, timeout=0.7),
            ):
                begin = time.monotonic()
                with pytest.raises(TimeoutError, match="timeout = 0.7 s"):
                    call()
                assert 0.6 < time.monotonic() - begin < 5
        finally:
            os.kill(process, signal.SIGCONT)
        same(index.search(x[:4000], 10, timeout=60), expected)
        # Nothing of what was given up is kept.
        end = time.monotonic() + 10
        while time.monotonic() < end:
            held = client().run(jobs_that_are_held)
            if not any(held.values()):
                break
            time.sleep(0.1)
        assert not any(held.values()), held


def jobs_that_are_held(dask_worker):
    return sum(len(actor._jobs) for actor in dask_worker.state.actors.values())


def test_loading_in_time(vectors):
    _, path = vectors
    client().run(SlowFile.put, 0.5)
    try:
        with pytest.raises(fd.SearchTimeoutError, match="loading .* timeout = 0.2"):
            flat(ShardSpec.split(path, 4), timeout=0.2)
    finally:
        client().run(SlowFile.put, 0)


def test_looking_at_the_files_in_time(vectors, monkeypatch):
    """By a worker that never answers."""
    from faiss_bits.distributed import transport

    begin = transport.DaskTransport.call

    def call(self, handle, name, *args):
        return Future() if name == "shapes" else begin(self, handle, name, *args)

    monkeypatch.setattr(transport.DaskTransport, "call", call)
    with pytest.raises(fd.SearchTimeoutError, match="loading .* timeout = 0.5"):
        flat(ShardSpec.split(vectors[1], 4), timeout=0.5)


def test_an_error_of_a_worker_is_the_error(vectors, expected):
    """Not what it did to the others, and the index stays usable."""
    x, path = vectors
    with flat(ShardSpec.split(path, 4)) as index:
        client().run(Broken.put, True, workers=[address_of(index)])
        try:
            with pytest.raises(MemoryError, match="of tests"):
                index.search(x[:100], 10)
        finally:
            client().run(Broken.put, False, workers=[address_of(index)])
        same(index.search(x[:4000], 10), expected)


class Broken:
    """A worker whose merges have no memory."""

    @staticmethod
    def put(broken):
        from faiss_bits.distributed import host

        if not hasattr(host, "merge_of_tests"):
            host.merge_of_tests = host.merge_neighbours

        def fail(*_):
            raise MemoryError("of tests")

        host.merge_neighbours = fail if broken else host.merge_of_tests


def test_closed_indexes_free_the_workers(vectors):
    x, path = vectors
    index = flat(ShardSpec.split(path, 4))
    index.search(x[:10], 3)
    index.close()
    end = time.monotonic() + 10
    while any(client().run(actors_of).values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(client().run(actors_of).values())


def test_closing_after_the_client(vectors):
    _, path = vectors
    client()
    other = distributed.Client(client().scheduler.address)
    index = fd.DistributedFlat(other, ShardSpec.split(path, 2), progress=False)
    other.close()
    index.close()
    index.close()


def actors_of(dask_worker):
    return len(dask_worker.state.actors)
