"""torch tensors in and out, without a copy for tensors on the GPU.

torch is never imported here: whoever passes a tensor has imported it. Work is
ordered on torch's current stream of the tensor's device, as that of any torch
operator is, and nothing waits.
"""

import contextlib
import sys

import faiss


def is_tensor(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


#: dtype to its name: the text of a dtype takes longer than a look here.
_names = {}


def type_name(dtype):
    """A torch dtype's name without "torch.", or that of a numpy one."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype).rpartition(".")[2]
    return name


def is_ready(x, dtypes):
    """True for a matrix on a GPU that kernels take as it is: a contiguous tensor
    of one of the dtypes (by name). A look that most calls with tensors need no
    more of than this; what is wrong with others it does not say."""
    torch = sys.modules.get("torch")
    return (
        torch is not None
        and isinstance(x, torch.Tensor)
        and x.is_cuda
        and (_names.get(x.dtype) or type_name(x.dtype)) in dtypes
        and x.dim() == 2
        and x.is_contiguous()
    )


def has_tensor(args, kwargs):
    """True if an argument is a tensor."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    for x in args:
        if isinstance(x, torch.Tensor):
            return True
    for x in kwargs.values():
        if isinstance(x, torch.Tensor):
            return True
    return False


def current_stream(device):
    """The number of torch's current stream of a device, given by its number."""
    torch = sys.modules["torch"]
    # What torch's own compiler calls; the public way makes an object.
    number = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if number is not None:
        return number(device)
    return torch.cuda.current_stream(device).cuda_stream


def check_tensor(x, name, shape, dtypes, device=None):
    """Raises an exception that names the argument unless `x` is a contiguous
    tensor of that shape (None: any size), one of the dtypes (by name), and on
    that device (None: any)."""
    if not is_tensor(x):
        raise TypeError(
            f"{name} is a {type(x).__name__}; pass torch tensors only, or numpy "
            "arrays only"
        )
    kind = type_name(x.dtype)
    if kind not in dtypes:
        raise TypeError(f"{name} is {kind}, expected {' or '.join(dtypes)}")
    if not _fits(x.shape, shape):
        wanted = ", ".join("any" if s is None else str(s) for s in shape)
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}, expected ({wanted})"
        )
    if device is not None and x.device != device:
        raise ValueError(f"{name} is on {x.device}, expected {device}")
    if not x.is_contiguous():
        raise ValueError(f"{name} is not contiguous; pass {name}.contiguous()")


def _fits(shape, wanted):
    if len(shape) != len(wanted):
        return False
    for got, want in zip(shape, wanted):
        if want is not None and want != got:
            return False
    return True


def pointer(x):
    """The SWIG pointer of a checked tensor's first element."""
    cast = {
        "float32": faiss.cast_integer_to_float_ptr,
        "float16": faiss.cast_integer_to_void_ptr,
        "bfloat16": faiss.cast_integer_to_void_ptr,
        "int64": faiss.cast_integer_to_idx_t_ptr,
        "int32": faiss.cast_integer_to_int_ptr,
    }
    return cast[type_name(x.dtype)](x.data_ptr())


def device_of(index_or_number):
    """An index's device, or device number, as a torch.device."""
    number = index_or_number
    if not isinstance(number, int):
        if not hasattr(index_or_number, "getDevice"):
            return sys.modules["torch"].device("cpu")
        number = index_or_number.getDevice()
    return sys.modules["torch"].device("cuda", number)


@contextlib.contextmanager
def on_current_stream(resources, device):
    """Orders what the block enqueues through `resources` on torch's current
    stream of `device`; makes that the current device; puts both back after.

    FAISS makes a stream that comes after another wait for it, both on the way
    in and on the way back."""
    torch = sys.modules["torch"]
    if hasattr(resources, "getResources"):
        resources = resources.getResources()
    stream = torch.cuda.current_stream(device).cuda_stream
    before = resources.getDefaultStream(device.index)
    with torch.cuda.device(device):
        resources.setDefaultStream(
            device.index, faiss.cast_integer_to_cudastream_t(stream)
        )
        try:
            yield
        finally:
            resources.setDefaultStream(device.index, before)
