"""What goes wrong where several processes work together."""


class WorkerLostError(RuntimeError):
    """A worker is gone, or its part of an index with it, and nothing has taken
    its place."""


class SearchTimeoutError(TimeoutError):
    """A call did not end within its `timeout`. Nothing of it is returned."""


class JobAbortedError(RuntimeError):
    """A worker gave up a job that failed, or was given up, elsewhere."""
