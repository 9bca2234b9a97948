"""How the parts of an index on several machines reach each other: all that is
known of Dask. Another engine takes the place of this file with the same few
functions.

On the client's side an engine has an object with

    workers()                   addresses of the workers that live, sorted
    start(kind, args, worker)   an object of class `kind` on a worker: a handle
    call(handle, name, *args)   a method of it begins: a
                                concurrent.futures.Future, which raises what the
                                method raised, and WorkerLostError where the
                                object is gone
    stop(handle)                the object is given up

and handles have `worker` (address) and `place`, which can be sent to others. On
a worker, `port()` inside the constructor of an object gives

    threads                     the number of threads that the object may use
    await call(place, name, *args)   a method of another object, errors as above

Methods are coroutines: an object answers while it computes in a thread.
"""

import asyncio
import itertools
import time
import uuid

from distributed import Client, get_worker
from distributed.actor import ProxyRPC
from distributed.protocol import to_serialize

from .errors import WorkerLostError


async def _execute(rpc, place, name, args):
    """A method of an actor, as Dask's Actor calls it. Actors themselves make a
    client on every worker that they are sent to, and the client's side never
    hears of an actor that is gone from a worker that lives."""
    worker, key = place
    try:
        reply = await rpc.actor_execute(
            actor=key,
            function=name,
            args=[to_serialize(arg) for arg in args],
            kwargs={},
        )
    except (OSError, KeyError) as error:  # no way there, or nobody there
        raise WorkerLostError(f"worker {worker} does not answer: {error!r}") from None
    if reply["status"] != "OK":
        raise reply["exception"]
    return reply["result"]


# How often a wait looks whether a worker lives, seconds.
_LOOK = 0.25


class DaskHandle:
    """An actor of Dask and where it is. It lives as long as its future."""

    def __init__(self, worker, future):
        self.worker, self.future = worker, future
        self.place = (worker, future.key)


class DaskTransport:
    """The client's side, over a distributed.Client."""

    def __init__(self, client):
        if not isinstance(client, Client):
            raise TypeError(
                f"client is a {type(client).__name__}, expected a "
                "dask.distributed.Client"
            )
        if client.asynchronous:
            raise ValueError("client is asynchronous, which is not supported")
        self._client = client
        self._name = f"faiss_bits-{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count()

    def workers(self):
        if self._client.status != "running":  # it was closed
            return []
        return sorted(self._client.nthreads())

    def start(self, kind, args, worker, timeout=60):
        future = self._client.submit(
            kind,
            *args,
            actor=True,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            key=f"{self._name}-{next(self._numbers)}",
        )
        end = time.monotonic() + timeout
        while True:
            try:
                future.result(_LOOK)
                return DaskHandle(worker, future)
            except asyncio.TimeoutError:
                # Dask itself would wait for a worker of this address to come.
                if worker in self.workers() and time.monotonic() < end:
                    continue
                problem = "does not start"
            except OSError as error:
                problem = f"was lost: {error!r}"
            future.release()
            raise WorkerLostError(f"worker {worker} {problem}")

    def call(self, handle, name, *args):
        client, worker = self._client, handle.worker
        if client.direct_to_workers:
            rpc = client.rpc(worker)
        else:
            rpc = ProxyRPC(client.scheduler, worker)
        return asyncio.run_coroutine_threadsafe(
            _execute(rpc, handle.place, name, args), client.loop.asyncio_loop
        )

    def stop(self, handle):
        handle.future.release()


class DaskPort:
    """A worker's side."""

    def __init__(self):
        self._worker = get_worker()
        self.threads = self._worker.state.nthreads

    async def call(self, place, name, *args):
        return await _execute(self._worker.rpc(place[0]), place, name, args)


def port():
    """The side of the worker that this runs on."""
    return DaskPort()
