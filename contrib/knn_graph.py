"""The exact k-NN graph of a collection: the k nearest others of every vector.

The collection is searched with itself in blocks, as Johnson et al. 2017 build
their graphs (section 6.5), but exactly: by the GPU if there is one, else by the
CPU kernels.

    D, I = knn_graph(x, k=10)                   # arrays, or tensors of the GPU
    graph = knn_graph(x, k=10, path="g.npy")    # a file; more than memory holds
    graph["id"], graph["distance"]              # [n, k] each

As a program, for vectors in a .npy file, which stays on disk, or in a .fvecs,
.bvecs or .h5 file:

    python -m faiss_bits.contrib.knn_graph vectors.npy --k 10 --out graph.npy
"""

import argparse
import os
import sys
from pathlib import Path

import faiss
import numpy as np

import faiss_bits
from faiss_bits import best_flat_index
from faiss_bits.arrays import check_numbers, neighbours, whole_number
from faiss_bits.backends import choose
from faiss_bits.compiled import swigfaiss_bits
from faiss_bits.contrib import datasets
from faiss_bits.contrib.programs import check_output, status_of
from faiss_bits.contrib.progress import bar
from faiss_bits.devices import check_device
from faiss_bits.torch_interop import is_tensor

__all__ = ["knn_graph", "new_graph", "open_graph", "without_self"]


def knn_graph(
    x, k, path=None, metric=faiss.METRIC_L2, block=16384, device=-1,
    progress=True,
):
    """The k nearest vectors of every vector, itself left out, exactly.

    Parameters
    ----------
    x : array_like or torch.Tensor
        The vectors, shape (n, d): float32 in memory, a memory map among them,
        or a float32 tensor on a GPU, which is then where all is computed
    k : int
        Neighbours of a vector, 1 or more
    path : str or path, optional
        File to write, see open_graph(); replaced if it exists, but not if x is
        a map of it. Only `block` rows of the graph are in memory at a time then.
        Not for tensors
    metric : MetricType, optional
        One that GpuIndexBitsFlat has, or without a GPU IndexFusedFlat
    block : int, optional
        Vectors that are searched for at a time, 1 or more; it decides how often
        progress is shown and Ctrl-C is heard, never the result
    device : int, optional
        Number of the GPU, which is then the one that runs; -1: the thread's
        current one, or the tensor's, and without a GPU the CPU
    progress : bool, optional
        Shows a bar (with tqdm)

    Returns
    -------
    D, I : numpy.ndarray or torch.Tensor
        Shape (n, k), float32 and int64, nearest first, equal ones by their ids:
        the distances and the neighbours. Where there are fewer than k others
        the rest is as FAISS has it: id -1. With `path` the memory map of
        open_graph() instead

    Notes
    -----
    Memory: the vectors, on the GPU too, with their copy of 16 bits. Cost: an
    exact search of n queries (docs/exact.md). An interrupted call leaves the
    rows of the file that it had not reached as -1.
    """
    k, block = neighbours(k), whole_number(block, "block", 1)
    device = whole_number(device, "device", -1)
    on_device = is_tensor(x)
    if on_device:
        if path is not None:
            raise ValueError(f"path = {path!r}, but x is a tensor")
        if not x.is_cuda:
            raise ValueError(f"x is on {x.device}, expected a GPU, or an array")
        if device not in (-1, x.device.index):
            raise ValueError(f"device = {device}, but x is on {x.device}")
        device = x.device.index
    else:
        x = np.asanyarray(x)
        check_numbers(x, "x")
        _check_path(path, x)
    if len(x.shape) != 2 or x.shape[1] < 1:
        raise ValueError(f"x has shape {tuple(x.shape)}, expected (n, d)")
    index = _index_of(x, metric, device, block)
    if path is None:
        outputs = _outputs(x, k, on_device)
        _fill(index, x, k, block, outputs, progress)
        return outputs
    graph = new_graph(path, len(x), k)
    _fill(index, x, k, block, (graph["distance"], graph["id"]), progress)
    graph.flush()
    return open_graph(path)


def new_graph(path, n, k):
    """A file for a graph of n vectors with k neighbours each, as a memory map
    like that of open_graph(), to be written: all ids are -1."""
    row = np.dtype([("id", np.int64, (k,)), ("distance", np.float32, (k,))])
    graph = np.lib.format.open_memmap(path, "w+", dtype=row, shape=(n,))
    graph["id"] = -1
    return graph


def open_graph(path):
    """The graph in a file, as a memory map: shape (n,), with the fields `id`
    (int64) and `distance` (float32), each of shape (n, k). The file is one of
    NumPy's (.npy)."""
    return np.load(path, mmap_mode="r")


