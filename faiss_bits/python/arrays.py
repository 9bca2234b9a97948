"""Checks of array arguments, numpy or torch; every error names the argument."""

import operator
import sys

import faiss
import numpy as np

from . import torch_interop
from .torch_interop import check_tensor, is_ready, is_tensor, type_name


def as_matrix(x, name, dtypes):
    """A numpy array or tensor as a matrix: (array, row_major). Matrices that
    are stored by column are given to FAISS as their transpose."""
    of_torch = is_tensor(x)
    if not of_torch:
        x = np.asarray(x)
    if len(x.shape) != 2:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, expected two sizes")
    if of_torch:
        by_column = not x.is_contiguous() and x.t().is_contiguous()
        check_tensor(x.t() if by_column else x, name, (None, None), dtypes)
        return (x.t(), False) if by_column else (x, True)
    if x.dtype.name not in dtypes:
        raise TypeError(
            f"{name} is {x.dtype.name}, expected {' or '.join(dtypes)}"
        )
    x = x.astype(x.dtype.newbyteorder("="), copy=False)
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return x.T, False
    return np.ascontiguousarray(x), True


def dimension_of_both(xq, xb):
    """Of two matrices, of as many columns, of which there are some."""
    d, d2 = xq.shape[1], xb.shape[1]
    if d != d2:
        raise ValueError(f"xq has dimension {d}, xb {d2}")
    check_columns(xq, "xq")
    return d


def check_columns(x, name):
    """Raises for a matrix of vectors without a dimension."""
    if x.shape[1] < 1:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, expected at least one column"
        )


def are_ready(a, b, dtypes):
    """True for two matrices of one type on one GPU that kernels take as they
    are, as is_ready() says."""
    return (
        is_ready(a, dtypes)
        and is_ready(b, dtypes)
        and a.dtype is b.dtype
        and a.get_device() == b.get_device()
    )


def as_rows(x, name, dtypes):
    """A matrix of adjacent elements in each row: (matrix, elements from row to
    row). A tensor on a GPU stays where it is; others may be copied."""
    if not is_tensor(x):
        matrix, by_row = as_matrix(x, name, dtypes)
        matrix = matrix if by_row else np.ascontiguousarray(matrix.T)
        return matrix, matrix.shape[1]
    if not x.is_cuda:
        x = x.contiguous()
    if x.is_contiguous():
        if x.dim() != 2 or type_name(x.dtype) not in dtypes:
            check_tensor(x, name, (None, None), dtypes)  # which says so
        return x, x.shape[1]
    if len(x.shape) == 2 and x.stride(1) == 1 and x.stride(0) >= x.shape[1]:
        check_tensor(x[:1], name, (None, None), dtypes)
        return x, x.stride(0)
    raise ValueError(
        f"{name} has strides {tuple(x.stride())}, expected rows of adjacent "
        f"elements; pass {name}.contiguous()"
    )


TENSOR_KEY_TYPES = ("float32", "float16", "bfloat16")


def key_types(keys):
    """Types of keys that select_k takes. numpy has no bfloat16 of its own, and
    the types that other packages add to it are not those of FAISS's pointers."""
    if is_tensor(keys):
        return TENSOR_KEY_TYPES
    if getattr(getattr(keys, "dtype", None), "name", "") == "bfloat16":
        raise TypeError(
            "keys is a numpy array of bfloat16, which is taken as a torch "
            "tensor only; pass a tensor, or keys.astype(numpy.float32)"
        )
    return ("float32", "float16")


def address(x):
    """Of the first element of a checked array."""
    if type(x) is np.ndarray:
        return x.__array_interface__["data"][0]
    return x.data_ptr()


def in_one_type(a, b):
    """Two arrays, or two tensors, in one floating-point type: the wider one, so
    that no number changes. Whole numbers become float32, as in FAISS. What is
    none of these, and what needs no copy, comes back as it is."""
    if is_tensor(a):
        if a.dtype == b.dtype and a.is_floating_point():
            return a, b
        a, b = _tensor_of_floats(a), _tensor_of_floats(b)
        if a.dtype != b.dtype and a.is_floating_point() and b.is_floating_point():
            wide = sys.modules["torch"].promote_types(a.dtype, b.dtype)
            a, b = a.to(wide), b.to(wide)
        return a, b
    a, b = (
        x.astype(np.float32) if x.dtype.kind in "iu" else x
        for x in map(np.asarray, (a, b))
    )
    if a.dtype != b.dtype and a.dtype.kind == b.dtype.kind == "f":
        wide = np.result_type(a, b)
        a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    return a, b


def _tensor_of_floats(x):
    if x.is_floating_point() or x.is_complex() or str(x.dtype) == "torch.bool":
        return x
    return x.float()


def as_floats(x, name, size):
    """A numpy array, list or tensor of numbers as float32, [size], as FAISS takes
    its inputs: other types are converted."""
    of_torch = is_tensor(x)
    if not of_torch:
        x = np.asarray(x)
    kind = type_name(x.dtype) if of_torch else x.dtype.name
    if not kind.startswith(("float", "bfloat", "int", "uint")):
        raise TypeError(f"{name} is {kind}, expected numbers")
    if tuple(x.shape) != (size,):
        raise ValueError(f"{name} has shape {tuple(x.shape)}, expected ({size},)")
    return x.float().contiguous() if of_torch else np.ascontiguousarray(x, "f4")


