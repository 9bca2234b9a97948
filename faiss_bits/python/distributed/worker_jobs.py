"""What a worker knows of the batches under way, and counts."""

import asyncio
import collections


class Counts:
    """Bytes of arrays in messages that were sent, by what they carry."""

    def __init__(self):
        self.bytes = collections.Counter()
        self.messages = collections.Counter()
        self.largest = 0
        self.held = self.most_held = 0

    def sent(self, what, *arrays):
        size = sum(a.nbytes for a in arrays if a is not None)
        self.bytes[what] += size
        self.messages[what] += 1
        self.largest = max(self.largest, size)

    def hold(self, size):
        self.held += size
        self.most_held = max(self.most_held, self.held)


class Job:
    """One batch under way. Others wait for its queries and results here."""

    def __init__(self, job):
        loop = asyncio.get_running_loop()
        self.number = job
        self.inputs, self.outputs, self.aborted = (
            loop.create_future() for _ in range(3)
        )
        self.merged = None
        self.waiting = None  # requests of others that are to come
        self.held = 0

    def fail(self, error):
        for future in (self.inputs, self.outputs, self.aborted):
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody need ask