# ---- its steps --------------------------------------------------------------


def _check_path(path, x):
    """Writing the graph must not destroy the vectors."""
    mapped = getattr(x, "filename", None)
    if path is None or mapped is None or not os.path.exists(path):
        return
    if os.path.samefile(path, mapped):
        raise ValueError(f"path = {os.fspath(path)!r}, which is the file of x")


def _index_of(x, metric, device, block):
    """An index of ours with the vectors."""
    d = int(x.shape[1])
    asks = f"device = {device}" if device >= 0 else None
    if choose("auto", asks, None) == "gpu":
        if asks:
            check_device(device)
        config = faiss_bits.GpuIndexBitsFlatConfig()
        config.device = device if asks else swigfaiss_bits.current_device()
        resources = faiss.StandardGpuResources()
        index = faiss_bits.GpuIndexBitsFlat(resources, d, metric, config)
        index.reserve(len(x))
    else:
        index = best_flat_index(d, metric)
    # Of a memory map, only so much is in memory at a time.
    for begin in range(0, len(x), max(block, 1 << 16)):
        index.add(_rows(x, begin, begin + max(block, 1 << 16)))
    return index


def _rows(x, begin, end):
    part = x[begin:end]
    if isinstance(part, np.ndarray):
        part = np.ascontiguousarray(part, np.float32)
    return part


def _outputs(x, k, on_device):
    """(distances, ids), [n, k] each: tensors or arrays."""
    n = len(x)
    if on_device:
        import torch

        return (
            torch.empty((n, k), dtype=torch.float32, device=x.device),
            torch.empty((n, k), dtype=torch.int64, device=x.device),
        )
    return np.empty((n, k), np.float32), np.empty((n, k), np.int64)


def _fill(index, x, k, block, outputs, progress):
    n = len(x)
    shown = bar("knn_graph", n, "vector", progress)
    try:
        for begin in range(0, n, block):
            end = min(begin + block, n)
            D, I = index.search(_rows(x, begin, end), k + 1)
            for out, found in zip(outputs, without_self(D, I, begin)):
                out[begin:end] = found
            shown.update(end - begin)
    finally:
        shown.close()


def without_self(D, I, first):
    """Rows [q, k + 1] of the vectors first, first + 1, ... without those
    vectors themselves, [q, k]: where as many others are as near, and come
    first, the last place goes. Arrays or tensors."""
    if isinstance(I, np.ndarray):
        own = np.arange(first, first + len(I))[:, None]
        behind = np.cumsum(I == own, axis=1)[:, :-1] > 0
        return tuple(np.where(behind, a[:, 1:], a[:, :-1]) for a in (D, I))
    import torch

    own = torch.arange(first, first + len(I), device=I.device)[:, None]
    behind = torch.cumsum(I == own, dim=1)[:, :-1] > 0
    return tuple(torch.where(behind, a[:, 1:], a[:, :-1]) for a in (D, I))


# ---- the program ------------------------------------------------------------


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="knn_graph",
        description=__doc__.partition("\n")[0],
    )
    add = parser.add_argument
    add("vectors", help="file of the vectors: .npy, .fvecs, .bvecs or .h5")
    add("--k", type=int, default=10, help="neighbours (default: 10)")
    add("--out", required=True, help="the .npy file to write")
    add("--metric", choices=("l2", "ip"), default="l2",
        help="squared L2 (default) or inner product")
    add("--block", type=int, default=16384,
        help="vectors searched for at a time (default: 16384)")
    add("--device", type=int, default=-1,
        help="number of the GPU (default: the current one, and without one the "
             "CPU)")
    args = parser.parse_args(arguments)
    return status_of(
        lambda: _run(args), f"stopped; {args.out} is not whole"
    )


def _run(args):
    metric = (
        faiss.METRIC_L2 if args.metric == "l2" else faiss.METRIC_INNER_PRODUCT
    )
    check_output("--out", args.out, args.vectors)
    graph = knn_graph(
        _read(args.vectors), args.k, args.out, metric, args.block, args.device,
        progress=sys.stderr.isatty(),
    )
    print(f"{args.out}: {len(graph)} vectors, {args.k} neighbours each")
    return 0


def _read(path):
    """The vectors of a file; those of a .npy file are not read before they are
    searched."""
    if Path(path).suffix.lower() == ".npy":
        return datasets.map_npy(path)
    return datasets.as_float32(datasets.read_vectors(path), path)


if __name__ == "__main__":
    sys.exit(main())
