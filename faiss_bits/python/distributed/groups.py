"""Workers that hold the whole of a collection between them, one host each: made,
filled, and made whole again when one is lost."""

import concurrent.futures
import itertools
import logging
import threading
import time

from ..contrib.progress import bar
from .errors import WorkerLostError
from .host import Host
from .jobs import Deadline, is_loss, results_of

_LOG = logging.getLogger(__name__)
_generations = itertools.count(1)
# Seconds that a host which lives has to say so.
_ANSWER = 20.0
# Repairs of one call in a row, before it gives up.
ATTEMPTS = 4


class Group:
    """One copy of the collection.

    transport  of transport.py
    parts      the shards of each host
    options    the argument of Host
    name       of the bar that is shown while it loads
    """

    def __init__(self, transport, parts, options, d, name):
        self._transport, self._options, self._d = transport, options, d
        self._parts, self._name = parts, name
        self.handles = [None] * len(parts)
        self.generation = None
        self.centroids = None  # or a function that sends them to handles
        self._lock = threading.RLock()
        self._lost = None  # the generation that lost a worker
        self._aside, self._starting = None, threading.Lock()
        self._stopped = False

    @property
    def size(self):
        return len(self._parts)

    @property
    def shards(self):
        """Numbers of the shards of every rank."""
        return [[shard.number for shard in part] for part in self._parts]

    def rank_of(self, shard):
        """The host that has a shard."""
        return next(r for r, part in enumerate(self._parts) if shard in part)

    @property
    def table(self):
        """(first row, end row, shard, rank) of the shards, by rows."""
        return sorted(
            (shard.first_row, shard.end_row, shard.number, rank)
            for rank, part in enumerate(self._parts)
            for shard in part
            if shard.size
        )

    def addresses(self):
        return [h.worker for h in self.handles if h is not None]

    def call(self, name, *args, handles=None):
        """Results of a method of every host."""
        handles = self.handles if handles is None else handles
        return self.results([(handle, (name, *args)) for handle in handles])

    def results(self, calls, deadline=None):
        """Results of [(handle, (method, arguments...))]."""
        handles = [handle for handle, _ in calls]
        self._check_there(handles)
        futures = [self._transport.call(h, *what) for h, what in calls]
        deadline = deadline or Deadline(None, "the call")
        return results_of(self._transport, handles, futures, deadline)

    @staticmethod
    def _check_there(handles):
        if None in handles:
            raise WorkerLostError("a worker was lost before it had its shards")

    # ---- what it has lost -----------------------------------------------------

    def lost(self, generation):
        """Something of this generation was lost."""
        if generation == self.generation:
            self._lost = generation

    def is_whole(self):
        whole = self.generation is not None and self._lost != self.generation
        return whole and None not in self.handles

    def aside(self, repair):
        """Begins a repair in a thread, unless there is one."""
        with self._starting:
            if self._aside is not None and self._aside.is_alive():
                return
            self._aside = threading.Thread(
                target=self._mend, args=(repair, self.generation), daemon=True
            )
            self._aside.start()

    def _mend(self, repair, generation):
        try:
            repair(self, generation, Deadline(None, "a repair"))
        except Exception as error:  # the next batch begins another
            _LOG.warning("a copy of the vectors is not whole: %s", error)

    def settle(self):
        """Waits for a repair aside."""
        thread = self._aside
        if thread is not None:
            thread.join()

    # ---- workers that come and go ---------------------------------------------

    def start(self, workers):
        """Hosts on given workers, without vectors; fill() replaces those that are
        lost meanwhile."""
        for rank, worker in enumerate(workers):
            try:
                self.handles[rank] = self._transport.start(
                    Host, (self._options,), worker
                )
            except WorkerLostError as error:
                _LOG.warning("%s", error)

    def load(self, ranks, deadline, progress=False):
        """Has hosts read their shards, and tells all of them of each other."""
        handles = [self.handles[rank] for rank in ranks]
        self._check_there(handles)
        if self.centroids is not None:
            self.centroids(handles)
        total = sum(s.size for rank in ranks for s in self._parts[rank])
        shown = bar(self._name, total, "vector", progress)
        loaded = 0
        try:
            calls = [
                self._transport.call(
                    self.handles[rank], "build", self._parts[rank], self._d
                )
                for rank in ranks
            ]

            def look():
                nonlocal loaded
                self._check_open()
                now = sum(self.call("progress", handles=handles)) if progress else 0
                shown.update(max(0, now - loaded))
                loaded = max(loaded, now)

            results_of(self._transport, handles, calls, deadline, look)
            shown.update(total - loaded)
        finally:
            shown.close()
        self.join(deadline)

    def join(self, deadline):
        """Tells all hosts of each other."""
        generation = next(_generations)
        places = [handle.place for handle in self.handles]
        self.results(
            [
                (handle, ("join", generation, rank, places))
                for rank, handle in enumerate(self.handles)
            ],
            deadline,
        )
        self.generation = generation

    def fill(self, spare, deadline, wait, progress=False):
        """Loads all shards; hosts that are lost meanwhile are replaced."""
        with self._lock:
            try:
                self.load(range(self.size), deadline, progress)
            except Exception as error:
                if not is_loss(error):
                    raise
                self.repair(None, spare, deadline, wait)

    def repair(self, generation, spare, deadline, wait):
        """Replaces what is lost, unless that was done since `generation`.

        spare     gives the workers that may take a host
        wait      seconds to wait for one; WorkerLostError when none comes
        """
        with self._lock:
            if generation is not None and generation != self.generation:
                return
            self._lost = self.generation
            for attempt in range(ATTEMPTS):
                try:
                    self._repair_once(spare, deadline, wait)
                    return
                except Exception as error:
                    if not is_loss(error) or attempt == ATTEMPTS - 1:
                        raise

    def _repair_once(self, spare, deadline, wait):
        self._check_open()
        lost = [r for r in range(self.size) if not self._is_well(r, deadline)]
        for rank in lost:
            if self.handles[rank] is not None:
                self._transport.stop(self.handles[rank])
                self.handles[rank] = None
        for rank in lost:
            worker = self._a_worker(spare, deadline, wait)
            self.handles[rank] = self._transport.start(
                Host, (self._options,), worker
            )
        self.load(lost, deadline)

    def _is_well(self, rank, deadline):
        """Whether a host is there, has its vectors, and answers; waits for one
        that reads them."""
        handle = self.handles[rank]
        while handle is not None and handle.worker in self._transport.workers():
            state = self._state(handle, self.shards[rank])
            if state != "loading":
                return state == "ready"
            time.sleep(deadline.left(0.25))
        return False

    def _state(self, handle, shards):
        call = self._transport.call(handle, "state", shards)
        try:
            return results_of(
                self._transport, [handle], [call], Deadline(_ANSWER, "an answer")
            )[0]
        except TimeoutError:
            raise WorkerLostError(
                f"worker {handle.worker} is there, but does not answer"
            ) from None
        except WorkerLostError:
            return "lost"

    def _a_worker(self, spare, deadline, wait):
        end = time.monotonic() + wait
        while True:
            self._check_open()
            free = spare()
            if free:
                return free[0]
            if time.monotonic() > end:
                raise WorkerLostError(
                    f"no worker has come within replace_timeout = {wait} s that "
                    "could take the place of one that was lost"
                )
            time.sleep(deadline.left(0.1))

    def _check_open(self):
        if self._stopped:
            raise RuntimeError("the index is closed")

    def stop(self):
        """Gives all hosts up, and a repair that runs. Those that live free their
        memory first, within some seconds: Dask forgets an actor whenever it comes
        to it."""
        self._stopped = True
        with self._lock:
            self._free()

    def _free(self):
        handles = [handle for handle in self.handles if handle is not None]
        self.handles = [None] * self.size
        alive = self._transport.workers()
        calls = [
            self._transport.call(handle, "close")
            for handle in handles
            if handle.worker in alive
        ]
        concurrent.futures.wait(calls, timeout=5)
        for handle in handles:
            self._transport.stop(handle)
