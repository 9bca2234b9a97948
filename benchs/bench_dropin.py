#!/usr/bin/env python3
"""Searches of an unmodified FAISS with and without the drop-in library.

    benchs/bench_dropin.py --out benchs/results/h200/dropin.json

Runs with whatever `import faiss` finds: a wheel, or a module of your own; and
with whatever `import faiss_bits.dropin` finds. Two processes hold the same
indexes, one of them with the drop-in library, and take turns cell by cell, so
that both are timed in the same minute on the same clocks. An index that needs
training is trained once, by FAISS alone.

Times are the median of whole `search` calls on NumPy arrays, copies included.

What is compared. places_same: how many places of the result have the same id.
ids_equal: in every place the two distances differ by `tolerance` at most, and
so do those of a vector that both results have; a vector that only one has is
no further than twice that from the last place. The tolerance is what rounding
can do to FAISS's float32 distances of flat indexes and IVFFlat, (d + 4) 2^-24
times the square of the largest norms' sum, or their product; the drop-in
library's are correctly rounded. Of lists of codes FAISS rounds the tables it
sums, too: twice (d + 8) 2^-24 times the square of the greatest norms of a query,
a centroid and a residual together. For other indexes it is 0: the bits are the
same, and so are the ids, save among equal distances, whose order FAISS leaves
open. Of an IVF index one query in a thousand may differ by more: rounding gives
it another last list.
"""

import argparse
import datetime
import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

#: Binary vectors have d bits; that index selects by itself, so that nothing
#: changes for it.
INDEXES = (
    "flat_l2", "flat_ip", "ivf_flat", "ivf_sq8", "ivf_pq16", "ivf_pq32",
    "ivf_pq32_tables", "binary_flat",
)
#: Bytes of a vector, and whether tables are computed before searches.
PQ_INDEXES = {
    "ivf_pq16": (16, False),
    "ivf_pq32": (32, False),
    "ivf_pq32_tables": (32, True),
}
#: Of the queries of an IVF index, those that may be given another last list.
OTHER_LISTS = 1e-3


def cells(options):
    """(index, n, d, nlist, nprobe, q, k) of every measurement, grouped by index;
    of an index without lists nlist and nprobe are None."""
    seen = set()  # such an index is not measured again for other lists
    for nlist, index, d in itertools.product(
        options.nlist, options.indexes, options.d
    ):
        nprobes = options.nprobe
        if not index.startswith("ivf"):
            nlist, nprobes = None, (None,)
        for nprobe, q, k in itertools.product(nprobes, options.q, options.k):
            cell = index, options.n, d, nlist, nprobe, q, k
            # FAISS's GPU indexes take no more.
            if k <= 2048 and cell not in seen:
                seen.add(cell)
                yield cell


