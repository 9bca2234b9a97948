"""Readers for vector files, and the two data sets of the quickstart.

Every reader raises ``FileNotFoundError`` for a file that is not there and
``ValueError`` for one that is not what its name says; the text names the file
and what is wrong with it.
"""

import gzip
import os
import zlib
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

__all__ = [
    "FASHION_MNIST_LABELS",
    "FashionMnist",
    "Sift",
    "as_float32",
    "data_folders",
    "existing",
    "fashion_mnist",
    "map_npy",
    "map_vecs",
    "read_bvecs",
    "read_fvecs",
    "read_h5",
    "read_idx",
    "read_ivecs",
    "read_npy",
    "read_vectors",
    "sift",
    "vecs_values",
]

#: What the labels 0 .. 9 stand for.
FASHION_MNIST_LABELS = (
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)

# The names that vector collections in HDF5 files go by, most usual first.
H5_VECTOR_NAMES = ("dataset", "train", "base", "database", "vectors", "data")
H5_QUERY_NAMES = ("query", "queries", "test")
H5_TRUTH_NAMES = ("match", "neighbors", "indices", "groundtruth")


class FashionMnist(NamedTuple):
    """60,000 training and 10,000 test images of 28 x 28 pixels, in rows."""

    train: np.ndarray  #: [60000, 784] float32, 0..255
    train_labels: np.ndarray  #: [60000] uint8, 0..9
    test: np.ndarray  #: [10000, 784] float32
    test_labels: np.ndarray  #: [10000] uint8


class Sift(NamedTuple):
    """99,000 SIFT descriptors, 1,000 queries and their true neighbours."""

    base: np.ndarray  #: [99000, 128] float32, whole numbers 0..255
    queries: np.ndarray  #: [1000, 128] float32
    truth: np.ndarray  #: [1000, t] int32, ids of the t nearest (squared L2)


