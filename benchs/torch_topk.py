#!/usr/bin/env python3
"""Adds torch.topk (sorted) to a result file of bench_select, cell by cell.

    benchs/torch_topk.py select.json [--keys build/dev/benchs/bin/libbench_keys.so]

Run it right after bench_select, on the same idle GPU. Every cell that has a
row of faiss_bits gets one of torch_topk: the same keys (libbench_keys.so makes
them), in as many buffers, timed in the same way (benchs/README.md), with the
read bandwidth of the file's meta. Cells that have one already are left alone.
"""

import argparse
import ctypes
import statistics
import sys
from pathlib import Path

from result_file import cell_of, frac_read, load, save

METHOD = "torch_topk"
MOST_BYTES = 1 << 32
KEYS_LIBRARY = "libbench_keys.so"


def repeats_for(ms):
    """As benchs/common/Timing.cpp."""
    if ms > 300:
        return 1
    return 3 if ms > 100 else min(51, max(7, int(60 / ms)))


def missing_cells(rows):
    """Rows of faiss_bits whose cell has none of torch_topk, one a cell, those
    with the same keys together."""
    done = {cell_of(row) for row in rows if row["method"] == METHOD}
    wanted = {}
    for row in rows:
        if row["method"] == "faiss_bits" and not row.get("forced") \
                and cell_of(row) not in done:
            wanted[cell_of(row)] = row
    return sorted(wanted.values(), key=lambda row: (
        row["order"] != "random", row["order"], row["dtype"], row["cols"],
        row["rows"], row["k"]))


class Keys:
    """The keys of one cell, as many times as fit 4 GiB."""

    def __init__(self, torch, library, sift):
        self.torch, self.sift = torch, sift or ""
        self._fill = ctypes.CDLL(library).fillBenchKeys
        self._fill.restype = ctypes.c_char_p
        self._fill.argtypes = [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
            ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p]
        self._made, self.slices = None, []

    def prepare(self, row):
        """Makes the keys of a row's cell, unless they are there."""
        names = ("rows", "cols", "dtype", "order")
        made = tuple(row[name] for name in names)
        if made == self._made:
            return
        self._made, self.slices = None, []
        rows, cols, dtype, order = made
        size = rows * cols * (4 if dtype == "float32" else 2)
        count = min(64, max(1, MOST_BYTES // size))
        for i in range(count):
            keys = self.torch.empty(
                (rows, cols), dtype=getattr(self.torch, dtype), device="cuda")
            problem = self._fill(
                keys.data_ptr(), dtype.encode(), rows, cols, order.encode(),
                i + 1, self.sift.encode())
            if problem:
                raise RuntimeError(problem.decode())
            self.slices.append(keys)
        self._made = made


def time_topk(torch, keys, k, limit):
    """(median ms, repeats) of torch.topk; no repeats where it is too slow."""
    rows = keys.slices[0].shape[0]
    out = (torch.empty((rows, k), dtype=keys.slices[0].dtype, device="cuda"),
           torch.empty((rows, k), dtype=torch.int64, device="cuda"))

    def call(i):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        torch.topk(keys.slices[i % len(keys.slices)], k, dim=1, largest=False,
                   sorted=True, out=out)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    call(0)
    times = [call(0)]
    if times[0] > limit:
        return times[0], 0
    times += [call(i) for i in range(repeats_for(times[0]) - 2, -1, -1)]
    # The last call was on slice 0: its answer against a sort.
    best = keys.slices[0][:2].sort(dim=1).values[:, :k]
    if not torch.equal(best, out[0][:2]):
        raise RuntimeError("torch.topk and torch.sort disagree")
    return statistics.median(times), len(times)


def run(options, torch):
    """Measures and saves after every row."""
    data = load(options.file)
    name = torch.cuda.get_device_name()
    if name != data["meta"]["gpu"]:
        raise RuntimeError(f"{options.file} is of {data['meta']['gpu']}, this "
                           f"is {name}")
    version = data["meta"].setdefault("torch", torch.__version__)
    if version != torch.__version__:
        raise RuntimeError(f"{options.file} is of torch {version}, this is "
                           f"{torch.__version__}")
    keys = Keys(torch, options.keys, options.sift)
    for row in missing_cells(data["rows"]):
        keys.prepare(row)
        limit = float("inf") if row["order"] == "random" else options.slow_ms
        ms, repeats = time_topk(torch, keys, row["k"], limit)
        cell = " ".join(f"{k}={v}" for k, v in cell_of(row)[1:])
        if repeats == 0:
            print(f"note: {cell}: left out: {ms:.0f} ms a call")
            continue
        added = {name: value for name, value in row.items()
                 if name not in ("algorithm", "method", "ms", "frac_read")}
        added = {"bench": added.pop("bench"), "method": METHOD, **added,
                 "ms": float(f"{ms:.5g}")}
        added["frac_read"] = frac_read(added, data["meta"])
        data["rows"].append(added)
        save(options.file, data)
        print(f"{cell} {ms:.4f} ms ({repeats})", flush=True)


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", help="of bench_select")
    parser.add_argument("--keys", default=None,
                        help=f"{KEYS_LIBRARY}; default: beside this script, or "
                             "in bin there")
    parser.add_argument("--sift", help="vectors for the order sift")
    parser.add_argument("--slow-ms", type=float, default=100,
                        help="leave out cells of other orders than random "
                             "that take longer")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    if options.keys is None:
        here = Path(__file__).resolve().parent
        found = [path for path in (here / KEYS_LIBRARY,
                                   here / "bin" / KEYS_LIBRARY)
                 if path.exists()]
        if not found:
            print(f"no {KEYS_LIBRARY} beside {here}: give --keys",
                  file=sys.stderr)
            return 2
        options.keys = str(found[0])
    import torch

    try:
        run(options, torch)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
