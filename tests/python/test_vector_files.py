"""contrib/vector_files.py: parts of files against the arrays that were written,
and files that are not what they say."""

import numpy as np
import pytest

from faiss_bits.contrib.vector_files import (
    file_shape,
    read_rows,
    row_blocks,
    take_rows,
)

N, D = 57, 5
X = np.random.default_rng(1).integers(0, 200, (N, D))


def write_npy(path, x=X, dtype=np.float32, order="C"):
    np.save(path, np.asarray(x, dtype, order=order))


def write_vecs(path, x=X, dtype="<f4"):
    dims = np.full((len(x), 1), x.shape[1], "<i4").view("u1")
    values = np.ascontiguousarray(x, dtype).view("u1").reshape(len(x), -1)
    path.write_bytes(np.hstack([dims, values]).tobytes())


def write_parquet(path, x=X, kind="list", **kwargs):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    x = np.asarray(x, np.float32)
    if kind == "columns":
        table = pyarrow.table({f"c{i}": x[:, i] for i in range(x.shape[1])})
    else:
        item = pyarrow.list_(pyarrow.float32())
        if kind == "fixed":
            item = pyarrow.list_(pyarrow.float32(), x.shape[1])
        column = pyarrow.array(x.tolist(), item)
        table = pyarrow.table({"number": np.arange(len(x)), "v": column})
    parquet.write_table(table, path, row_group_size=10, **kwargs)


WRITERS = {
    "float32.npy": write_npy,
    "uint8.npy": lambda p: write_npy(p, dtype=np.uint8),
    "float64.npy": lambda p: write_npy(p, dtype=np.float64),
    "columns.npy": lambda p: write_npy(p, order="F"),
    "x.fvecs": write_vecs,
    "x.bvecs": lambda p: write_vecs(p, dtype="u1"),
    "list.parquet": write_parquet,
    "fixed.parquet": lambda p: write_parquet(p, kind="fixed"),
    "columns.parquet": lambda p: write_parquet(p, kind="columns"),
}


@pytest.fixture(params=WRITERS)
def path(request, tmp_path):
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


def test_parts(path):
    assert file_shape(path) == (N, D)
    for begin, end in [(0, N), (0, 0), (N, N), (9, 10), (10, 30), (3, 51)]:
        part = read_rows(path, begin, end)
        assert part.dtype == np.float32 and part.flags.c_contiguous
        np.testing.assert_array_equal(part, X[begin:end])
    for block in (1, 10, 17, 100):
        parts = list(row_blocks(path, 5, 50, block))
        assert [len(p) for p in parts] == [
            min(block, 50 - i) for i in range(5, 50, block)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), X[5:50])
    for rows in ([], [0], [3, 4, 9, 10, 55], range(N)):
        np.testing.assert_array_equal(take_rows(path, rows), X[list(rows)])


@pytest.mark.parametrize("begin, end", [(0, N + 1), (-1, 3), (5, 4)])
def test_rows_that_are_not_there(path, begin, end):
    with pytest.raises(ValueError, match=f"rows {begin} .. {end} were asked for"):
        read_rows(path, begin, end)
    with pytest.raises(ValueError, match=str(path)):
        list(row_blocks(path, begin, end, 4))


@pytest.mark.parametrize("rows, begin, end", [([3, N], 3, N + 1), ([-1, 2], -1, 3)])
def test_numbers_of_rows_that_are_not_there(path, rows, begin, end):
    with pytest.raises(ValueError, match=f"rows {begin} .. {end} were asked for"):
        take_rows(path, rows)


def test_what_is_no_file_of_vectors(tmp_path):
    for name, content, message in [
        ("a.npy", b"something", "not a readable .npy file"),
        ("a.fvecs", b"\1\0", "fewer than the 4"),
        ("a.fvecs", b"\0\0\0\0", "says dimension 0"),
        ("a.bvecs", b"\2\0\0\0abc", "not a whole number of vectors"),
        ("a.txt", b"1 2 3", "unknown kind of file '.txt'"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            file_shape(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no.npy"):
        file_shape(tmp_path / "no.npy")
    np.save(tmp_path / "flat.npy", np.zeros(4))
    with pytest.raises(ValueError, match=r"shape \(4,\), not one vector a row"):
        file_shape(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.full((2, 2), "x"))
    with pytest.raises(ValueError, match="expected numbers"):
        read_rows(tmp_path / "text.npy", 0, 1)


def test_a_record_of_another_dimension(tmp_path):
    path = tmp_path / "x.bvecs"
    write_vecs(path, dtype="u1")
    raw = bytearray(path.read_bytes())
    raw[20 * (4 + D)] = 9
    path.write_bytes(raw)
    np.testing.assert_array_equal(read_rows(path, 0, 20), X[:20])
    with pytest.raises(ValueError, match="vector 20 says dimension 9"):
        read_rows(path, 15, 25)


def test_columns_of_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    column = pyarrow.array(X.tolist(), pyarrow.list_(pyarrow.int64()))
    parquet.write_table(pyarrow.table({"a": column, "b": column}), path)
    with pytest.raises(ValueError, match="which column is meant"):
        file_shape(path)
    np.testing.assert_array_equal(read_rows(path, 2, 9, column="b"), X[2:9])
    with pytest.raises(ValueError, match="no column of lists called 'c'"):
        file_shape(path, "c")
    with pytest.raises(ValueError, match="only .parquet files have columns"):
        file_shape(tmp_path / "x.npy", "c")
    ragged = pyarrow.array([[1.0, 2.0], [3.0]], pyarrow.list_(pyarrow.float32()))
    parquet.write_table(pyarrow.table({"a": ragged}), path)
    with pytest.raises(ValueError, match="vectors of 2 and 1 values"):
        file_shape(path)
    holes = pyarrow.array([[1.0], None], pyarrow.list_(pyarrow.float32()))
    parquet.write_table(pyarrow.table({"a": holes}), path)
    with pytest.raises(ValueError, match="has nulls"):
        read_rows(path, 0, 2)
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="not a readable .parquet file"):
        file_shape(path)


def test_parquet_with_empty_row_groups(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    def table(x):
        column = pyarrow.array(x.tolist(), pyarrow.list_(pyarrow.float32()))
        return pyarrow.table({"v": column})

    path, x = tmp_path / "x.parquet", np.arange(24, dtype="f4").reshape(8, 3)
    for parts in ((x[:0], x[:4], x[4:]), (x[:4], x[:0], x[:0], x[4:], x[:0])):
        with parquet.ParquetWriter(path, table(x).schema) as writer:
            for part in parts:
                writer.write_table(table(part))
        assert parquet.ParquetFile(path).metadata.num_row_groups == len(parts)
        assert file_shape(path) == (8, 3)
        assert np.array_equal(read_rows(path, 0, 8), x)
        assert np.array_equal(read_rows(path, 3, 5), x[3:5])
        assert np.array_equal(take_rows(path, [0, 3, 4, 7]), x[[0, 3, 4, 7]])


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        file_shape(tmp_path / "x.parquet")
