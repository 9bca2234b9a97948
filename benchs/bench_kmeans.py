#!/usr/bin/env python3
"""k-means on one GPU: faiss_bits.Kmeans and faiss.Kmeans, same vectors and seed.

    benchs/bench_kmeans.py --out benchs/results/h200/kmeans.json

Methods: `faiss_bits`, and `faiss`, faiss.Kmeans with gpu=True. `input` is what
train() gets: `numpy`, or `torch`, a tensor on the GPU, of which FAISS gets a
numpy copy whose making is timed too. Times are the least of some runs from
vectors to centroids; `search_ms` is the part that train() says the assignment
took. Both start at the same centroids, so their objectives are to agree.
"""

import argparse
import datetime
import os
import sys
import time

import faiss
import numpy as np

import faiss_bits
from program import end_with
from result_file import save

try:
    import torch
except ImportError:  # rows with numpy vectors alone
    torch = None


def vectors(kind, n, d):
    rng = np.random.default_rng(d)
    if kind == "uniform":
        return rng.random((n, d), np.float32)
    centers = 2 * rng.random((1000, d), np.float32)
    x = rng.standard_normal((n, d), np.float32)
    x += centers[rng.integers(0, 1000, n)]
    return x


def run_once(the_class, x, k, niter):
    """(seconds, what was trained)."""
    begin = time.perf_counter()
    if the_class is faiss.Kmeans and not isinstance(x, np.ndarray):
        x = x.cpu().numpy()
    kmeans = the_class(x.shape[1], k, niter=niter, gpu=True)
    kmeans.train(x)
    return time.perf_counter() - begin, kmeans


def row_of(method, name, data, x, k, niter, runs):
    the_class = faiss_bits.Kmeans if method == "faiss_bits" else faiss.Kmeans
    timed = [run_once(the_class, x, k, niter) for _ in range(runs)]
    least, kmeans = min(timed, key=lambda pair: pair[0])
    return {
        "bench": "kmeans", "method": method, "n": x.shape[0], "d": x.shape[1],
        "k": k, "niter": niter, "input": name, "data": data,
        "ms": float(f"{1e3 * least:.5g}"),
        "search_ms": float(
            f"{1e3 * kmeans.iteration_stats[-1]['time_search']:.5g}"),
        "objective": float(kmeans.obj[-1]),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--out", required=True, help="JSON file to write")
    add("--n", type=int, default=1 << 20, help="vectors (default: 2^20)")
    add("--ds", type=int, nargs="+", default=[128])
    add("--ks", type=int, nargs="+", default=[4096])
    add("--niter", type=int, default=10)
    add("--data", nargs="+", default=["uniform", "clustered"],
        choices=["uniform", "clustered"])
    add("--runs", type=int, default=3)
    add("--methods", nargs="+", default=["faiss_bits", "faiss"],
        choices=["faiss_bits", "faiss"])
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    if faiss_bits.get_num_gpus() == 0:
        sys.exit("no GPU: this bench measures faiss_bits.Kmeans on one")
    result = {
        "meta": {
            "gpu": torch.cuda.get_device_name(0) if torch else "unknown",
            "faiss": faiss.__version__,
            "torch": torch.__version__ if torch else None,
            "commit": options.commit,
            "date": datetime.date.today().isoformat(),
        },
        "rows": [],
    }
    for data in options.data:
        for d in options.ds:
            x = vectors(data, options.n, d)
            inputs = {"numpy": x}
            if torch and torch.cuda.is_available():
                inputs["torch"] = torch.from_numpy(x).cuda()
            for k in options.ks:
                for name, given in inputs.items():
                    for method in options.methods:
                        run_once(faiss_bits.Kmeans if method == "faiss_bits"
                                 else faiss.Kmeans, given, k, 1)  # warm-up
                        row = row_of(method, name, data, given, k,
                                     options.niter, options.runs)
                        result["rows"].append(row)
                        print(row, flush=True)
                        save(options.out, result)


if __name__ == "__main__":
    end_with(main)
