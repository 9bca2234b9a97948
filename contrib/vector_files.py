"""Parts of vector files: rows of a .npy, .fvecs, .bvecs or .parquet file, read
where they lie, without the rest of the file.

A .parquet file has one column of lists, a vector a row, or a number in each of
its columns; it needs the package pyarrow (pip install pyarrow). Errors are those
of faiss_bits.contrib.datasets: FileNotFoundError, ValueError that names the
file, and ImportError where pyarrow is missing.
"""

from pathlib import Path

import numpy as np

from faiss_bits.contrib import datasets

__all__ = ["file_shape", "read_rows", "row_blocks", "take_rows"]


def file_shape(path, column=None):
    """The number of vectors in a file and their dimension, (n, d); only its
    head is read. `column` names the column of lists of a .parquet file."""
    return _open(path, column).shape


def read_rows(path, begin, end, column=None):
    """Rows begin .. end - 1 of a file, float32 [end - begin, d]."""
    file = _open(path, column)
    _check_rows(path, file.shape[0], begin, end)
    return datasets.as_float32(file.rows(begin, end), str(path))


def row_blocks(path, begin, end, block, column=None):
    """Rows begin .. end - 1 of a file as float32 arrays of up to `block` rows,
    one after another. Reads each row once."""
    file = _open(path, column)
    _check_rows(path, file.shape[0], begin, end)
    for first in range(begin, end, block):
        rows = file.rows(first, min(first + block, end))
        yield datasets.as_float32(rows, str(path))


def take_rows(path, rows, column=None):
    """The rows of a file whose numbers are given, ascending: float32
    [len(rows), d]."""
    file = _open(path, column)
    rows = np.asarray(rows, np.int64)
    if len(rows):
        _check_rows(path, file.shape[0], int(rows[0]), int(rows[-1]) + 1)
    return datasets.as_float32(file.take(rows), str(path))


def _check_rows(path, n, begin, end):
    if not 0 <= begin <= end <= n:
        raise ValueError(
            f"{path}: rows {begin} .. {end} were asked for, it has {n}"
        )


def _open(path, column):
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _ParquetFile(path, column)
    if column is not None:
        raise ValueError(
            f"{path}: only .parquet files have columns, {column!r} was asked for"
        )
    if suffix == ".npy":
        return _Mapped(path, datasets.map_npy(path))
    if suffix in (".fvecs", ".bvecs"):
        kind = "<f4" if suffix == ".fvecs" else "u1"
        return _Records(path, *datasets.map_vecs(path, kind))
    raise ValueError(
        f"{path}: unknown kind of file {suffix!r}, expected .npy, .fvecs, "
        ".bvecs or .parquet"
    )


class _Mapped:
    """The memory map of an array, one vector a row."""

    def __init__(self, path, array):
        if array.ndim != 2:
            raise ValueError(
                f"{path}: holds an array of shape {array.shape}, not one vector "
                "a row"
            )
        self._array = array
        self.shape = array.shape

    def rows(self, begin, end):
        return self._array[begin:end]

    def take(self, rows):
        return self._array[rows]


class _Records:
    """The memory map of a file of records: a dimension, then the values."""

    def __init__(self, path, raw, d, dtype):
        self._path, self._raw, self._dtype = path, raw, dtype
        self.shape = (len(raw), d)

    def rows(self, begin, end):
        return datasets.vecs_values(
            self._path, self._raw[begin:end], self.shape[1], self._dtype, begin
        )

    def take(self, rows):
        first = int(rows[0]) if len(rows) else 0
        return datasets.vecs_values(
            self._path, self._raw[rows], self.shape[1], self._dtype, first
        )


class _ParquetFile:
    """Row groups of a Parquet file, the last one kept."""

    def __init__(self, path, column):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise ImportError(
                "reading .parquet files needs the Python package pyarrow "
                "(pip install pyarrow)"
            ) from error
        self._path = datasets.existing(path)
        try:
            self._file = parquet.ParquetFile(self._path)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{path}: not a readable .parquet file: {error}"
            ) from error
        self._is_list = lambda kind: (
            pyarrow.types.is_list(kind)
            or pyarrow.types.is_large_list(kind)
            or pyarrow.types.is_fixed_size_list(kind)
        )
        self._columns = self._columns_of(column)
        groups = self._file.metadata
        sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._kept = (None, None)
        n = int(groups.num_rows)
        self.shape = (n, self._dimension())

    def _columns_of(self, column):
        schema = self._file.schema_arrow
        lists = [x.name for x in schema if self._is_list(x.type)]
        if column is None:
            if len(lists) > 1:
                raise ValueError(
                    f"{self._path}: which column is meant? Of lists are {lists}"
                )
            return lists or list(schema.names)
        if column not in lists:
            raise ValueError(
                f"{self._path}: no column of lists called {column!r}, it has {lists}"
            )
        return [column]

    def _dimension(self):
        kind = self._file.schema_arrow.field(self._columns[0]).type
        if not self._is_list(kind):
            return len(self._columns)
        size = getattr(kind, "list_size", -1)  # of lists of one size
        # A row group may be empty: then it does not tell.
        filled = np.flatnonzero(np.diff(self._ends, prepend=0))
        if size < 0 and len(filled):
            size = self._group(int(filled[0])).shape[1]
        return max(size, 0)

    def _group(self, number):
        """Vectors of a row group, [rows, d]."""
        if self._kept[0] != number:
            table = self._file.read_row_group(number, columns=self._columns)
            columns = [table[name].combine_chunks() for name in self._columns]
            if any(column.null_count for column in columns):
                raise ValueError(f"{self._path}: row group {number} has nulls")
            if self._is_list(columns[0].type):
                values = self._of_lists(columns[0], table.num_rows, number)
            else:
                values = np.stack([np.asarray(column) for column in columns], 1)
            self._kept = (number, values)
        return self._kept[1]

    def _of_lists(self, column, n, number):
        flat = np.asarray(column.flatten())
        lengths = np.asarray(column.value_lengths())
        d = int(lengths[0]) if n else 0
        if (lengths != d).any():
            raise ValueError(
                f"{self._path}: vectors of {d} and {int(lengths[lengths != d][0])} "
                f"values in row group {number}"
            )
        return flat.reshape(n, d)

    def rows(self, begin, end):
        parts = []
        group = int(np.searchsorted(self._ends, begin, side="right"))
        while begin < end:
            first = int(self._ends[group - 1]) if group else 0
            stop = min(end, int(self._ends[group]))
            if begin < stop:
                parts.append(self._checked(group)[begin - first : stop - first])
            begin, group = stop, group + 1
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), "f4")

    def _checked(self, group):
        values = self._group(group)
        if values.shape[1] != self.shape[1]:
            raise ValueError(
                f"{self._path}: vectors of {self.shape[1]} and {values.shape[1]} "
                f"values (row group {group})"
            )
        return values

    def take(self, rows):
        groups = np.searchsorted(self._ends, rows, side="right")
        parts = [np.empty((0, self.shape[1]), np.float32)]
        for group in np.unique(groups):
            first = int(self._ends[group - 1]) if group else 0
            parts.append(self._checked(int(group))[rows[groups == group] - first])
        return np.concatenate(parts)
