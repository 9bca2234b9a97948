#!/usr/bin/env python3
"""The exact k-NN graph of random vectors, in and out on the GPU.

    benchs/bench_knn_graph.py --out benchs/results/h200/knn_graph.json

Methods: `faiss_bits`, contrib/knn_graph.py with the vectors in a torch tensor,
the making of its index included; `faiss_flat`, GpuIndexFlatL2 searched with
blocks of its own vectors, k + 1 neighbours each, which have yet to be rid of
the vectors themselves. Times are the least of some runs.
"""

import argparse
import datetime
import os
import sys
import time

import faiss

try:
    import faiss.contrib.torch_utils  # noqa: F401 (search() of tensors)
    import torch
except ModuleNotFoundError:
    torch = None  # main() tells, after --help

import faiss_bits
from faiss_bits.contrib.knn_graph import knn_graph
from program import end_with
from result_file import save

FAISS_BLOCK = 16384


def seconds(run):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def of_faiss(x, k, resources):
    index = faiss.GpuIndexFlatL2(resources, x.shape[1])
    index.add(x)
    for begin in range(0, len(x), FAISS_BLOCK):
        index.search(x[begin : begin + FAISS_BLOCK], k + 1)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--out", required=True, help="JSON file to write")
    add("--n", type=int, default=1 << 20, help="vectors (default: 2^20)")
    add("--ds", type=int, nargs="+", default=[32, 128])
    add("--ks", type=int, nargs="+", default=[10])
    add("--runs", type=int, default=3)
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    if torch is None:
        raise ModuleNotFoundError(name="torch")
    if faiss_bits.get_num_gpus() == 0:
        sys.exit("no GPU: this bench measures graphs made on one")
    data = {
        "meta": {
            "gpu": torch.cuda.get_device_name(0),
            "faiss": faiss.__version__,
            "torch": torch.__version__,
            "commit": options.commit,
            "date": datetime.date.today().isoformat(),
        },
        "rows": [],
    }
    resources = faiss.StandardGpuResources()
    for d in options.ds:
        torch.manual_seed(d)
        x = torch.rand((options.n, d), device="cuda")
        for k in options.ks:
            methods = {
                "faiss_bits": lambda: knn_graph(x, k, progress=False),
                "faiss_flat": lambda: of_faiss(x, k, resources),
            }
            for method, run in methods.items():
                least = min(seconds(run) for _ in range(options.runs))
                row = {"bench": "knn_graph", "method": method, "n": options.n,
                       "d": d, "k": k, "ms": float(f"{1e3 * least:.5g}")}
                data["rows"].append(row)
                print(row, flush=True)
                save(options.out, data)


if __name__ == "__main__":
    end_with(main)