@functools.lru_cache(maxsize=4)
def vectors(n, d, seed):
    """Clustered vectors, the same in every process. Not to be changed."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((256, d), "float32")
    x = rng.standard_normal((n, d), "float32")
    x += 2 * centres[rng.integers(0, len(centres), n)]
    return x


@functools.lru_cache(maxsize=4)
def greatest_norm_of(n, d, seed):
    return greatest_norm(vectors(n, d, seed))


def greatest_norm(x):
    return float(np.sqrt(np.einsum("nd,nd->n", x, x, dtype="float64").max()))


def codes(n, d, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, d // 8), "uint8")


# ---- the two processes ---------------------------------------------------------


class Worker:
    """Holds one index at a time and times searches on it."""

    def __init__(self, folder, seconds):
        import faiss

        self.faiss, self.folder, self.seconds = faiss, folder, seconds
        self.resources = faiss.StandardGpuResources()
        self.key, self.index = None, None
        self.greatest_norm = None  # of the vectors

    def make(self, index, n, d, nlist):
        """The index of a cell, filled."""
        if self.key == (index, n, d, nlist):
            return
        self.index = None
        faiss, res = self.faiss, self.resources
        if index.startswith("flat"):
            kind = faiss.GpuIndexFlatL2 if index == "flat_l2" else faiss.GpuIndexFlatIP
            self.index = kind(res, d)
            self.index.add(vectors(n, d, 2))
        elif index == "binary_flat":
            self.index = faiss.GpuIndexBinaryFlat(res, d)
            self.index.add(codes(n, d, 2))
        else:
            path = self.trained(index, n, d, nlist)
            options = faiss.GpuClonerOptions()
            options.usePrecomputed = PQ_INDEXES.get(index, (0, False))[1]
            self.index = faiss.index_cpu_to_gpu(
                res, 0, faiss.read_index(path), options
            )
        if index != "binary_flat":
            self.greatest_norm = greatest_norm_of(n, d, 2)
        self.key = (index, n, d, nlist)

    def trained(self, index, n, d, nlist):
        """File of a trained and filled index; the first to ask makes it."""
        faiss, res = self.faiss, self.resources
        kind = index.removesuffix("_tables")
        path = os.path.join(self.folder, f"{kind}-{n}-{d}-{nlist}.faiss")
        if not os.path.exists(path):
            x = vectors(n, d, 2)
            if index == "ivf_flat":
                made = faiss.GpuIndexIVFFlat(res, d, nlist, faiss.METRIC_L2)
            elif index == "ivf_sq8":
                made = faiss.GpuIndexIVFScalarQuantizer(
                    res, d, nlist, faiss.ScalarQuantizer.QT_8bit
                )
            else:
                made = faiss.GpuIndexIVFPQ(
                    res, d, nlist, PQ_INDEXES[index][0], 8, faiss.METRIC_L2
                )
            made.train(x[: 64 * nlist])
            made.add(x)
            faiss.write_index(faiss.index_gpu_to_cpu(made), path)
        return path

    def measure(self, index, n, d, nlist, nprobe, q, k, result):
        """(median milliseconds of a search, tolerance of its distances); its
        result goes to a file."""
        self.make(index, n, d, nlist)
        if nprobe is not None:
            self.index.nprobe = nprobe
        xq = (codes if index == "binary_flat" else vectors)(q, d, 3)
        search = self.index.search
        distances, ids = search(xq, k)
        np.savez(result, distances=distances, ids=ids)
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < self.seconds:
            start = time.perf_counter()
            search(xq, k)
            times.append(time.perf_counter() - start)
        return float(np.median(times)) * 1e3, self.tolerance(index, d, xq)

    def tolerance(self, index, d, xq):
        if index == "binary_flat":
            return 0.0
        x, q = self.greatest_norm, greatest_norm(xq)
        if index.startswith("ivf") and index != "ivf_flat":
            # No centroid is longer than the vectors it is the mean of.
            return 2 * (d + 8) * 2.0**-24 * (q + x + 2 * x) ** 2
        size = x * q if index == "flat_ip" else (x + q) ** 2
        return (d + 4) * 2.0**-24 * size


def work(options):
    """A process: reads cells as lines of JSON, answers each with a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed does not belong there
    if options.work == "dropin":
        import faiss_bits.dropin
    import faiss

    worker = Worker(options.folder, options.seconds)
    about = {"faiss": faiss.__version__}
    if options.work == "dropin":
        about["dropin"] = faiss_bits.dropin.status()
    print(json.dumps(about), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.measure(*json.loads(line))),
              file=answers, flush=True)


class Process:
    def __init__(self, kind, folder, options):
        environment = dict(os.environ)
        # The other process must not have it by other ways.
        environment.pop("LD_PRELOAD", None)
        environment.pop("FAISS_BITS_DROPIN", None)
        if kind == "dropin":
            environment["FAISS_BITS_DROPIN"] = "log"
        self.results = os.path.join(folder, f"{kind}.npz")
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--work", kind,
             "--folder", folder, "--seconds", str(options.seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )
        self.kind = kind
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the process '{self.kind}' ended with "
                     f"{self.process.wait()}; see above")
        return json.loads(line)

    def ask(self, cell):
        line = json.dumps((*cell, self.results))
        print(line, file=self.process.stdin, flush=True)
        return self.answer()


def same_vectors(da, ia, db, ib, tolerance):
    """One row of each result: the vectors of both have such distances there,
    and those of one are as near as its last."""
    common, at_a, at_b = np.intersect1d(ia, ib, return_indices=True)
    if (np.abs(da[at_a] - db[at_b]) > tolerance).any():
        return False
    return all(
        (np.abs(d[~np.isin(ids, common)] - d[-1]) <= 2 * tolerance).all()
        for d, ids in ((da, ia), (db, ib))
    )


