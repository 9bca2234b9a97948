"""What knn and select_k make of tensors on a GPU before they call C++, with
stand-ins for torch, for a GPU and for the calls, so that it runs anywhere.
test_torch.py has the real ones."""

import ctypes
import sys
import types

import faiss
import numpy as np
import pytest

import faiss_bits
from faiss_bits import arrays, devices, functions, torch_methods

pytestmark = pytest.mark.skipif(
    not hasattr(faiss_bits, "GpuIndexBitsFlat"),
    reason="this build holds the CPU part only",
)


class Dtype:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


class Tensor:
    """As much of torch.Tensor as is asked of one, around a numpy array."""

    def __init__(self, array, device=0):
        self.array, self.number = array, device

    dtype = property(lambda self: DTYPES[self.array.dtype.name])
    shape = property(lambda self: self.array.shape)
    is_cuda = property(lambda self: self.number >= 0)
    device = property(lambda self: f"cuda:{self.number}" if self.is_cuda else "cpu")

    def get_device(self):
        return self.number

    def dim(self):
        return self.array.ndim

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def is_floating_point(self):
        return self.array.dtype.kind == "f"

    def contiguous(self):
        return self

    def is_complex(self):
        return False

    def t(self):
        return Tensor(self.array.T, self.number)

    def to(self, dtype):
        return Tensor(self.array.astype(dtype.name), self.number)

    def float(self):
        return self.to(DTYPES["float32"])

    def stride(self, axis=None):
        strides = [x // self.array.itemsize for x in self.array.strides]
        return strides if axis is None else strides[axis]

    def data_ptr(self):
        return self.array.__array_interface__["data"][0]

    def __getitem__(self, key):
        return Tensor(self.array[key], self.number)


DTYPES = {
    name: Dtype(name)
    for name in ("float16", "float32", "float64", "int32", "int64", "bool")
}


def empty(*shape, dtype, device):
    return Tensor(np.empty(shape, dtype.name), int(device.partition(":")[2]))


def promote_types(a, b):
    return DTYPES[np.promote_types(a.name, b.name).name]


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    module = types.SimpleNamespace(
        Tensor=Tensor,
        empty=empty,
        promote_types=promote_types,
        device=lambda kind, number: f"{kind}:{number}",
        _C=types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 77 + device),
        **DTYPES,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(devices, "get_num_gpus", lambda: 3)
    return module


@pytest.fixture
def calls(monkeypatch):
    """The arguments of each call of C++."""
    made = []
    for name in ("knnOnStream", "selectOnStream"):
        monkeypatch.setattr(
            faiss_bits.swigfaiss_bits, name, lambda *args: made.append(args)
        )
    return made


XQ = np.arange(12, dtype="f4").reshape(3, 4)
XB = np.arange(28, dtype="f4").reshape(7, 4)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("more", [{}, {"backend": "gpu"}, {"metric": "cosine"}])
def test_knn_of_what_is_ready(calls, monkeypatch, dtype, more):
    """As by the longer way, to the last argument; nothing is copied."""
    xq, xb = Tensor(XQ.astype(dtype), 1), Tensor(XB.astype(dtype), 1)
    D, I = Tensor(np.empty((3, 2), "f4"), 1), Tensor(np.empty((3, 2), "i8"), 1)
    assert arrays.are_ready(xq, xb, ("float16", "float32"))
    given = {"D": D, "I": I, "res": "any", **more}
    out = faiss_bits.knn(xq, xb, 2, **given)
    assert out[0] is D and out[1] is I
    monkeypatch.setattr(functions, "are_ready", lambda *args: False)
    faiss_bits.knn(xq, xb, 2, **given)
    assert calls[0] == calls[1] and len(calls) == 2
    assert calls[0][:12] == (
        "any", 1, 78, 3, 7, 4, 2, xq.data_ptr(), True, xb.data_ptr(), True, dtype == "f2"
    )
    assert calls[0][13:15] == (D.data_ptr(), I.data_ptr())


def test_knn_makes_its_results(calls):
    xq, xb = Tensor(XQ, 2), Tensor(XB, 2)
    D, I = faiss_bits.knn(xq, xb, 5, res="any")
    for out, name in ((D, "float32"), (I, "int64")):
        assert out.shape == (3, 5) and out.dtype.name == name
        assert out.device == "cuda:2"
    assert calls[0][13:16] == (D.data_ptr(), I.data_ptr(), True)


@pytest.mark.parametrize(
    "xq, xb, by_row, half",
    [
        (XQ, np.asfortranarray(XB), (True, False), False),
        (np.asfortranarray(XQ), XB, (False, True), False),
        (XQ.astype("f2"), XB, (True, True), False),
        (XQ.astype("i4"), XB, (True, True), False),
        (XQ.astype("f2"), np.asfortranarray(XB.astype("f2")), (True, False), True),
    ],
)
def test_knn_of_what_is_not(calls, xq, xb, by_row, half):
    xq, xb = Tensor(xq), Tensor(xb)
    assert not arrays.are_ready(xq, xb, ("float16", "float32"))
    faiss_bits.knn(xq, xb, 2, res="any")
    assert (calls[0][8], calls[0][10]) == by_row and calls[0][11] == half


@pytest.mark.parametrize(
    "xq, xb, error, words",
    [
        (Tensor(XQ), Tensor(XB, 1), ValueError, "xb is on cuda:1, xq on cuda:0"),
        (Tensor(XQ), Tensor(XB, -1), ValueError, "xb is on cpu, xq on cuda:0"),
        (Tensor(XQ), XB, TypeError, "xq and xb must both"),
        (Tensor(XQ[0]), Tensor(XB), ValueError, r"xq has shape \(4,\)"),
        (Tensor(XQ), Tensor(XB[None]), ValueError, r"xb has shape \(1, 7, 4\)"),
        (Tensor(XQ[:, ::2]), Tensor(XB), ValueError, "xq is not contiguous"),
        (Tensor(XQ[:, :2].copy()), Tensor(XB), ValueError, "xq has dimension 2, xb 4"),
        (Tensor(XQ.astype("?")), Tensor(XB), TypeError, "xq is bool"),
        (Tensor(XQ.astype("f8")), Tensor(XB.astype("f8")), TypeError,
         "xq is float64.*xq on cuda:0"),
    ],
)
def test_errors_of_knn(calls, xq, xb, error, words):
    with pytest.raises(error, match=words):
        faiss_bits.knn(xq, xb, 2, res="any")
    assert not calls


def test_norms_of_another_type(monkeypatch):
    norms = np.square(XB).sum(1).astype("f8")
    seen = []

    def call(*args):
        data = (ctypes.c_float * 7).from_address(args[12])
        seen.append(np.array(data))

    monkeypatch.setattr(faiss_bits.swigfaiss_bits, "knnOnStream", call)
    faiss_bits.knn(Tensor(XQ), Tensor(XB), 2, res="any", vectorNorms=Tensor(norms))
    assert (seen[0] == norms).all()


@pytest.mark.parametrize("dtype, number", [("f4", "float32"), ("f2", "float16")])
def test_select_k(calls, dtype, number):
    keys = Tensor(XB.astype(dtype), 1)
    out, ids = faiss_bits.select_k(keys, 2, res="any", largest=True)
    assert out.shape == ids.shape == (7, 2) and out.dtype.name == number
    types_of = functions.KEY_TYPES
    assert calls[0][:7] == ("any", 1, 78, 7, 4, 2, True)
    assert calls[0][9:12] == (types_of[number], keys.data_ptr(), 4)
    assert calls[0][15:] == (out.data_ptr(), ids.data_ptr())
    slice = keys[:, 1:3]
    faiss_bits.select_k(slice, 2, res="any", ids=Tensor(XB.astype("i8"), 1)[:, :2])
    assert calls[1][3:5] == (7, 2)
    assert calls[1][10:12] == (slice.data_ptr(), 4) and calls[1][14] == 4


@pytest.mark.parametrize(
    "keys, error, words",
    [
        (XB[0], ValueError, r"keys has shape \(4,\)"),
        (XB.astype("i4"), TypeError, "keys is int32"),
        (XB[:, ::2], ValueError, "keys has strides"),
        (np.asfortranarray(XB), ValueError, "keys has strides"),
    ],
)
def test_errors_of_select_k(calls, keys, error, words):
    with pytest.raises(error, match=words):
        faiss_bits.select_k(Tensor(keys), 1, res="any")
    assert not calls


class Index(getattr(faiss, "GpuIndex", object)):
    """As much of an index as a search asks before C++."""

    d = 4

    def __init__(self):
        pass

    def getDevice(self):
        return 1


def test_search(monkeypatch):
    made = []

    def call(*args):
        made.append(args)
        return True

    monkeypatch.setattr(faiss_bits.swigfaiss_bits, "searchOnStream", call)
    index, x = Index(), Tensor(XQ, 1)
    D, I = torch_methods.search(index, x, 2, params="any")
    for out, name in ((D, "float32"), (I, "int64")):
        assert out.shape == (3, 2) and out.dtype.name == name
        assert out.device == "cuda:1"
    wanted = (index, 1, 78, 3, 4, x.data_ptr(), 2, D.data_ptr(), I.data_ptr(), "any")
    assert made == [wanted]
    assert torch_methods.search(index, x, 2, params="any", D=D, I=I) == (D, I)
    assert made == [wanted, wanted]


@pytest.mark.parametrize(
    "x, more, error, words",
    [
        (Tensor(XQ, 0), {}, ValueError, "x is on cuda:0, expected cuda:1"),
        (Tensor(XQ[:, :3].copy(), 1), {}, ValueError,
         r"x has shape \(3, 3\), expected \(any, 4\)"),
        (Tensor(XQ[0], 1), {}, ValueError, r"x has shape \(4,\)"),
        (Tensor(XQ.astype("f8"), 1), {}, TypeError, "x is float64"),
        (Tensor(np.asfortranarray(XQ), 1), {}, ValueError, "x is not contiguous"),
        (Tensor(XQ, 1), {"k": 0}, ValueError, "k = 0 is less than 1"),
        (Tensor(XQ, 1), {"k": 2.5}, TypeError, "k = 2.5 is not a whole number"),
        (Tensor(XQ, 1), {"D": Tensor(np.empty((3, 2), "f4"), 0)}, ValueError,
         "D is on cuda:0, expected cuda:1"),
        (Tensor(XQ, 1), {"I": Tensor(np.empty((3, 2), "i4"), 1)}, TypeError,
         "I is int32, expected int64"),
        (Tensor(XQ, 1), {"I": Tensor(np.empty((3, 3), "i8"), 1)}, ValueError,
         r"I has shape \(3, 3\)"),
    ],
)
def test_errors_of_search(monkeypatch, x, more, error, words):
    """What C++ refuses, and what does not get there."""

    def call(index, device, stream, n, d, *rest):
        return device == index.getDevice() and d == index.d

    monkeypatch.setattr(faiss_bits.swigfaiss_bits, "searchOnStream", call)
    with pytest.raises(error, match=words):
        torch_methods.search(Index(), x, **{"k": 2, **more})