def output(x, name, like, shape, dtypes):
    """The caller's checked output array, or a new one like the input."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        if x is None:
            dtype = getattr(torch, dtypes[0])
            # By position: torch takes twice as long to read a tuple.
            return torch.empty(*shape, dtype=dtype, device=like.device)
        if not (
            is_ready(x, dtypes)
            and x.shape == shape
            and x.get_device() == like.get_device()
        ):
            check_tensor(x, name, shape, dtypes, like.device)
        return x
    if x is None:
        return np.empty(shape, dtypes[0])
    if not isinstance(x, np.ndarray) or x.dtype.name not in dtypes:
        kind = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"{name} is {kind}, expected {' or '.join(dtypes)}")
    if not x.dtype.isnative:
        raise TypeError(
            f"{name} is {x.dtype.str}, not of this machine's byte order"
        )
    if x.shape != shape:
        raise ValueError(f"{name} has shape {x.shape}, expected {shape}")
    if not x.flags.c_contiguous:
        raise ValueError(f"{name} is not C-contiguous")
    if not x.flags.writeable:
        raise ValueError(f"{name} is read-only, and results are written to it")
    return x


def pointer(x):
    """The SWIG pointer of the first element of a checked array."""
    return torch_interop.pointer(x) if is_tensor(x) else faiss.swig_ptr(x)


def id_list(ids, name, rows):
    """(ids, count): a checked list of rows of a matrix as int64, [count], or
    (None, rows) for all of them."""
    if ids is None:
        return None, rows
    array = ids.cpu().numpy() if is_tensor(ids) else np.asarray(ids)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one size")
    if array.size == 0:
        return np.empty(0, np.int64), 0
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} is {array.dtype.name}, expected whole numbers")
    for row in (array.min(), array.max()):
        if not 0 <= row < rows:
            raise ValueError(f"{name} has {row}, outside 0..{rows - 1}")
    return np.ascontiguousarray(array, np.int64), len(array)


def check_same_kind(first, first_name, *others):
    """Raises unless all are numpy arrays, or all tensors on one device."""
    of_torch = is_tensor(first)
    for x, name in others:
        if x is None:
            continue
        if is_tensor(x) != of_torch:
            raise TypeError(
                f"{first_name} and {name} must both be numpy arrays or both be "
                "torch tensors"
            )
        if of_torch and x.device != first.device:
            raise ValueError(
                f"{name} is on {x.device}, {first_name} on {first.device}"
            )


def whole_number(value, name, least=None):
    """`value` as an int, if it is one and not less than `least`."""
    if type(value) is int and (least is None or value >= least):
        return value
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r} is not a whole number") from None
    if least is not None and number < least:
        raise ValueError(f"{name} = {number} is less than {least}")
    return number


def real_number(value, name):
    """`value` as a float, NaN too; text is none, whatever it says."""
    try:
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            return float(value)
    except (TypeError, ValueError):
        pass
    except OverflowError:
        # Its digits may be more than Python turns into text.
        raise ValueError(f"{name} is a whole number beyond float64") from None
    raise TypeError(f"{name} = {value!r} is not a number")


_MOST_FLOAT32 = float(np.finfo(np.float32).max)


def float32_number(value, name):
    """`value` as a float that float32 has room for: infinity and NaN too, but
    none between its greatest number and infinity."""
    value = real_number(value, name)
    if _MOST_FLOAT32 < abs(value) < float("inf"):
        raise ValueError(
            f"{name} = {value} is beyond float32, whose greatest number is "
            f"{_MOST_FLOAT32}"
        )
    return value


def check_numbers(x, name):
    """Raises for a numpy array of what float32 would lose the sense of: complex
    numbers, texts, dates."""
    dtype = getattr(x, "dtype", None)
    if getattr(dtype, "kind", "f") not in "fiubO":
        raise TypeError(f"{name} is {dtype}, expected real numbers")


def float32_array(x, name):
    """x as numpy float32, C-contiguous, as FAISS makes it."""
    if x is None:  # NumPy makes NaN of it
        raise TypeError(f"{name} is None, expected an array of numbers")
    try:
        x = np.asarray(x)
        check_numbers(x, name)
        return np.asarray(x, np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is no array of numbers: {error}") from None


LEAST_INT, MOST_INT = -(2**31), 2**31 - 1
MOST_INT64 = 2**63 - 1


def int_number(value, name, least, most=MOST_INT):
    """`value` as an int of `least` to `most`, those that C++ has room for."""
    number = whole_number(value, name, least)
    if number > most:
        raise ValueError(f"{name} = {number} is more than {most}")
    return number


def int64_number(value, name, least):
    """The same as an int64."""
    return int_number(value, name, least, MOST_INT64)


def neighbours(k):
    """k as an int; ValueError where the library could not take it, before
    results of that size are allocated."""
    return int_number(k, "k", 1)