def compare(stock, dropin, tolerance=0.0, other_rows=0.0):
    """(ids_equal, places_same) of two result files; other_rows: the part of the
    rows that may differ by more."""
    with np.load(stock) as a, np.load(dropin) as b:
        da, db, ia, ib = a["distances"], b["distances"], a["ids"], b["ids"]
    da, db = da.astype("float64"), db.astype("float64")
    same = ia == ib
    differ = (np.abs(da - db) > tolerance).any(axis=1)
    for row in np.flatnonzero(~same.all(axis=1) & ~differ):
        differ[row] = not same_vectors(da[row], ia[row], db[row], ib[row], tolerance)
    equal = differ.sum() <= other_rows * len(differ)
    return bool(equal), round(float(same.mean()), 6)


# ---- the report --------------------------------------------------------------------


def smi(what):
    try:
        return subprocess.run(
            ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", "-i", "0"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def commit():
    if "FAISS_BITS_COMMIT" in os.environ:
        return os.environ["FAISS_BITS_COMMIT"]
    git = subprocess.run(
        ["git", "-C", pathlib.Path(__file__).parent, "describe", "--always",
         "--dirty", "--abbrev=12"],
        capture_output=True, text=True, check=False,
    )
    return git.stdout.strip() or "unknown"


def save(path, meta, rows):
    """One row a line, as the other benches write it; always a whole file."""
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    text = f'{{\n  "meta": {json.dumps(meta)},\n  "rows": [\n{lines}\n  ]\n}}\n'
    temporary = f"{path}.part"
    pathlib.Path(temporary).write_text(text)
    os.replace(temporary, path)


def main(options):
    with tempfile.TemporaryDirectory(prefix="bench_dropin") as folder:
        stock = Process("stock", folder, options)
        dropin = Process("dropin", folder, options)
        meta = {
            "gpu": smi("name"),
            "driver": smi("driver_version"),
            "faiss": stock.about["faiss"],
            "dropin": dropin.about["dropin"].partition(", ")[2],
            "commit": commit(),
            "date": datetime.date.today().isoformat(),
        }
        rows, begin = [], time.monotonic()
        for cell in cells(options):
            if options.max_seconds and (
                time.monotonic() - begin > options.max_seconds
            ):
                print("out of time: the rest is left out", file=sys.stderr)
                break
            (stock_ms, tolerance), (dropin_ms, _) = (
                process.ask(cell) for process in (stock, dropin)
            )
            index, n, d, nlist, nprobe, q, k = cell
            lists = {} if nlist is None else {"nlist": nlist, "nprobe": nprobe}
            equal, same = compare(
                stock.results, dropin.results, tolerance,
                OTHER_LISTS if index.startswith("ivf") else 0.0,
            )
            rows.append({
                "bench": "dropin", "index": index, "n": n, "d": d, **lists,
                "q": q, "k": k,
                "ms_stock": round(stock_ms, 5), "ms_dropin": round(dropin_ms, 5),
                "ids_equal": equal, "places_same": same,
                "tolerance": float(f"{tolerance:.3g}"),
            })
            save(options.out, meta, rows)
            at = " ".join(f"{name}={value}" for name, value in lists.items())
            print(f"{index:12} n={n} d={d} {at} q={q:<6} k={k:<5} "
                  f"{stock_ms:10.3f} ms {dropin_ms:10.3f} ms  "
                  f"{stock_ms / dropin_ms:6.2f}x  "
                  f"{'equal' if equal else 'NOT EQUAL'} ({same:.4%})", flush=True)
    return 0 if rows and all(row["ids_equal"] for row in rows) else 1


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", default="dropin.json")
    parser.add_argument("--indexes", nargs="+", choices=INDEXES, default=INDEXES)
    parser.add_argument("--n", type=int, default=1 << 20)
    parser.add_argument("--d", type=int, nargs="+", default=[128])
    parser.add_argument("--q", type=int, nargs="+", default=[1, 16, 1024, 10240])
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10, 100, 1000, 2048])
    parser.add_argument("--nlist", type=int, nargs="+", default=[4096],
                        help="lists of an IVF index; one for 64 vectors at most")
    parser.add_argument("--nprobe", type=int, nargs="+", default=[32])
    parser.add_argument("--seconds", type=float, default=0.3,
                        help="at least so long a cell, and three searches")
    parser.add_argument("--max-seconds", type=float, default=0,
                        help="start no cell after that; 0: no limit")
    parser.add_argument("--work", choices=("stock", "dropin"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.nlist = [min(nlist, options.n // 64) for nlist in options.nlist]
    return options


if __name__ == "__main__":
    chosen = parse(sys.argv[1:])
    sys.exit(work(chosen) if chosen.work else main(chosen))
