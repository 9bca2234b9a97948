#!/usr/bin/env python3
"""Adds torch.topk (sorted) to a result file of bench_select or
bench_select_sweep, cell by cell.

    benchs/torch_topk.py select.json [--keys build/dev/benchs/bin/libbench_keys.so]

Run it right after the bench, on the same idle GPU. Every cell that has a
row of faiss_bits gets one of torch_topk: the same keys (libbench_keys.so makes
them), in as many buffers, timed in the same way (benchs/README.md), with the
read bandwidth of the file's meta. Cells that have one already are left alone.
"""

import argparse
import ctypes
import statistics
import sys
import time
from pathlib import Path

from program import end_with
from result_file import cell_of, frac_io, frac_read, load, save

METHOD = "torch_topk"
KEYS_LIBRARY = "libbench_keys.so"
#: Between two replacements of the file of a sweep.
SAVE_SECONDS = 5
#: What a row of faiss_bits has of its own.
OF_OURS = ("algorithm", "method", "ms", "frac_read", "frac_io", "random_ms",
           "wrong", "cell", "seed", "sample_threads", "sample_places",
           "sample_parts")


class Select:
    """How bench_select makes its keys and takes its times: Keys.h, Timing.h."""

    most_bytes = 1 << 32
    save_seconds = 0
    share = ("frac_read", frac_read)
    key_fields = ("rows", "cols", "dtype", "order")
    function = "fillBenchKeys"
    argument_types = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
        ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p)

    @staticmethod
    def arguments(pointer, row, i, sift):
        return (pointer, row["dtype"].encode(), row["rows"], row["cols"],
                row["order"].encode(), i + 1, sift.encode())

    @staticmethod
    def repeats(ms):
        if ms > 300:
            return 1
        return 3 if ms > 100 else min(51, max(7, int(60 / ms)))

    @staticmethod
    def limit(row, slow_ms):
        """What takes longer is left out."""
        return float("inf") if row["order"] == "random" else slow_ms


class Sweep(Select):
    """The same of bench_select_sweep: SweepKeys.cpp, BenchSelectSweep.cpp."""

    most_bytes = 1 << 30
    save_seconds = SAVE_SECONDS
    share = ("frac_io", frac_io)
    key_fields = ("seed",)
    function = "fillSweepKeys"
    argument_types = (
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
        ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_char_p)

    @staticmethod
    def arguments(pointer, row, i, sift):
        return (pointer, row["dtype"].encode(), row["rows"], row["cols"],
                row["k"], row["largest"], row["order"].encode(),
                row["seed"] + i, row.get("sample_threads", 0),
                row.get("sample_places", 0), row.get("sample_parts", 1),
                sift.encode())

    @staticmethod
    def repeats(ms):
        return 1 if ms > 20 else min(15, max(3, int(10 / ms)))

    @staticmethod
    def limit(row, slow_ms):
        return float("inf")


def bench_of(rows):
    """The class above for the rows of a file."""
    is_sweep = any(row["bench"] == "select_sweep" for row in rows)
    return Sweep if is_sweep else Select


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
    """The keys of one cell, in as many buffers as the bench has."""

    def __init__(self, torch, library, sift, bench):
        self.torch, self.sift, self.bench = torch, sift or "", bench
        self._fill = getattr(ctypes.CDLL(library), bench.function)
        self._fill.restype = ctypes.c_char_p
        self._fill.argtypes = list(bench.argument_types)
        self._made, self.slices = None, []

    def prepare(self, row):
        """Makes the keys of a row's cell, unless they are there."""
        made = tuple(row[name] for name in self.bench.key_fields)
        if made == self._made:
            return
        self._made, self.slices = None, []
        rows, cols, dtype = (row[name] for name in ("rows", "cols", "dtype"))
        size = rows * cols * (4 if dtype == "float32" else 2)
        count = min(64, max(1, self.bench.most_bytes // size))
        for i in range(count):
            keys = self.torch.empty(
                (rows, cols), dtype=getattr(self.torch, dtype), device="cuda")
            problem = self._fill(*self.bench.arguments(
                keys.data_ptr(), row, i, self.sift))
            if problem:
                raise RuntimeError(problem.decode())
            self.slices.append(keys)
        self._made = made


def time_topk(torch, keys, k, limit):
    """(median ms, repeats, wrong rows of the first two) of torch.topk; no
    repeats where it is too slow."""
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
        return times[0], 0, 0
    repeats = keys.bench.repeats(times[0])
    times += [call(i) for i in range(repeats - 2, -1, -1)]
    # The last call was on slice 0: its answer against a sort.
    best = keys.slices[0][:2].sort(dim=1).values[:, :k]
    found = out[0][:2]
    same = (best == found) | (best.isnan() & found.isnan())
    wrong = int((~same).any(dim=1).sum())
    return statistics.median(times), len(times), wrong


def measured_row(row, ms, meta, bench):
    """The row of torch.topk beside one of faiss_bits."""
    added = {name: value for name, value in row.items() if name not in OF_OURS}
    added = {"bench": added.pop("bench"), "method": METHOD, **added,
             "ms": float(f"{ms:.5g}")}
    name, share = bench.share
    added[name] = share(added, meta)
    return added


def run(options, torch):
    """Measures and saves, after every row or every few seconds."""
    data = load(options.file)
    name = torch.cuda.get_device_name()
    if name != data["meta"]["gpu"]:
        raise RuntimeError(f"{options.file} is of {data['meta']['gpu']}, this "
                           f"is {name}")
    version = data["meta"].setdefault("torch", torch.__version__)
    if version != torch.__version__:
        raise RuntimeError(f"{options.file} is of torch {version}, this is "
                           f"{torch.__version__}")
    bench = bench_of(data["rows"])
    keys = Keys(torch, options.keys, options.sift, bench)
    begin = saved = time.monotonic()
    wanted = missing_cells(data["rows"])
    for done, row in enumerate(wanted):
        if time.monotonic() - begin > options.max_seconds:
            print(f"--max-seconds is spent: {len(wanted) - done} of "
                  f"{len(wanted)} cells left out")
            break
        cell = " ".join(f"{k}={v}" for k, v in cell_of(row)[1:])
        try:
            keys.prepare(row)
            ms, repeats, wrong = time_topk(
                torch, keys, row["k"], bench.limit(row, options.slow_ms))
        except torch.cuda.OutOfMemoryError as error:
            print(f"note: {cell}: left out: {str(error).splitlines()[0]}")
            continue
        if repeats == 0:
            print(f"note: {cell}: left out: {ms:.0f} ms a call")
            continue
        added = measured_row(row, ms, data["meta"], bench)
        if wrong:
            if bench is Select:
                raise RuntimeError("torch.topk and torch.sort disagree")
            added["wrong"] = wrong
        data["rows"].append(added)
        if time.monotonic() - saved >= bench.save_seconds:
            save(options.file, data)
            saved = time.monotonic()
        print(f"{cell} {ms:.4f} ms ({repeats})"
              + (f" WRONG: {wrong} rows" if wrong else ""), flush=True)
    save(options.file, data)


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", help="of bench_select or bench_select_sweep")
    parser.add_argument("--keys", default=None,
                        help=f"{KEYS_LIBRARY}; default: beside this script, or "
                             "in bin there")
    parser.add_argument("--sift", help="vectors for the order sift")
    parser.add_argument("--slow-ms", type=float, default=100,
                        help="leave out cells of other orders than random "
                             "that take longer (not of a sweep)")
    parser.add_argument("--max-seconds", type=float, default=1e9,
                        help="no cell starts after this time")
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
    end_with(main)
