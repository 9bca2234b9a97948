"""Starting bench_worker.py, or another worker, and talking to it."""

import json
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "bench_worker.py"


class WorkerError(RuntimeError):
    """What a worker has said went wrong, or that it is no more."""


class WorkerProcess:
    """A worker that runs until close(). Requests are calls:
    worker.ask("time", method="numpy", q=1, k=10, calls=1, warm=0)."""

    def __init__(self, kind, python, threads, *arguments, script=SCRIPT):
        self.kind = kind
        environment = dict(os.environ, BENCH_THREADS=str(threads),
                           OMP_NUM_THREADS=str(threads),
                           OPENBLAS_NUM_THREADS=str(threads))
        if kind == "wheel":  # its own FAISS, not that of our build
            environment.pop("PYTHONPATH", None)
            environment.pop("LD_LIBRARY_PATH", None)
        # Of its own group: Ctrl-C is for the driver, which then closes this.
        self.process = subprocess.Popen(
            [python, str(script), kind, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment,
            preexec_fn=os.setpgrp)
        hello = self.ask("methods")
        self.methods, self.about = hello["methods"], hello["about"]

    def ask(self, do, **arguments):
        """The reply to one request; WorkerError if it is an error."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self.process.wait()
            raise WorkerError(f"the {self.kind} worker has ended with status "
                              f"{status} (-9: often for want of memory)")
        reply = json.loads(line)
        if "error" in reply:
            raise WorkerError(f"{self.kind}, {do}: {reply['error']}")
        return reply

    def close(self):
        """Ends the process, whatever it is doing."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
