"""Which vectors a shard has: rows of a file, and the ids that they go by."""

import collections.abc
import dataclasses
import os
from typing import Optional

from ..arrays import whole_number
from ..contrib.vector_files import file_shape


@dataclasses.dataclass(frozen=True)
class ShardSpec:
    """Rows of a file that make a shard of a distributed index. The worker that
    has the shard reads them; whoever makes the index need not see the file, but
    a worker that takes a lost one's place must.

    Parameters
    ----------
    path : str or path
        A .npy, .fvecs, .bvecs or .parquet file, at the same path on every
        worker
    begin, end : int, optional
        The rows begin .. end - 1; without `end` all to the end of the file. No
        rows are an empty shard
    first_id : int, optional
        Global id of the first row, those behind it follow; 0 or more. Not
        given: the ids go on where those of the shard before end, from 0
    column : str, optional
        The column of a .parquet file that has the vectors, if several could
    """

    path: str
    begin: int = 0
    end: Optional[int] = None
    first_id: Optional[int] = None
    column: Optional[str] = None

    def __post_init__(self):
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(
                f"path is a {type(self.path).__name__}, expected a path"
            )
        put = object.__setattr__  # as the class is frozen
        put(self, "path", os.fspath(self.path))
        put(self, "begin", whole_number(self.begin, "begin", 0))
        if self.end is not None:
            put(self, "end", whole_number(self.end, "end", self.begin))
        if self.first_id is not None:
            put(self, "first_id", whole_number(self.first_id, "first_id", 0))

    @staticmethod
    def split(path, count, column=None):
        """Shards of nearly equal size that make up a file.

        Parameters
        ----------
        path : str or path
            A file that is here, too
        count : int
            Number of shards, 1 or more
        column : str, optional
            As for ShardSpec

        Returns
        -------
        specs : list of ShardSpec
        """
        count = whole_number(count, "count", 1)
        n = file_shape(path, column)[0]
        return [
            ShardSpec(path, n * i // count, n * (i + 1) // count, column=column)
            for i in range(count)
        ]


@dataclasses.dataclass(frozen=True)
class Shard:
    """A spec of which everything is known. Rows of the collection are counted
    over all shards in their order, from 0; ids are what results name."""

    number: int
    path: str
    begin: int
    end: int
    first_id: int
    first_row: int
    column: Optional[str]

    @property
    def size(self):
        return self.end - self.begin

    @property
    def end_row(self):
        return self.first_row + self.size

    def __str__(self):
        return f"shard {self.number} ({self.path}, rows {self.begin} .. {self.end})"


def checked_specs(specs):
    """A list of ShardSpec; ValueError or TypeError for anything else."""
    if isinstance(specs, ShardSpec):
        specs = [specs]
    if isinstance(specs, str) or not isinstance(specs, collections.abc.Iterable):
        raise TypeError(
            f"specs is a {type(specs).__name__}, expected a list of ShardSpec"
        )
    specs = list(specs)
    if not specs:
        raise ValueError("specs is empty, expected one ShardSpec or more")
    for i, spec in enumerate(specs):
        if not isinstance(spec, ShardSpec):
            raise TypeError(
                f"specs[{i}] is a {type(spec).__name__}, expected a ShardSpec"
            )
    return specs


def resolved(specs, shapes):
    """(shards, d): what the specs mean, given the (n, d) of each one's file."""
    shards, row, next_id = [], 0, 0
    for i, (spec, (n, _)) in enumerate(zip(specs, shapes)):
        end = n if spec.end is None else spec.end
        if not spec.begin <= end <= n:
            raise ValueError(
                f"specs[{i}]: rows {spec.begin} .. {end} of {spec.path}, which "
                f"has {n}"
            )
        first_id = next_id if spec.first_id is None else spec.first_id
        shard = Shard(i, spec.path, spec.begin, end, first_id, row, spec.column)
        if first_id + shard.size > 2**63:
            raise ValueError(f"specs[{i}]: first_id = {first_id} is too large")
        shards.append(shard)
        row, next_id = shard.end_row, first_id + shard.size
    _check_ids(shards)
    return shards, _common_dimension(specs, shapes)


def _check_ids(shards):
    by_id = sorted((s for s in shards if s.size), key=lambda s: s.first_id)
    for a, b in zip(by_id, by_id[1:]):
        if a.first_id + a.size > b.first_id:
            raise ValueError(
                f"ids of specs[{a.number}] ({a.first_id} .. "
                f"{a.first_id + a.size - 1}) and specs[{b.number}] (from "
                f"{b.first_id}) are the same"
            )


def _common_dimension(specs, shapes):
    d = shapes[0][1]
    for spec, (_, other) in zip(specs, shapes):
        if other != d:
            raise ValueError(
                f"{spec.path} has vectors of dimension {other}, "
                f"{specs[0].path} of {d}"
            )
    if d < 1:
        raise ValueError(f"{specs[0].path}: vectors have dimension d = {d}")
    return d


def check_not_read(path, shards):
    """ValueError where a file to be written is one that shards are read from, by
    whatever name."""
    path = os.fspath(path)
    for other in dict.fromkeys(shard.path for shard in shards):
        # Vectors may be on the workers' machines alone, so that just the names
        # can be compared; a hard link has a name of its own.
        if os.path.realpath(path) == os.path.realpath(other) or (
            os.path.exists(path)
            and os.path.exists(other)
            and os.path.samefile(path, other)
        ):
            raise ValueError(
                f"path = {path!r}, which is the file of the index's vectors, {other}"
            )


def placed(shards, hosts):
    """The shards of each of `hosts` hosts: one each, or the largest first, each
    to the host with the fewest rows so far; a host has its own in the order of
    their ids."""
    if len(shards) == hosts:
        return [[shard] for shard in shards]
    rows, parts = [0] * hosts, [[] for _ in range(hosts)]
    for shard in sorted(shards, key=lambda s: (-s.size, s.number)):
        host = min(range(hosts), key=lambda i: (rows[i], len(parts[i]), i))
        rows[host] += shard.size
        parts[host].append(shard)
    return [sorted(part, key=lambda s: (s.first_id, s.number)) for part in parts]
