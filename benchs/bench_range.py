"""Range searches on a GPU: ours (the program bench_range) and torch's, cell by
cell, to one result file.

    python benchs/bench_range.py --program build/gpu/benchs/bin/bench_range \\
        --out benchs/results/h200/range.json [options of the program]

Methods of the rows: `faiss_bits` (results as a sparse matrix on the device),
`faiss_bits_host` (as FAISS's RangeSearchResult, with --host 1), `torch` (float32
products and norms of some queries at a time, compared with the radius, and
nonzero()). The vectors of torch are uniform too, but other ones; its number of
results is stated. `faiss_contrib` (FAISS's range_search_gpu) runs where this Python
has a FAISS with a GPU part.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from result_file import load, save  # noqa: E402

#: Products of a step of torch, in elements.
STEP_ELEMENTS = 1 << 30


def median_ms(call, synchronize, least=5, seconds=0.5):
    """The median time of a call, after one that is not timed."""
    call()
    times = []
    while len(times) < least or (sum(times) < seconds and len(times) < 31):
        synchronize()
        begin = time.perf_counter()
        call()
        synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[len(times) // 2]


class TorchRange:
    """Exact range search by torch: a matrix of distances, and nonzero()."""

    def __init__(self, torch, n, d, q, metric):
        generator = torch.Generator("cuda").manual_seed(1)
        make = lambda rows: torch.rand(  # noqa: E731
            rows, d, device="cuda", generator=generator
        )
        self.torch, self.metric = torch, metric
        self.xb, self.xq = make(n), make(q)
        self.norms = (self.xb * self.xb).sum(1)

    def search(self, radius):
        """(lims, D, I) on the device."""
        torch = self.torch
        step = max(1, STEP_ELEMENTS // len(self.xb))
        parts = []
        for first in range(0, len(self.xq), step):
            xq = self.xq[first : first + step]
            values = xq @ self.xb.t()
            if self.metric == "l2":
                values.mul_(-2).add_(self.norms).add_((xq * xq).sum(1, True))
                inside = values < radius
            else:
                inside = values > radius
            rows, ids = inside.nonzero(as_tuple=True)
            counts = torch.bincount(rows, minlength=len(xq))
            parts.append((counts, values[inside], ids))
        counts, D, I = (
            torch.cat([part[i] for part in parts]) if len(parts) > 1 else parts[0][i]
            for i in range(3)
        )
        return torch.nn.functional.pad(counts.cumsum(0), (1, 0)), D, I


def torch_rows(torch, rows):
    """A row of torch for every one of ours."""
    made = {}
    for row in rows:
        shape = row["n"], row["d"], row["q"], row["metric"]
        if row["method"] != "faiss_bits" or row["metric"] not in ("l2", "ip"):
            continue
        if shape not in made:
            made.clear()
            torch.cuda.empty_cache()
            made[shape] = TorchRange(torch, *shape)
        search = made[shape].search
        results = int(search(row["radius"])[0][-1])
        ms = median_ms(
            lambda: search(row["radius"]), torch.cuda.synchronize
        )
        other = {
            name: value
            for name, value in row.items()
            if name not in ("knn_ms", "bound_ms")
        }
        other.update(method="torch", results=results, ms=float(f"{ms:.5g}"))
        print(f"torch {shape} {row['selectivity']}: {ms:.4g} ms", flush=True)
        yield other


def contrib_rows(faiss, np, rows):
    """The same of FAISS's way round: neighbours on the GPU, and the CPU for
    queries with more than 1,024 of them."""
    from faiss.contrib.exhaustive_search import range_search_gpu

    rng = np.random.default_rng(1)
    made = {}
    for row in rows:
        shape = row["n"], row["d"], row["metric"]
        if row["method"] != "faiss_bits" or row["metric"] not in ("l2", "ip"):
            continue
        if shape not in made:
            made.clear()
            xb = rng.random(shape[:2], dtype=np.float32)
            kind = faiss.IndexFlatL2 if row["metric"] == "l2" else faiss.IndexFlatIP
            cpu = kind(row["d"])
            cpu.add(xb)
            gpu = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, cpu)
            made[shape] = cpu, gpu
        cpu, gpu = made[shape]
        xq = rng.random((row["q"], row["d"]), dtype=np.float32)
        begin = time.perf_counter()
        lims, _, _ = range_search_gpu(xq, row["radius"], gpu, cpu)
        ms = 1e3 * (time.perf_counter() - begin)
        other = {
            name: value
            for name, value in row.items()
            if name not in ("knn_ms", "bound_ms")
        }
        other.update(
            method="faiss_contrib", results=int(lims[-1]), ms=float(f"{ms:.5g}")
        )
        print(f"faiss_contrib {shape} q = {row['q']}: {ms:.4g} ms", flush=True)
        yield other


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rivals", default="torch,faiss_contrib")
    options, others = parser.parse_known_args()
    subprocess.run(
        [options.program, "--out", options.out, "--rivals", "none", *others],
        check=True,
    )
    data = load(options.out)
    ours = list(data["rows"])
    wanted = options.rivals.split(",")
    if "torch" in wanted:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        data["meta"]["torch"] = torch.__version__
        for row in torch_rows(torch, ours):
            data["rows"].append(row)
            save(options.out, data)
    if "faiss_contrib" in wanted:
        try:
            import faiss
        except ImportError:
            print("no FAISS: faiss_contrib is left out")
            return
        import numpy as np

        if not hasattr(faiss, "GpuIndexFlat"):
            print("this FAISS has no GPU part: faiss_contrib is left out")
            return
        data["meta"]["faiss_contrib"] = faiss.__version__
        for row in contrib_rows(faiss, np, ours):
            data["rows"].append(row)
            save(options.out, data)


if __name__ == "__main__":
    main()
