#!/usr/bin/env python3
"""Random cells of flat search against FAISS and torch, checked for exactness.

    benchs/bench_flat_sweep.py --out benchs/results/h200/flat_sweep.json

Each run draws a fresh seed, which the meta keeps: --seed repeats a run. A cell
is n, d, q, k, metric (L2, IP, cosine), type of storage and kind of data
(sweep_cells.py, flat_data.py). Of faiss_bits every place of --check queries is
held against float64: "places_wrong" has to be 0. "ratio" in its row is the time
of the fastest rival, named in "best", over ours; the cells where it is below 1
are listed at the end. Exits with 1 if an answer was wrong or a method failed.
"""

import argparse
import datetime
import secrets
import sys
import time

from flat_rivals import first_line
from program import end_with
from result_file import save
from sweep_cells import random_cells

FIELDS = ("n", "d", "q", "k", "metric", "dtype", "data")
OURS = "faiss_bits"
METHODS = (OURS, "faiss_flat", "torch_fp32", "torch_tf32")
#: Repeats of one method and cell together.
TOTAL_MS = 20.0


def text_of(cell):
    return " ".join(f"{field}={cell[field]}" for field in FIELDS)


def without_folders(why):
    """What is missing, but not where it was looked for: a result file names no
    machine's folders."""
    return why.partition(" in ")[0]


class Sweep:
    def __init__(self, options, methods, torch):
        import flat_data
        import flat_reference
        import flat_timing

        self.checked = flat_reference.checked
        self.options, self.methods, self.torch = options, methods, torch
        self.makes = flat_data.Data(options.device)
        self.clock = flat_timing.Clock(options.device)
        self.still_works = lambda: flat_timing.still_works(options.device)

    def why_missing(self, cell):
        return self.makes.why_missing(cell["data"])

    def rows(self, cell):
        """The rows of a cell, faiss_bits with its ratio."""
        from flat_reference import Reference

        self.still_works()  # and gives memory back
        x, xq = self.makes.make(
            cell["data"], cell["n"], cell["q"], cell["d"], cell["data_seed"],
            cell["dtype"])
        kind = getattr(self.torch, cell["dtype"])
        if cell["metric"] == "cosine":  # whose calls take both of one type
            xq = xq.to(kind).float()
        reference = Reference(
            x.to(kind), xq[: self.options.check], cell["metric"])
        rows = [row for name in self.methods
                if (row := self._measure(cell, name, x, xq, reference))]
        for row in rows:
            rivals = {other["method"]: other["ms"] for other in rows
                      if other["method"] != OURS and other["ms"]}
            if row["method"] == OURS and row["ms"] and rivals:
                best = min(rivals, key=rivals.get)
                row["best"] = best
                row["ratio"] = float(f"{rivals[best] / row['ms']:.4g}")
        return rows

    def _measure(self, cell, name, x, xq, reference):
        """A row, or None where the method has no answer for such a cell."""
        method = self.methods[name]
        if method.why_not(cell):
            return None
        row = {"bench": "flat_sweep", "method": name,
               **{field: cell[field] for field in FIELDS}, "ms": None}
        k = cell["k"]
        try:
            searcher = method(x, cell["metric"], cell["dtype"])
            row |= self.checked(name, searcher, xq, k, reference)
            if name == OURS:
                row["places"] = min(self.options.check, cell["q"]) * k
            ms, row["repeats"] = self.clock.median(
                lambda: searcher.search(xq, k), TOTAL_MS)
            row["ms"] = float(f"{ms:.5g}")
        # Each library has exceptions of its own, and none may end the sweep.
        except Exception as error:  # noqa: BLE001
            row["why"] = first_line(error)
            self.still_works()
        return row


def meta_of(options, torch):
    from bench_dropin import commit, smi

    on_gpu = options.device != "cpu"
    meta = {"gpu": "none (CPU)", "driver": "none", "cuda": "none"}
    if on_gpu:
        major, minor = torch.cuda.get_device_capability()
        meta = {"gpu": torch.cuda.get_device_name(),
                "compute_capability": 10 * major + minor,
                "driver": smi("driver_version"), "cuda": torch.version.cuda}
    return meta | {
        "torch": torch.__version__, "commit": commit(),
        "date": datetime.date.today().isoformat(), "seed": options.seed,
        "cells": options.cells}


