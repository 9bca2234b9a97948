#!/usr/bin/env python3
"""One method of ivf_rivals.py in a process of its own, as two builds of FAISS
share none: reads requests from standard input, a JSON line each, and answers on
standard output likewise. METHOD and the device are its arguments.

    {"do": "load", "file", "name", "n", "d", "q", "seed"}  vectors, what was
                                            trained and the exact answers
    {"do": "build", "index"}                an index of them
    {"do": "search", "q", "k", "nprobe"}    "ms", "repeats", "recall"

A request that failed is answered with "why".
"""

import itertools
import json
import os
import statistics
import sys
import time

#: Calls that the recall of few queries a call is of.
RECALL_CALLS = 100
#: Calls that are timed: as many as take so long, at least and at most these.
TOTAL_MS, LEAST, MOST = 30.0, 5, 21


def first_line(error):
    """What an exception says, in short."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def slices(count, q):
    """Slices of q of count queries, one after the other; one at least."""
    return [slice(i * q, (i + 1) * q) for i in range(max(1, count // q))]


def share_found(ids, distances, last, n):
    """Recall, of numpy arrays: the share of the places of ids [m, k] that hold
    one of the k nearest of n vectors. distances [m, k] are the true ones of
    ids, last [m] that of the k-th nearest: of equally near ones any counts,
    each id once."""
    import numpy as np

    good = (ids >= 0) & (ids < n) & (distances <= last[:, None] * (1 + 1e-12))
    order = np.argsort(ids, axis=1, kind="stable")
    ids = np.take_along_axis(ids, order, 1)
    good = np.take_along_axis(good, order, 1)
    good[:, 1:] &= ids[:, 1:] != ids[:, :-1]
    return float(good.mean())


def median(clock, call):
    """(median ms, calls that it is of) after warming up."""
    clock.once(call)
    ms = spent = clock.once(call)
    for _ in range(3):
        if spent > TOTAL_MS:
            break
        ms = clock.once(call)
        spent += ms
    repeats = min(MOST, max(LEAST, int(TOTAL_MS / ms)))
    times = [clock.once(call) for _ in range(repeats)]
    return statistics.median(times), repeats


class Worker:
    def __init__(self, name, device):
        import flat_timing
        import ivf_methods
        import torch

        self.torch, self.device = torch, device
        self.method = ivf_methods.METHODS[name]
        why = self.method.why_missing()
        self.said = {"why": why} if why else {
            "version": self.method.version()[1],
            "own_lists": self.method.own_lists}
        self.clock = flat_timing.Clock(device)
        self.still_works = lambda: flat_timing.still_works(device)
        self.index = None

    def load(self, file, **data):
        from ivf_shared import make_data

        self.index = self.vectors = None
        self.still_works()  # and gives memory back
        self.vectors, self.queries = make_data(
            **data, device=self.device)
        self.given = self.torch.load(file, map_location=self.device)
        same = self.given["first"].to(self.device), self.vectors[:16]
        if not self.torch.equal(*same):
            raise RuntimeError("other vectors than the driver's")
        return {}

    def build(self, index):
        self.index = None
        why = self.method.why_not(index)
        if why:
            return {"why": why}
        begin = time.perf_counter()
        self.index = self.method(self.vectors, index, self.given)
        self.still_works()
        return {"build_s": time.perf_counter() - begin}

    def search(self, q, k, nprobe):
        recall = self.recall(q, k, nprobe)
        parts = itertools.cycle(
            [self.queries[part].contiguous()
             for part in slices(len(self.queries), q)[:RECALL_CALLS]])
        ms, repeats = median(
            self.clock, lambda: self.index.search(next(parts), k, nprobe))
        return {"ms": float(f"{ms:.5g}"), "repeats": repeats, "recall": recall}

    def recall(self, q, k, nprobe):
        """Of queries that are searched q at a time, as in the times."""
        from ivf_shared import squares

        truth = self.given["truth"]
        ids = [self.index.search(self.queries[part].contiguous(), k, nprobe)[1]
               for part in slices(len(truth), q)[:RECALL_CALLS]]
        ids = self.torch.cat(ids)[: len(truth)].long()
        queries, n = self.queries[: len(ids)], len(self.vectors)
        last = squares(self.vectors, truth[: len(ids), :k], queries).amax(1)
        found = squares(self.vectors, ids.clamp(0, n - 1), queries)
        share = share_found(
            *(part.cpu().numpy() for part in (ids, found, last)), n)
        return float(f"{share:.5g}")


def answer(worker, request):
    """What the worker says to a request."""
    try:
        return getattr(worker, request.pop("do"))(**request)
    # Each library has exceptions of its own, and none may end the race.
    except Exception as error:  # noqa: BLE001
        return {"why": "failed: " + first_line(error)}


def main():
    # Libraries print; the driver is to read answers alone.
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        worker = Worker(*sys.argv[1:3])
        said = worker.said
    except Exception as error:  # noqa: BLE001
        worker, said = None, {"why": first_line(error)}
    print(json.dumps(said), file=channel)
    for line in sys.stdin:
        print(json.dumps(answer(worker, json.loads(line))), file=channel)


if __name__ == "__main__":
    main()