def existing(path):
    """`path` as a Path; an exception where it is no file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: is a folder or a device, not a file")
    return path


def map_vecs(path, dtype):
    """The memory map of a .fvecs, .ivecs or .bvecs file, (records [n, bytes of
    one], d, dtype). It has for every vector its dimension as a 32-bit number,
    then its values, all little endian."""
    path = existing(path)
    dtype = np.dtype(dtype)
    size = path.stat().st_size
    if size < 4:
        raise ValueError(
            f"{path}: holds {size} bytes, fewer than the 4 of one dimension"
        )
    d = int(np.fromfile(path, "<i4", 1)[0])
    if not 0 < d <= 1 << 24:
        raise ValueError(
            f"{path}: first vector says dimension {d}; not a {path.suffix} file"
        )
    record = 4 + d * dtype.itemsize
    if size % record:
        raise ValueError(
            f"{path}: {size} bytes are not a whole number of vectors of "
            f"dimension {d} ({record} bytes each); cut off or not a "
            f"{path.suffix} file"
        )
    shape = (size // record, record)
    return np.memmap(path, np.uint8, "r", shape=shape), d, dtype


def vecs_values(path, records, d, dtype, first=0):
    """The vectors of some records of map_vecs(), [n, d]; `first` is the number
    of the first one, for what is said of an error."""
    dims = np.ascontiguousarray(records[:, :4]).view("<i4").reshape(-1)
    if (dims != d).any():
        row = int(np.argmax(dims != d))
        raise ValueError(
            f"{path}: vector {first + row} says dimension {int(dims[row])}, the "
            f"first one {d}"
        )
    values = np.array(records[:, 4:], order="C").view(dtype)
    return values.astype(dtype.newbyteorder("="), copy=False)


def _read_vecs(path, dtype, limit):
    records, d, dtype = map_vecs(path, dtype)
    n = len(records) if limit is None else min(len(records), limit)
    if n <= 0:
        return np.empty((0, d), dtype.newbyteorder("="))
    return vecs_values(path, records[:n], d, dtype)


def read_fvecs(path, limit=None):
    """Vectors of a .fvecs file, [n, d] float32; at most the first `limit`."""
    return _read_vecs(path, "<f4", limit)


def read_ivecs(path, limit=None):
    """Vectors of an .ivecs file, [n, d] int32; at most the first `limit`."""
    return _read_vecs(path, "<i4", limit)


def read_bvecs(path, limit=None):
    """Vectors of a .bvecs file, [n, d] uint8; at most the first `limit`."""
    return _read_vecs(path, "u1", limit)


def map_npy(path):
    """The memory map of the array of a .npy file."""
    path = existing(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path}: not a readable .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path}: a .npz archive, not a .npy array")
    return array


def read_npy(path, limit=None):
    """The array of a .npy file; at most its first `limit` rows."""
    array = map_npy(path)
    return np.array(array if array.ndim == 0 else array[:limit])


def _h5py():
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            "reading .h5 files needs the Python package h5py "
            "(Debian: python3-h5py)"
        ) from error
    return h5py


def read_h5(path, dataset=None, limit=None, names=H5_VECTOR_NAMES):
    """One array of an HDF5 file.

    dataset  its name inside the file; None takes the first of `names` that is
             there, or the only array of the file
    limit    read at most so many rows
    """
    path = existing(path)
    h5py = _h5py()
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path}: not a readable HDF5 file: {error}") from error
    with file:
        arrays = sorted(k for k, v in file.items() if isinstance(v, h5py.Dataset))
        if dataset is None:
            known = [name for name in names if name in arrays]
            if known:
                dataset = known[0]
            elif len(arrays) == 1:
                dataset = arrays[0]
            else:
                raise ValueError(
                    f"{path}: which array is meant? It holds {arrays}, none of "
                    f"them called {' or '.join(names)}"
                )
        elif not isinstance(file.get(dataset), h5py.Dataset):
            raise ValueError(
                f"{path}: no array called {dataset!r}, it holds {arrays}"
            )
        array = file[dataset]
        try:
            return array[()] if array.ndim == 0 else array[:limit]
        except OSError as error:
            raise ValueError(f"{path}: cannot read {dataset!r}: {error}") from error


_IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path):
    """The array of an IDX file (the form of MNIST), gzipped or plain."""
    path = existing(path)
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file: {error}") from error
    if len(raw) < 4 or raw[0] or raw[1] or raw[2] not in _IDX_TYPES or not raw[3]:
        raise ValueError(f"{path}: not an IDX file (first bytes {raw[:4].hex()})")
    dtype, ndim = np.dtype(_IDX_TYPES[raw[2]]), raw[3]
    start = 4 + 4 * ndim
    if len(raw) < start:
        raise ValueError(f"{path}: cut off inside its header")
    shape = tuple(int(s) for s in np.frombuffer(raw, ">u4", ndim, 4))
    expected = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(raw) != expected:
        raise ValueError(
            f"{path}: {len(raw)} bytes, but its header (shape {shape}, "
            f"{dtype.name}) asks for {expected}"
        )
    array = np.frombuffer(raw, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def read_vectors(path, dataset=None, limit=None):
    """The vectors of a .npy, .fvecs, .ivecs, .bvecs or .h5 file as they are
    stored, [n, d]. `dataset` names the array of an .h5 file."""
    suffix = Path(path).suffix.lower()
    plain = {
        ".npy": read_npy,
        ".fvecs": read_fvecs,
        ".ivecs": read_ivecs,
        ".bvecs": read_bvecs,
    }
    if suffix in (".h5", ".hdf5"):
        array = read_h5(path, dataset, limit)
    elif suffix in plain:
        if dataset is not None:
            raise ValueError(
                f"{path}: only .h5 files have named arrays, {dataset!r} was "
                "asked for"
            )
        array = plain[suffix](path, limit)
    else:
        raise ValueError(
            f"{path}: unknown kind of file {suffix!r}, expected .npy, .fvecs, "
            ".ivecs, .bvecs or .h5"
        )
    if array.ndim != 2:
        raise ValueError(
            f"{path}: holds an array of shape {array.shape}, not one vector a row"
        )
    return array


def as_float32(array, name="array"):
    """`array` as contiguous float32 [n, d], as the indexes take it."""
    array = np.asarray(array)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name}: expected numbers of shape [n, d], got {array.dtype} of "
            f"shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def data_folders(*more):
    """Where data sets are looked for: the environment's FAISS_BITS_DATA, then
    the cache ${FAISS_BITS_CACHE:-~/.cache/faiss_bits}/datasets, then `more`."""
    cache = os.environ.get("FAISS_BITS_CACHE") or "~/.cache/faiss_bits"
    folders = [Path(cache).expanduser() / "datasets", *map(Path, more)]
    if os.environ.get("FAISS_BITS_DATA"):
        folders.insert(0, Path(os.environ["FAISS_BITS_DATA"]).expanduser())
    return folders


def _find(files, folders, how):
    for folder in folders:
        if all((folder / file).is_file() for file in files):
            return [folder / file for file in files]
    raise FileNotFoundError(
        f"{files[0]} was not found in {', '.join(map(str, folders))}. {how}"
    )


def fashion_mnist(folder: Optional[os.PathLike] = None) -> FashionMnist:
    """Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), from `folder` or from one of
    data_folders() or Debian's package dataset-fashion-mnist."""
    if folder is not None:
        folders = [Path(folder)]
    else:
        folders = []
        for base in data_folders("/usr/share/datasets"):
            folders += [base / "fashion-mnist", base]
    files = [
        f"{part}-{kind}-ubyte.gz"
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    how = (
        "Debian has it: apt-get install dataset-fashion-mnist; or set "
        "FAISS_BITS_DATA to a folder with its four .gz files."
    )
    paths = _find(files, folders, how)
    parts = [read_idx(path) for path in paths]
    for images, labels, path in zip(parts[::2], parts[1::2], paths[::2]):
        if images.ndim != 3 or images.shape[0] != labels.shape[0]:
            raise ValueError(
                f"{path}: images of shape {images.shape} for labels of shape "
                f"{labels.shape}"
            )
    train, train_labels, test, test_labels = parts
    return FashionMnist(
        as_float32(train.reshape(len(train), -1)),
        train_labels,
        as_float32(test.reshape(len(test), -1)),
        test_labels,
    )


def sift(path: Optional[os.PathLike] = None) -> Sift:
    """The SIFT descriptors that come with the source of FLANN, from the file
    `path` or from sift100K.h5 in one of data_folders()."""
    if path is None:
        how = (
            "It is part of FLANN's source, which Debian has: apt-get source "
            "flann, then copy datasets/sift100K.h5 from it to one of these "
            "folders, or set FAISS_BITS_DATA to its folder."
        )
        path = _find(["sift100K.h5"], data_folders(), how)[0]
    base = as_float32(read_h5(path), f"{path}: base")
    queries = as_float32(read_h5(path, names=H5_QUERY_NAMES), f"{path}: queries")
    truth = read_h5(path, names=H5_TRUTH_NAMES)
    if queries.shape[1] != base.shape[1]:
        raise ValueError(
            f"{path}: queries have dimension {queries.shape[1]}, vectors "
            f"{base.shape[1]}"
        )
    if truth.ndim != 2 or len(truth) != len(queries):
        raise ValueError(
            f"{path}: truth of shape {truth.shape} for {len(queries)} queries"
        )
    return Sift(base, queries, truth)
