#!/usr/bin/env python3
"""Writes vectors as .fvecs or .bvecs, for bench_select --sift.

    benchs/export_vectors.py sift100K.h5 sift.bvecs

Reads any file that contrib/datasets.py reads; of a collection in HDF5 the
queries come after the vectors. .bvecs wants whole numbers from 0 to 255.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contrib import datasets  # noqa: E402

from program import end_with


def vectors_of(path):
    """All vectors of a file, [n, d] float32."""
    vectors = datasets.as_float32(datasets.read_vectors(path), path)
    if Path(path).suffix in (".h5", ".hdf5"):
        queries = datasets.read_h5(path, names=datasets.H5_QUERY_NAMES)
        vectors = np.concatenate([vectors, datasets.as_float32(queries, path)])
    return vectors


def write(vectors, path):
    """Writes [n, d] numbers; ValueError for what the file cannot hold."""
    kind = {".fvecs": np.float32, ".bvecs": np.uint8}.get(Path(path).suffix)
    if kind is None:
        raise ValueError(f"{path}: neither .fvecs nor .bvecs")
    values = np.ascontiguousarray(vectors).astype(kind)
    if not np.array_equal(values, vectors):
        raise ValueError(f"{path}: the numbers do not fit {values.dtype}")
    n, d = values.shape
    sizes = np.full((n, 1), d, "<i4").view(np.uint8)
    records = np.hstack([sizes, values.view(np.uint8).reshape(n, -1)])
    records.tofile(path)


def main(arguments):
    """Returns the exit status."""
    if len(arguments) != 2:
        print(__doc__)
        return 2
    vectors = vectors_of(arguments[0])
    write(vectors, arguments[1])
    print(f"{arguments[1]}: {vectors.shape[0]} vectors of {vectors.shape[1]}")
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
