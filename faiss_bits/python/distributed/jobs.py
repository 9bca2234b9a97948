"""Calls of several workers as one: their results, or one exception."""

import concurrent.futures
import time

from .errors import JobAbortedError, SearchTimeoutError, WorkerLostError

# How often a wait looks whether the workers live, seconds.
_LOOK = 0.25


class Deadline:
    """A time limit of a call, in seconds from now; None: no limit."""

    def __init__(self, timeout, what):
        self._what, self._timeout = what, timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self, most=None):
        """Seconds that are left, no more than `most`; SearchTimeoutError if
        there are none."""
        if self._end is None:
            return most
        left = self._end - time.monotonic()
        if left <= 0:
            raise SearchTimeoutError(
                f"{self._what} did not end within timeout = {self._timeout} s"
            )
        return left if most is None else min(left, most)


def checked_timeout(timeout):
    """None or a number of seconds above 0."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout = {timeout!r}, expected seconds or None")
    if not timeout > 0:
        raise ValueError(f"timeout = {timeout}, expected more than 0 seconds")
    return float(timeout)


def results_of(transport, handles, calls, deadline, look=None):
    """The results of calls to handles, in their order.

    The first error ends the wait: of all that are known then, one that a worker
    lost or a job aborted does not explain, else WorkerLostError. `look` is
    called every quarter of a second or so.
    """
    pending, errors = set(calls), []
    while pending and not errors:
        done, pending = concurrent.futures.wait(
            pending,
            timeout=deadline.left(_LOOK),
            return_when=concurrent.futures.FIRST_EXCEPTION,
        )
        errors += [call.exception() for call in done if call.exception()]
        if look is not None and not errors:
            look()
        if pending and not errors:
            errors += _lost(transport, handles, calls, pending)
    if errors:
        # What failed first may not be heard of first.
        done, _ = concurrent.futures.wait(pending, timeout=_LOOK)
        errors += [call.exception() for call in done if call.exception()]
        raise _cause(errors)
    return [call.result() for call in calls]


def _lost(transport, handles, calls, pending):
    alive = set(transport.workers())
    return [
        WorkerLostError(f"worker {handle.worker} was lost")
        for handle, call in zip(handles, calls)
        if call in pending and handle.worker not in alive
    ]


def _cause(errors):
    def rank(error):
        return (isinstance(error, JobAbortedError),
                isinstance(error, WorkerLostError))

    return min(errors, key=rank)


def is_loss(error):
    """Whether an error is one of workers, which a repair may mend."""
    return isinstance(error, (WorkerLostError, JobAbortedError))
