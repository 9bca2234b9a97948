#!/usr/bin/env python3
"""What a call costs from Python: tensors on the GPU, back to back.

    benchs/bench_calls.py --out benchs/results/h200/calls.json

One row a call: us, the wall time of one of many calls back to back, which end
with one wait; gpu_us, that of the same call in a CUDA graph, which is what the
GPU needs; rival and rival_us, what one would use otherwise. The median of the
rounds; ours and the rival's take turns.
"""

import argparse
import datetime
import os
import statistics
import sys
import time

import faiss

try:
    import faiss.contrib.torch_utils  # noqa: F401 (FAISS with tensors)
    import torch
except ModuleNotFoundError:
    torch = None  # main() tells, after --help

import faiss_bits
from program import end_with
from result_file import save

N, D, K = 1000, 128, 10


def microseconds(call, calls):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls * 1e6


def graph_of(call):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            call()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(20):
            call()
    return graph


def searches(q):
    res = faiss.StandardGpuResources(), faiss.StandardGpuResources()
    ours = faiss_bits.GpuIndexBitsFlatL2(res[0], D)
    theirs = faiss.GpuIndexFlatL2(res[1], D)
    vectors = torch.rand((N, D), device="cuda")
    for index in (ours, theirs):
        index.add(vectors)
    x = torch.rand((q, D), device="cuda")
    out = torch.empty((q, K), device="cuda")
    ids = torch.empty((q, K), dtype=torch.int64, device="cuda")
    return {
        f"search_q{q}": (lambda: ours.search(x, K), "faiss_flat",
                         lambda: theirs.search(x, K)),
        f"search_q{q}_into": (lambda: ours.search(x, K, D=out, I=ids), "faiss_flat",
                              lambda: theirs.search(x, K, D=out, I=ids)),
    }


def selections(rows):
    keys = torch.rand((rows, N), device="cuda")
    return {
        f"select_k_{rows}x{N}": (
            lambda: faiss_bits.select_k(keys, K), "torch_topk",
            lambda: torch.topk(keys, K, dim=1, largest=False),
        )
    }


def pairs():
    res = faiss.StandardGpuResources()
    xb, xq = torch.rand((N, D), device="cuda"), torch.rand((1, D), device="cuda")
    return {
        "knn_q1": (lambda: faiss_bits.knn(xq, xb, K), "faiss_knn_gpu",
                   lambda: faiss.knn_gpu(res, xq, xb, K)),
    }


def measure(name, ours, rival_name, rival, calls, rounds):
    for call in (ours, rival):
        microseconds(call, 50)
    times = {0: [], 1: []}
    for _ in range(rounds):
        times[0].append(microseconds(ours, calls))
        times[1].append(microseconds(rival, calls))
    graph = graph_of(ours)
    gpu = [microseconds(graph.replay, calls // 20) / 20 for _ in range(rounds)]
    return {
        "bench": "calls",
        "method": "faiss_bits",
        "name": name,
        "n": N,
        "d": D,
        "k": K,
        "us": round(statistics.median(times[0]), 2),
        "gpu_us": round(statistics.median(gpu), 2),
        "rival": rival_name,
        "rival_us": round(statistics.median(times[1]), 2),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--out", required=True, help="JSON file to write")
    add("--calls", type=int, default=2000, help="of a round")
    add("--rounds", type=int, default=7)
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    if torch is None:
        raise ModuleNotFoundError(name="torch")
    if faiss_bits.get_num_gpus() == 0:
        sys.exit("no GPU: this bench measures calls of one")
    result = {
        "meta": {
            "gpu": torch.cuda.get_device_name(0),
            "faiss": faiss.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "commit": options.commit,
            "date": datetime.date.today().isoformat(),
        },
        "rows": [],
    }
    cells = {**searches(1), **searches(16), **selections(1), **selections(64),
             **pairs()}
    for name, (ours, rival_name, rival) in cells.items():
        row = measure(name, ours, rival_name, rival, options.calls,
                      options.rounds)
        result["rows"].append(row)
        print(row, flush=True)
        save(options.out, result)


if __name__ == "__main__":
    end_with(main)
