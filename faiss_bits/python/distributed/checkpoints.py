"""Where a long job stands, in a file that is whole or not there."""

import json
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

# What a file that is none may raise, when zip archives, arrays and JSON are looked
# for in it.
_UNREADABLE = (
    ValueError, TypeError, KeyError, OSError, EOFError, RuntimeError,
    zipfile.BadZipFile, zlib.error,
)


def identity(index, **settings):
    """What a job is done with: a checkpoint of another must not be gone on
    with. The workers are no part of it."""
    shards = [[s.path, s.begin, s.end, s.first_id] for s in index._shards]
    return {
        "shards": shards, "d": index.d, "metric": int(index.metric_type),
        "metric_arg": index.metric_arg, **settings,
    }


def files(path):
    """What replace_file(path) writes: the file, and the one before it is whole."""
    path = Path(path)
    return path, path.with_name(path.name + ".new")


def replace_file(path, write):
    """write(file) to a file that takes the place of `path` when it is whole and
    on the disk."""
    path, work = files(path)
    with open(work, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(work, path)


def save(path, job, state, **arrays):
    """Writes a checkpoint: `state` can be written as JSON."""
    text = json.dumps({"job": job, "state": state})
    replace_file(path, lambda file: np.savez(file, text=np.array(text), **arrays))


def load(path, job, count, arrays=()):
    """(state, arrays) of a checkpoint, or None if there is none. ValueError where
    it is of another job or no checkpoint: `count` names a whole number of its
    state, `arrays` what it has besides."""
    path = Path(path)
    if not path.exists():
        return None
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("it is an array")
        with file:
            found = json.loads(str(file["text"]))
            kept = {name: file[name] for name in arrays}
        of, state = found["job"], found["state"]
        if not isinstance(of, dict):
            raise ValueError(f"its job is {of!r}")
        if not isinstance(state[count], int):
            raise ValueError(f"its {count} is {state[count]!r}")
    except _UNREADABLE as error:
        raise ValueError(f"{path}: not a readable checkpoint: {error}") from error
    other = [name for name in job if of.get(name) != job[name]]
    if other or set(of) != set(job):
        raise ValueError(
            f"{path}: is of another job ({', '.join(other) or 'other settings'}); "
            "remove it, or give resume = False"
        )
    return state, kept