def run(options):
    """Measures and saves after every cell; returns the rows."""
    import flat_methods
    import torch

    meta = meta_of(options, torch)
    methods = flat_methods.usable(options.methods, options.device, meta)
    part, parts = options.part
    cells = random_cells(options.cells, options.seed)[part::parts]
    print(f"seed {options.seed}, {len(cells)} cells, {', '.join(methods)}",
          flush=True)
    sweep = Sweep(options, methods, torch)
    data = {"meta": meta, "rows": []}
    begin = time.monotonic()
    for i, cell in enumerate(cells):
        if time.monotonic() - begin > options.max_seconds:
            meta["left_out"] = len(cells) - i
            print(f"--max-seconds is spent: {len(cells) - i} of {len(cells)} "
                  "cells left out")
            break
        why = sweep.why_missing(cell)
        if why:
            meta.setdefault("missing", {})[cell["data"]] = without_folders(why)
            print(f"note: {text_of(cell)}: {why}", flush=True)
            continue
        rows = sweep.rows(cell)
        data["rows"] += rows
        save(options.out, data)
        times = ", ".join(
            f"{row['method']} " + (f"{row['ms']:.4g} ms" if row["ms"] else
                                   f"failed: {row['why']}") for row in rows)
        wrong = sum(row.get("places_wrong", 0) for row in rows)
        print(f"{time.monotonic() - begin:5.0f}s {i + 1}/{len(cells)} "
              f"{text_of(cell)}: {times}"
              + (f" WRONG: {wrong} places" if wrong else ""), flush=True)
    save(options.out, data)
    return data["rows"]


def report(rows):
    """Prints where we are behind, wrong or failed; returns whether all is
    right."""
    ours = [row for row in rows if row["method"] == OURS]
    raced = [row for row in ours if "ratio" in row]
    behind = sorted((row for row in raced if row["ratio"] < 1),
                    key=lambda row: row["ratio"])
    wrong = [row for row in ours if row.get("places_wrong")]
    failed = [row for row in rows if row["ms"] is None]
    for title, chosen in (("behind", behind), ("WRONG", wrong),
                          ("FAILED", failed)):
        for row in chosen:
            more = {"behind": lambda r: f"{r['ratio']:.2f} of {r['best']}",
                    "WRONG": lambda r: f"{r['places_wrong']} of {r['places']} "
                                       "places",
                    "FAILED": lambda r: f"{r['method']}: {r['why']}"}[title]
            print(f"{title}: {text_of(row)}: {more(row)}")
    places = sum(row.get("places", 0) for row in ours)
    print(f"{len(ours)} cells, {places} places checked, {len(wrong)} cells "
          f"wrong, {len(failed)} rows failed; behind in {len(behind)} of "
          f"{len(raced)}")
    if raced:
        ratios = sorted(row["ratio"] for row in raced)
        print(f"ratio to the best rival: least {ratios[0]:.2f}, median "
              f"{ratios[len(ratios) // 2]:.2f}, most {ratios[-1]:.2f}")
    return bool(ours) and not wrong and not failed


def part_of(text):
    """"1/4" to (1, 4)."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and int(part) < int(parts)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no part, as 0/4 is the first of four")
    return int(part), int(parts)


def parse(arguments):
    """Command line to a namespace; without --seed a fresh one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--out", default="flat_sweep.json", help="JSON file to write")
    add("--seed", type=int, help="default: a fresh one")
    add("--cells", type=int, default=200)
    add("--part", type=part_of, default=(0, 1), metavar="I/N",
        help="every N'th cell from the I'th on; parts of one --seed are put\n"
             "together by merge.py (default: 0/1)")
    add("--methods", type=lambda text: text.split(","), default=[*METHODS],
        help=f"default: {','.join(METHODS)}; also those of flat_rivals.py")
    add("--check", type=int, default=8,
        help="queries of a cell that are checked (default: 8)")
    add("--max-seconds", type=float, default=float("inf"),
        help="start no cell after that")
    add("--device", default="cuda", help="cpu: to try this script")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = secrets.randbits(31)
    if options.cells < 1 or options.check < 1:
        parser.error("--cells and --check are at least 1, not "
                     f"{options.cells} and {options.check}")
    return options


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    try:
        rows = run(options)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if report(rows) else 1


if __name__ == "__main__":
    end_with(main)
