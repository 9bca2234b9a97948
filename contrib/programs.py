"""What the command lines of this package share: errors as a line, and a look at
where results go before a long run begins."""

import sys
from pathlib import Path

__all__ = ["check_output", "status_of"]


def check_output(option, path, *inputs):
    """Raises OSError or ValueError where a file could not be written, or is one
    of `inputs` (None: none). The option names it in the message."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{option} {path}: is a folder")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: there is no such folder")
    for given in inputs:
        if given and path.exists() and Path(given).exists() and path.samefile(given):
            raise ValueError(f"{option} {path}: would replace what is read")


def status_of(run, stopped):
    """The exit status of run(): its own, 1 for an error, which is told in a line
    on stderr, and 130 for Ctrl-C, of which the text `stopped` tells."""
    try:
        return run()
    except (
        OSError, ValueError, TypeError, ImportError, MemoryError, RuntimeError
    ) as error:  # the last: FAISS's
        print(str(error) or type(error).__name__, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        return 130
