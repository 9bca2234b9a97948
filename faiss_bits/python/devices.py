"""Which GPU a call runs on, on what resources, and what to say without one."""

import contextlib
import threading

import faiss

from . import _build_info, torch_interop
from .arrays import whole_number
from .compiled import swigfaiss_bits
from .torch_interop import is_tensor


_num_gpus = 0  # once there are some, that stays so


def get_num_gpus():
    """Number of GPUs that faiss_bits can use: 0 in a build of the CPU part
    alone, and 0 where there is no driver or no device. Never raises."""
    global _num_gpus
    if _num_gpus == 0 and _build_info.HAS_GPU:
        _num_gpus = swigfaiss_bits.get_num_gpus()
    return _num_gpus


def require_gpu(what):
    """Raises RuntimeError that says what is missing, unless there is a GPU."""
    if not _build_info.HAS_GPU:
        raise RuntimeError(
            f"{what} needs a GPU, but this build of faiss_bits holds the CPU "
            "part only. Build it with a CUDA compiler and a FAISS that has its "
            "GPU part (FAISS_BITS_GPU=ON)"
        )
    if get_num_gpus() == 0:
        raise RuntimeError(
            f"{what} needs a GPU, but none is usable here: "
            f"{swigfaiss_bits.gpu_problem()}"
        )


def is_provider(x):
    """True for what brings resources, as faiss.StandardGpuResources."""
    provider = getattr(faiss, "GpuResourcesProvider", None)
    return provider is not None and isinstance(x, provider)


class _SharedResources:
    """One StandardGpuResources for all calls that bring none, made when it is
    first needed, on CUDA's default stream. Resources serve one thread at a time,
    hence the lock."""

    def __init__(self):
        self._lock = threading.RLock()
        self._resources = None

    def __enter__(self):
        self._lock.acquire()
        if self._resources is None:
            try:
                resources = faiss.StandardGpuResources()
                # That of torch, unless it is told otherwise: calls on it need
                # no order between two streams, which takes 3 us.
                resources.setDefaultNullStreamAllDevices()
                self._resources = resources
            except BaseException:
                self._lock.release()
                raise
        return self._resources

    def __exit__(self, *_):
        self._lock.release()


_shared_resources = _SharedResources()


def resources_of(res):
    """A context with the caller's resources, or the shared ones, locked."""
    return _shared_resources if res is None else contextlib.nullcontext(res)


def place_of(tensor, device):
    """(device, stream) for the calls of TensorCalls.h: of a tensor on a GPU, and
    torch's current stream there, else the device and the resources' stream."""
    if is_tensor(tensor) and tensor.is_cuda:
        number = tensor.get_device()
        return number, torch_interop.current_stream(number)
    return device, swigfaiss_bits.kResourcesStream


@contextlib.contextmanager
def _current_device(device):
    """Makes `device` the calling thread's CUDA device inside the block."""
    before = swigfaiss_bits.current_device()
    swigfaiss_bits.set_current_device(device)
    try:
        yield
    finally:
        swigfaiss_bits.set_current_device(before)


def check_device(device):
    if not 0 <= whole_number(device, "device") < get_num_gpus():
        raise ValueError(
            f"device = {device} is outside 0..{get_num_gpus() - 1}"
        )


@contextlib.contextmanager
def placed(res, tensor, device):
    """Resources to use, with device and stream set for one call."""
    with resources_of(res) as resources:
        if tensor is not None and tensor.is_cuda:
            with torch_interop.on_current_stream(resources, tensor.device):
                yield resources
        elif device >= 0:
            with _current_device(device):
                yield resources
        else:
            yield resources
