"""Checks of what index methods are given in numpy arrays, before FAISS's wrappers
take it: those only assert, or make whole numbers of what is none. Every error
names the argument and what it is."""

import faiss
import numpy as np

from .arrays import (
    MOST_INT64,
    check_numbers,
    int_number,
    neighbours,
    output,
    whole_number,
)

_LIKE = np.empty(0, np.float32)
_MOST_ID = MOST_INT64


def check_vectors_of(index, x):
    """Raises unless x is a matrix of numbers, a vector of the index a row."""
    if not hasattr(x, "shape"):
        raise TypeError(
            f"x is a {type(x).__name__}, expected a numpy array or torch tensor"
        )
    check_numbers(x, "x")
    shape = np.shape(x)
    if len(shape) != 2 or shape[1] != index.d:
        raise ValueError(f"x has shape {shape}, expected (any, {index.d})")


def check_search(index, x, k=1, params=None, D=None, I=None):
    """Of search and range_search; returns k as an int."""
    check_vectors_of(index, x)
    k = neighbours(k)
    for given, of, dtype in ((D, "D", "float32"), (I, "I", "int64")):
        if given is not None:
            output(given, of, _LIKE, (np.shape(x)[0], k), (dtype,))
    if params is not None and not isinstance(params, faiss.SearchParameters):
        raise TypeError(
            f"params is a {type(params).__name__}, expected a "
            "faiss.SearchParameters"
        )
    return k


def ids_array(ids, name, n=None):
    """Ids as int64, [n] (None: any number of them): any whole numbers that it has
    room for."""
    array = np.asarray(ids)
    if array.ndim != 1 and array.dtype.kind != "O":
        expected = "(any,)" if n is None else f"({n},)"
        raise ValueError(f"{name} has shape {array.shape}, expected {expected}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype.name}, expected whole numbers")
    if n is not None and array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n},)")
    return _as_int64(array, name)


def _as_int64(array, name):
    """An array of whole numbers, if int64 has room for them."""
    # As Python's int: numpy may compare uint64 with one as float64.
    if array.size and int(array.max()) > _MOST_ID:
        raise ValueError(f"{name} has {array.max()}, beyond int64")
    return np.ascontiguousarray(array, np.int64)


def lists_array(lists, name, shape):
    """Numbers of lists as int64, of this shape."""
    array = np.asarray(lists)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype.name}, expected whole numbers")
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, expected {shape}")
    return _as_int64(array, name)


def _vectors(index, x, *args, **kwargs):
    check_vectors_of(index, x)
    return (x, *args), kwargs


def _search(index, x, k, *args, params=None, D=None, I=None, **kwargs):
    k = check_search(index, x, k, params, D, I)
    # Given on where they were given: not every class has them.
    for name, value in (("params", params), ("D", D), ("I", I)):
        if value is not None:
            kwargs[name] = value
    R = kwargs.get("R")
    if R is not None:
        output(R, "R", _LIKE, (np.shape(x)[0], k, index.d), ("float32",))
    return (x, k, *args), kwargs


def _assign(index, x, k, labels=None, **kwargs):
    k = check_search(index, x, k)
    if labels is not None:
        output(labels, "labels", _LIKE, (np.shape(x)[0], k), ("int64",))
    return (x, k), {"labels": labels, **kwargs}


def _reconstruct(index, key, x=None):
    key = whole_number(key, "key")
    if not -_MOST_ID <= key <= _MOST_ID:
        raise ValueError(f"key = {key} is beyond int64")
    if x is not None:
        output(x, "x", _LIKE, (index.d,), ("float32",))
    return (key, x), {}


def _reconstruct_n(index, n0=0, ni=-1, x=None):
    n0 = int_number(n0, "n0", -_MOST_ID, _MOST_ID)
    ni = whole_number(ni, "ni", -1)
    # Those that FAISS makes an array of before the index sees them.
    if ni == -1:
        if not 0 <= n0 <= index.ntotal:
            raise ValueError(f"n0 = {n0} is outside 0..{index.ntotal}")
        ni = index.ntotal - n0
    if ni > index.ntotal:
        raise ValueError(f"ni = {ni} is more than the {index.ntotal} vectors")
    if x is not None:
        output(x, "x", _LIKE, (ni, index.d), ("float32",))
    return (n0, ni, x), {}


def _reconstruct_batch(index, key, x=None):
    key = ids_array(key, "key")
    if x is not None:
        output(x, "x", _LIKE, (len(key), index.d), ("float32",))
    return (key, x), {}


def _add_with_ids(index, x, ids, *args, **kwargs):
    check_vectors_of(index, x)
    return (x, ids_array(ids, "ids", np.shape(x)[0]), *args), kwargs


def _remove_ids(index, x):
    if not isinstance(x, faiss.IDSelector):
        x = ids_array(x, "ids")
    return (x,), {}


def _sa_encode(index, x, codes=None):
    check_vectors_of(index, x)
    if codes is not None:
        shape = np.shape(x)[0], index.sa_code_size()
        output(codes, "codes", _LIKE, shape, ("uint8",))
    return (x, codes), {}


def _check_codes(index, codes):
    if not hasattr(codes, "shape"):
        raise TypeError(
            f"codes is a {type(codes).__name__}, expected a numpy array or torch "
            "tensor"
        )
    if codes.dtype != np.uint8:
        raise TypeError(f"codes is {codes.dtype}, expected uint8")
    size = index.sa_code_size()
    if len(codes.shape) != 2 or codes.shape[1] != size:
        raise ValueError(
            f"codes has shape {codes.shape}, expected (any, {size})"
        )


def _sa_decode(index, codes, x=None):
    _check_codes(index, codes)
    if x is not None:
        output(x, "x", _LIKE, (len(codes), index.d), ("float32",))
    return (codes, x), {}


def _add_sa_codes(index, codes, ids=None):
    _check_codes(index, codes)
    if ids is not None:
        ids = ids_array(ids, "ids", len(codes))
    return (codes, ids), {}


_CHECKS = {
    "add": _vectors,
    "train": _vectors,
    "search": _search,
    "search_and_reconstruct": _search,
    "assign": _assign,
    "reconstruct": _reconstruct,
    "reconstruct_n": _reconstruct_n,
    "reconstruct_batch": _reconstruct_batch,
    "add_with_ids": _add_with_ids,
    "remove_ids": _remove_ids,
    "sa_encode": _sa_encode,
    "sa_decode": _sa_decode,
    "add_sa_codes": _add_sa_codes,
}


def checked(name, index, args, kwargs):
    """The arguments of a method, as FAISS's wrapper takes them."""
    check = _CHECKS.get(name)
    return (args, kwargs) if check is None else check(index, *args, **kwargs)
