"""What Kmeans takes: FAISS's clustering does not survive all of it."""

import numpy as np

from .arrays import float32_array, whole_number
from .torch_interop import check_tensor, is_tensor


def checked_gpu(gpu):
    """None, False, or what asks for one GPU."""
    if gpu is None or isinstance(gpu, (bool, np.bool_)):
        return None if gpu is None else bool(gpu)
    number = whole_number(gpu, "gpu", -1)
    if number > 1:
        raise ValueError(f"gpu = {number}: clustering runs on one GPU")
    return False if number == 0 else number


def vectors(x, name, d):
    """A matrix of d columns: a checked tensor, or numpy float32 by row."""
    return checked(x, name, (None, d))


def checked(x, name, shape):
    if is_tensor(x):
        check_tensor(x, name, shape, ("float32",))
        return x.detach()
    x = float32_array(x, name)
    if x.ndim != len(shape) or any(
        want is not None and want != got for want, got in zip(shape, x.shape)
    ):
        wanted = ", ".join("any" if s is None else str(s) for s in shape)
        raise ValueError(f"{name} has shape {x.shape}, expected ({wanted})")
    return x


def check_weights(weights):
    """Of numpy or torch. NaN and infinities are named as those of vectors."""
    if not bool((abs(weights) < float("inf")).all()):
        raise RuntimeError("weights has NaN or infinities")
    if bool((weights < 0).any()):
        raise ValueError(f"weights has {float(weights.min())}, below 0")
    if len(weights) and not bool((weights > 0).any()):
        raise ValueError("weights is 0 for every vector")


def enough_weights(weights, k):
    """Weights for FAISS, which looks for a cluster that weighs more than 1 in
    place of an empty one, for ever if there is none. Times a power of two, which
    changes no centroid, where they are that light."""
    if weights is None:
        return None
    total = float(np.sum(weights, dtype=np.float64))
    if total > 2 * k:
        return weights
    return np.ldexp(weights, int(np.ceil(np.log2(len(weights) / total))))


def check_sizes(x, weights, needs_squares):
    """FAISS adds up clusters in float32, and does not survive a vector that is
    nearest to no centroid since the sums are infinite."""
    if not x.size:
        return
    greatest = float(np.abs(x).max())
    if not np.isfinite(greatest):
        raise RuntimeError("x has NaN or infinities")
    total = len(x) if weights is None else max(len(x), float(np.sum(weights, dtype="f8")))
    most = float(np.finfo(np.float32).max) / (2 * total)
    if needs_squares:
        most = min(most, (float(np.finfo(np.float32).max) / (4 * x.shape[1])) ** 0.5)
    if greatest > most:
        raise RuntimeError(
            f"x has a component of size {greatest:.3g}: more than {most:.3g} "
            "overflows float32 on the CPU"
        )
