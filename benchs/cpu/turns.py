"""The methods of a cell take turns: how often, and how a turn is timed."""

import statistics
import time

#: Methods that are there for scale: fewer rounds will do.
FOR_SCALE = ("gemm_heap", "numpy", "sklearn")
#: Seconds between turns: threads that wait for more work spin for a while
#: (OpenBLAS 25 ms), and must not do so in another's time.
PAUSE = 0.05
TURN = 0.02  # seconds of calls in a turn, at least
SHORT_TURN = 0.006  # where all cells with the same vectors share a turn
LONG = 0.5  # seconds of a call that needs no call to warm up before it


class Turn:
    """One method of a cell: its worker, and the times of its rounds."""

    def __init__(self, worker, method, variant="auto"):
        self.worker, self.method, self.variant = worker, method, variant
        self.times, self.extras, self.first = [], [], None
        self.answer, self.plan = None, None

    @property
    def is_forced(self):
        return self.variant != "auto"

    def __str__(self):
        return self.method + (f":{self.variant}" if self.is_forced else "")

    @staticmethod
    def wait(pause):
        if pause:
            time.sleep(PAUSE)

    def call(self, cell, calls, warm, answer=False):
        return self.worker.ask("time", method=self.method, q=cell.q, k=cell.k,
                               calls=calls, warm=warm, variant=self.variant,
                               answer=answer)

    def begin(self, cell, pause=True):
        """One call to see how long it takes; a second one if that may have
        been for loading."""
        self.wait(pause)
        reply = self.call(cell, 1, 0, answer=True)
        self.answer = reply["D"], reply["I"]
        if reply["ms"][0] < 1e3 * LONG:
            self.wait(pause)
            reply = self.call(cell, 1, 0)
        self.first = reply["ms"][0] / 1e3
        if self.first >= LONG:  # loading is nothing beside it
            self.keep(reply)

    def keep(self, reply):
        self.times.append(statistics.median(reply["ms"]))
        if "extras" in reply:
            self.extras.append(reply["extras"][-1])

    def wake(self, cell):
        """As many calls as take the time of a turn; they do not count."""
        begin = time.monotonic()
        while True:
            self.call(cell, 1, 0)
            if time.monotonic() - begin >= TURN:
                return

    def play(self, cell, short=False):
        """A turn; a short one follows other cells' of the same method."""
        self.wait(not short)
        seconds = SHORT_TURN if short else TURN
        calls = min(20, max(1, int(seconds / max(self.first, 1e-6))))
        self.keep(self.call(cell, calls, int(self.first < LONG)))


def rounds_for(seconds):
    """Rounds of a cell whose methods take so long, all together, for one."""
    for limit, rounds in ((0.5, 9), (2, 7), (6, 5), (20, 3)):
        if seconds < limit:
            return rounds
    return 2


def wanted_rounds(turn, rounds, best):
    """Of those, what one method plays: those for scale, and variants that are
    far behind, need not be known so well."""
    if turn.method in FOR_SCALE:
        return min(rounds, 3)
    if turn.is_forced and turn.first > 3 * best:
        return 1 if turn.first < 2 else 0
    return rounds
