"""The methods of index classes for torch tensors; class_wrappers.py puts them
beside FAISS's own for numpy arrays."""

import contextlib

import faiss

from . import torch_interop
from .arrays import neighbours, output
from .compiled import swigfaiss_bits
from .torch_interop import (
    check_tensor,
    device_of,
    is_ready,
    is_tensor,
    pointer,
    type_name,
)


# None where FAISS has no GPU part.
_GpuIndex = getattr(faiss, "GpuIndex", ())


def _dtypes(numeric_type):
    """The dtype that goes with FAISS's numeric_type, where FAISS has one."""
    if numeric_type is None or numeric_type == getattr(faiss, "Float32", None):
        return ("float32",)
    if numeric_type == getattr(faiss, "Float16", object()):
        return ("float16",)
    raise ValueError(f"numeric_type = {numeric_type} is not Float32 or Float16")


def check_vectors(index, x, name="x", numeric_type=None):
    """Checks a matrix of vectors; returns its number of rows."""
    device = device_of(index) if is_tensor(x) and x.is_cuda else None
    check_tensor(x, name, (None, index.d), _dtypes(numeric_type), device)
    return x.shape[0]


def ordered(index, x, params=None):
    """Stream order for tensors on the GPU; FAISS waits by itself for others."""
    if x.is_cuda:
        # Of SearchParametersBitsFlat.
        resources = getattr(params, "resources", None) or index.getResources()
        return torch_interop.on_current_stream(resources, x.device)
    return contextlib.nullcontext()


def add(self, x, numeric_type=None):
    n = check_vectors(self, x, numeric_type=numeric_type)
    with ordered(self, x):
        if type_name(x.dtype) == "float16":
            self.add_ex(n, pointer(x), numeric_type)
        else:
            self.add_c(n, pointer(x))


def add_with_ids(self, x, ids):
    n = check_vectors(self, x)
    check_tensor(ids, "ids", (n,), ("int64",), x.device)
    with ordered(self, x):
        self.add_with_ids_c(n, pointer(x), pointer(ids))


def train(self, x, **kwargs):
    n = check_vectors(self, x, **kwargs)
    with ordered(self, x):
        self.train_c(n, pointer(x))


def search(self, x, k, *, params=None, D=None, I=None, numeric_type=None):
    # What is ready is compared with the index in C++.
    ready = numeric_type is None and is_ready(x, ("float32",))
    if not ready:
        check_vectors(self, x, numeric_type=numeric_type)
    k = neighbours(k)
    n, d = x.shape
    D = output(D, "D", x, (n, k), ("float32",))
    I = output(I, "I", x, (n, k), ("int64",))
    if not ready and type_name(x.dtype) == "float16":
        with ordered(self, x, params):
            self.search_ex(
                n, pointer(x), numeric_type, k, pointer(D), pointer(I), params
            )
    elif x.is_cuda and isinstance(self, _GpuIndex):
        device = x.get_device()
        fits = swigfaiss_bits.searchOnStream(
            self,
            device,
            torch_interop.current_stream(device),
            n,
            d,
            x.data_ptr(),
            k,
            D.data_ptr(),
            I.data_ptr(),
            params,
        )
        if not fits:
            check_vectors(self, x)  # which says why
    else:
        if ready:
            check_vectors(self, x)
        with ordered(self, x, params):
            self.search_c(n, pointer(x), k, pointer(D), pointer(I), params)
    return D, I


def assign(self, x, k, labels=None):
    n = check_vectors(self, x)
    k = neighbours(k)
    labels = output(labels, "labels", x, (n, k), ("int64",))
    with ordered(self, x):
        self.assign_c(n, pointer(x), pointer(labels), k)
    return labels


def search_and_reconstruct(
    self, x, k, *, params=None, D=None, I=None, R=None
):
    n = check_vectors(self, x)
    k = neighbours(k)
    D = output(D, "D", x, (n, k), ("float32",))
    I = output(I, "I", x, (n, k), ("int64",))
    R = output(R, "R", x, (n, k, self.d), ("float32",))
    with ordered(self, x, params):
        self.search_and_reconstruct_c(
            n, pointer(x), k, pointer(D), pointer(I), pointer(R), params
        )
    return D, I, R


def reconstruct(self, key, x=None):
    check_tensor(x, "x", (self.d,), ("float32",))
    with ordered(self, x):
        self.reconstruct_c(int(key), pointer(x))
    return x


def reconstruct_n(self, n0=0, ni=-1, x=None):
    if ni == -1:
        ni = self.ntotal - n0
    check_tensor(x, "x", (ni, self.d), ("float32",))
    with ordered(self, x):
        self.reconstruct_n_c(n0, ni, pointer(x))
    return x


def reconstruct_batch(self, key, x=None):
    check_tensor(key, "key", (None,), ("int64",))
    x = output(x, "x", key, (key.shape[0], self.d), ("float32",))
    with ordered(self, x):
        self.reconstruct_batch_c(key.shape[0], pointer(key), pointer(x))
    return x


TORCH_METHODS = {
    "add": add,
    "train": train,
    "search": search,
    "assign": assign,
    "search_and_reconstruct": search_and_reconstruct,
    "reconstruct": reconstruct,
    "reconstruct_n": reconstruct_n,
    "reconstruct_batch": reconstruct_batch,
}
