"""The readers of contrib/datasets.py: what they read, what they refuse."""

import gzip
import struct

import numpy as np
import pytest

from faiss_bits.contrib import datasets

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


def write_vecs(path, array):
    with open(path, "wb") as file:
        for row in array:
            file.write(struct.pack("<i", len(row)) + row.tobytes())


def write_idx(path, array, code, opener=gzip.open):
    header = struct.pack(">HBB", 0, code, array.ndim)
    header += struct.pack(f">{array.ndim}I", *array.shape)
    with opener(path, "wb") as file:
        file.write(header + array.tobytes())


def write_h5(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def write(path, array):
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".h5":
        write_h5(path, dataset=array)
    else:
        write_vecs(path, array)


RNG = np.random.default_rng(0)
FLOATS = RNG.standard_normal((13, 7)).astype(np.float32)
ARRAYS = {
    ".npy": FLOATS,
    ".fvecs": FLOATS,
    ".ivecs": RNG.integers(-(2**31), 2**31, (13, 7)).astype(np.int32),
    ".bvecs": RNG.integers(0, 256, (13, 7)).astype(np.uint8),
    ".h5": FLOATS,
}
ONE_BY_ONE = {s: a[:1, :1] for s, a in ARRAYS.items()}


@pytest.mark.parametrize("arrays", [ARRAYS, ONE_BY_ONE])
@pytest.mark.parametrize("suffix", ARRAYS)
def test_round_trip(tmp_path, suffix, arrays):
    path = tmp_path / f"x{suffix}"
    write(path, arrays[suffix])
    read = datasets.read_vectors(path)
    assert read.dtype == arrays[suffix].dtype
    np.testing.assert_array_equal(read, arrays[suffix])
    read[...] = 0  # ours to change, not a view of the file
    for limit in (0, 1, 5, 1000):
        first = datasets.read_vectors(str(path), limit=limit)
        np.testing.assert_array_equal(first, arrays[suffix][:limit])


@pytest.mark.parametrize("suffix", ARRAYS)
@pytest.mark.parametrize("keep", [0, 1, 3, 4, 30, -1])
def test_cut_off_files(tmp_path, suffix, keep):
    path = tmp_path / f"x{suffix}"
    write(path, ARRAYS[suffix])
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError) as caught:
        datasets.read_vectors(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", ARRAYS)
def test_text_is_refused(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_text("these are not vectors\n" * 20)
    with pytest.raises(ValueError) as caught:
        datasets.read_vectors(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", [*ARRAYS, ".gz"])
def test_missing_files_and_folders(tmp_path, suffix):
    read = datasets.read_idx if suffix == ".gz" else datasets.read_vectors
    path = tmp_path / f"x{suffix}"
    with pytest.raises(FileNotFoundError, match="no such file") as caught:
        read(path)
    assert str(path) in str(caught.value)
    path.mkdir()
    with pytest.raises(ValueError, match="not a file"):
        read(path)


def test_dimensions_that_change(tmp_path):
    path = tmp_path / "x.fvecs"
    good = struct.pack("<i2f", 2, 1, 2)
    path.write_bytes(good + good + struct.pack("<i2f", 3, 1, 2))
    with pytest.raises(ValueError, match="vector 2 says dimension 3"):
        datasets.read_fvecs(path)
    path.write_bytes(struct.pack("<i2f", -2, 1, 2))
    with pytest.raises(ValueError, match="dimension -2"):
        datasets.read_fvecs(path)


def test_names_inside_h5(tmp_path):
    path = tmp_path / "x.h5"
    write_h5(path, a=FLOATS, b=FLOATS + 1)
    with pytest.raises(ValueError, match="which array.*'a', 'b'"):
        datasets.read_vectors(path)
    with pytest.raises(ValueError, match="no array called 'c'.*'a', 'b'"):
        datasets.read_vectors(path, "c")
    np.testing.assert_array_equal(datasets.read_vectors(path, "b"), FLOATS + 1)
    write_h5(path, only=FLOATS)
    np.testing.assert_array_equal(datasets.read_vectors(path), FLOATS)
    write_h5(path, other=FLOATS + 1, train=FLOATS)
    np.testing.assert_array_equal(datasets.read_vectors(path), FLOATS)


def test_what_is_not_a_matrix(tmp_path):
    np.save(tmp_path / "x.npy", FLOATS[0])
    with pytest.raises(ValueError, match=r"shape \(7,\)"):
        datasets.read_vectors(tmp_path / "x.npy")
    assert np.array_equal(datasets.read_npy(tmp_path / "x.npy", 3), FLOATS[0][:3])
    np.save(tmp_path / "number.npy", np.float32(2))
    assert datasets.read_npy(tmp_path / "number.npy", 3) == 2
    np.save(tmp_path / "o.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="o.npy"):
        datasets.read_vectors(tmp_path / "o.npy")
    with pytest.raises(ValueError, match="unknown kind of file '.csv'"):
        datasets.read_vectors(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="named arrays"):
        datasets.read_vectors(tmp_path / "x.npy", "train")


def test_as_float32():
    half = FLOATS.astype(np.float16)[:, ::2]
    out = datasets.as_float32(half)
    assert out.dtype == np.float32 and out.flags.c_contiguous
    np.testing.assert_array_equal(out, half)
    for bad in (FLOATS[0], FLOATS.astype(complex), np.array([["a"]])):
        with pytest.raises(ValueError, match="^mine: expected numbers"):
            datasets.as_float32(bad, "mine")


@pytest.mark.parametrize("opener", [gzip.open, open])
@pytest.mark.parametrize("code, dtype", [(8, "u1"), (11, ">i2"), (13, ">f4")])
def test_idx_round_trip(tmp_path, opener, code, dtype):
    array = RNG.integers(0, 200, (3, 4, 5)).astype(dtype)
    write_idx(tmp_path / "x.gz", array, code, opener)
    read = datasets.read_idx(tmp_path / "x.gz")
    assert read.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(read, array)


def test_idx_refuses(tmp_path):
    path = tmp_path / "x.gz"
    write_idx(path, np.zeros((3, 4), np.uint8), 8, open)
    whole = path.read_bytes()
    for content, words in (
        (b"", "not an IDX"),
        (whole[:3], "not an IDX"),
        (whole[:7], "header"),
        (whole[:-1], "23 bytes, but its header"),
        (whole + b"0", "25 bytes"),
        (b"\x00\x00\x07\x02" + whole[4:], "not an IDX"),
        (gzip.compress(whole)[:-9], "gzip"),
        (b"\x1f\x8bnot gzip at all", "gzip"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=words) as caught:
            datasets.read_idx(path)
        assert str(path) in str(caught.value)


# ---- the two data sets, small -------------------------------------------------


def small_fashion_mnist(folder, train=200, test=30, seed=0):
    """Files of Fashion-MNIST's form: every class has a pattern of its own."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 200, (10, 28, 28))
    folder.mkdir(parents=True, exist_ok=True)
    for part, n in (("train", train), ("t10k", test)):
        labels = (np.arange(n) % 10).astype(np.uint8)
        images = patterns[labels] + rng.integers(0, 50, (n, 28, 28))
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images.astype(np.uint8), 8)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels, 8)


def small_sift(folder, n=300, q=20, seed=0, wrong=0):
    """A file of sift100K.h5's form, with the truth from float64; the first
    `wrong` queries get the farthest vector for their nearest."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, (n, 128)).astype(np.float32)
    queries = rng.integers(0, 256, (q, 128)).astype(np.float32)
    gaps = np.square(base[None].astype(float) - queries[:, None]).sum(2)
    truth = gaps.argmin(1)[:, None].astype(np.int32)
    truth[:wrong, 0] = gaps[:wrong].argmax(1)
    folder.mkdir(parents=True, exist_ok=True)
    write_h5(folder / "sift100K.h5", dataset=base, query=queries, match=truth)


def test_loaders(tmp_path, monkeypatch):
    monkeypatch.setenv("FAISS_BITS_DATA", str(tmp_path))
    small_fashion_mnist(tmp_path / "fashion-mnist")
    images = datasets.fashion_mnist()
    assert images.train.shape == (200, 784) and images.test.shape == (30, 784)
    assert images.train.dtype == np.float32 and images.train.max() > 100
    assert (images.train_labels[:12] == [*range(10), 0, 1]).all()
    small_sift(tmp_path)
    data = datasets.sift()
    assert data.base.shape == (300, 128) and data.truth.shape == (20, 1)


def test_loaders_say_how_to_get_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("FAISS_BITS_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setenv("FAISS_BITS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.sift()
    for words in ("sift100K.h5", "nowhere", "cache/datasets", "apt-get source"):
        assert words in str(caught.value)
    with pytest.raises(FileNotFoundError, match="dataset-fashion-mnist"):
        datasets.fashion_mnist(tmp_path)


def test_loaders_refuse_what_does_not_fit(tmp_path):
    small_sift(tmp_path)
    path = tmp_path / "sift100K.h5"
    for name, array, words in (
        ("query", np.zeros((20, 64), np.float32), "dimension 64"),
        ("match", np.zeros((19, 1), np.int32), "20 queries"),
    ):
        small_sift(tmp_path)
        with h5py.File(path, "a") as file:
            del file[name]
            file[name] = array
        with pytest.raises(ValueError, match=words):
            datasets.sift(path)
    small_fashion_mnist(tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.zeros(9, np.uint8), 8)
    with pytest.raises(ValueError, match="labels of shape"):
        datasets.fashion_mnist(tmp_path)
