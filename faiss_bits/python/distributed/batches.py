"""Batches of queries on their way through groups of workers: some in flight at a
time, each sent again where a worker was lost, none ever answered in part."""

import collections
import itertools

from .errors import WorkerLostError
from .groups import ATTEMPTS
from .jobs import is_loss, results_of
from .merge import slice_bounds

# Batches under way in a group at a time: one computes, one is exchanged.
IN_FLIGHT = 2

#: What a job is.
#:
#: what     "search", "range" or "cluster"
#: n        rows of its input
#: slices   gives the part of each rank, of their bounds
#: options  of Host.run, or a function that makes them of the group
#: finish   makes the result of those of the ranks: finish(send, job number,
#:          results), where send(rank, method, *args) begins a call
Batch = collections.namedtuple("Batch", "what n slices options finish")

_Flight = collections.namedtuple(
    "_Flight", "batch group generation number handles calls"
)


class Runner:
    """Sends batches to groups in turn.

    groups     of groups.py
    repair     mends a group that lost a worker: repair(group, generation,
               deadline). Where another copy is whole it runs aside, and batches
               go to that one
    """

    def __init__(self, transport, groups, repair):
        self._transport, self._groups, self._repair = transport, groups, repair
        self._turn, self._numbers = itertools.count(), itertools.count(1)

    def run(self, batches, deadline):
        """Yields the results of batches, in their order."""
        waiting = collections.deque()
        try:
            for batch in batches:
                waiting.append(self._send(batch, deadline))
                if len(waiting) >= IN_FLIGHT * len(self._groups):
                    yield self._finish(waiting, deadline)
            while waiting:
                yield self._finish(waiting, deadline)
        finally:
            for flight in waiting:
                self._abort(flight)

    def whole_group(self, deadline):
        """(group, generation, handles) of the next copy that is whole; where
        none is, of one that is made whole first."""
        first = next(self._turn) % len(self._groups)
        groups = self._groups[first:] + self._groups[:first]
        for _ in range(ATTEMPTS):
            for group in groups:
                generation, handles = group.generation, list(group.handles)
                if group.is_whole() and None not in handles:
                    for other in groups:
                        if not other.is_whole():
                            other.aside(self._repair)
                    return group, generation, handles
            self._repair(groups[0], groups[0].generation, deadline)
        raise WorkerLostError("workers are lost faster than they can be replaced")

    def _send(self, batch, deadline):
        group, generation, handles = self.whole_group(deadline)
        number = next(self._numbers)
        options = batch.options
        if callable(options):
            options = options(group)
        slices = batch.slices(slice_bounds(batch.n, group.size))
        calls = [
            self._transport.call(
                handle, "run", number, generation, batch.what, source, batch.n,
                options,
            )
            for handle, source in zip(handles, slices)
        ]
        return _Flight(batch, group, generation, number, handles, calls)

    def _finish(self, waiting, deadline):
        """The result of the first of the batches that are under way."""
        flight = waiting.popleft()
        for attempt in range(ATTEMPTS):
            try:
                return self._result(flight, deadline)
            except BaseException as error:
                self._abort(flight)
                if not is_loss(error) or attempt == ATTEMPTS - 1:
                    raise
            flight.group.lost(flight.generation)
            flight = self._send(flight.batch, deadline)
        raise AssertionError("not reached")

    def _result(self, flight, deadline):
        results = results_of(
            self._transport, flight.handles, flight.calls, deadline
        )

        def send(rank, name, *args):
            handle = flight.handles[rank]
            call = self._transport.call(handle, name, *args)
            return results_of(self._transport, [handle], [call], deadline)[0]

        return flight.batch.finish(send, flight.number, results)

    def _abort(self, flight):
        """Frees what workers keep of a job; nobody waits for them to do so."""
        alive = set(self._transport.workers())
        for handle in flight.handles:
            if handle.worker in alive:
                self._transport.call(handle, "abort", flight.number)
