#!/usr/bin/env python3
"""Random cells on the CPU against FAISS: flat indexes and inverted lists, the k
nearest and ranges, with selectors and without, checked.

    PYTHONPATH=build/cpu/python benchs/cpu/bench_sweep_cpu.py \\
        --out benchs/results/cpu/sweep.json --commit "$(git rev-parse HEAD)" \\
        --wheel-python wheelenv/bin/python

Each run draws a fresh seed, which the meta keeps: --seed repeats a run. What
cells there are: cpu_sweep_cells.py. The rival is the FAISS of --wheel-python, or
without it the one that this Python imports. Both libraries have a process of
their own and take turns; "ms" is the least of all calls. "ratio" in a row of
faiss_bits is the rival's time over ours; the cells where it is below 1 are
listed at the end. Of some queries flat answers are held against float64, in
every place, and those of inverted lists against the rival's. Exits with 1 if an
answer was wrong or a call failed.
"""

import argparse
import datetime
import os
import secrets
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from agreement import rounding, share_agreed, true_distances  # noqa: E402
from bench_flat_cpu import cpu_name, digits  # noqa: E402
from cpu_sweep_cells import (  # noqa: E402
    random_cells,
    selected_ids,
    vectors_of,
)
from flat_options import cores  # noqa: E402
from program import end_with  # noqa: E402
from result_file import CELL_FIELDS, save  # noqa: E402
from worker_process import WorkerError, WorkerProcess  # noqa: E402

SCRIPT = Path(__file__).resolve().parent / "cpu_sweep_worker.py"
#: Seconds between turns, in which threads of the one before stop spinning;
#: those of calls in a turn; turns of each.
PAUSE, TURN, ROUNDS = 0.02, 0.03, 4
#: Share of the places of inverted lists in which both must agree. Rounding may
#: decide which of two lists a query searches.
SAME = 0.95


def text_of(cell):
    return " ".join(f"{field}={cell[field]}"
                    for field in CELL_FIELDS["cpu_sweep"] if field in cell)


def places_wrong(cell, answer):
    """In how many places an answer of a flat index is not the exact one."""
    vectors, queries = vectors_of(cell)
    allowed = selected_ids(cell)
    if allowed is None:
        allowed = np.arange(cell["n"])
    sign = -1 if cell["metric"] == "IP" else 1
    wrong = 0
    for row, found in enumerate(answer):
        query = queries[row:row + 1]
        near = true_distances(query, vectors, allowed[None], cell["metric"])[0]
        order = np.lexsort((allowed, sign * near.astype(np.float32)))
        want = allowed[order][:len(found)]
        want = np.pad(want, (0, len(found) - len(want)), constant_values=-1)
        # The reference sums in another order: it may round to the other side.
        same = share_agreed(np.array([found]), want[None], query,
                            vectors.astype(np.float64), cell["metric"])
        wrong += round((1 - same) * len(found))
    return wrong


def ids_wrong(cell, answer, radius):
    """How many ids of a range search in a flat index are there and should not
    be, or the other way round; beyond what rounding decides."""
    vectors, queries = vectors_of(cell)
    ids, wrong = np.arange(cell["n"])[None], 0
    for row, found in enumerate(answer):
        query = queries[row:row + 1]
        near = true_distances(query, vectors, ids, cell["metric"])[0]
        slack = rounding(query, vectors, ids, cell["metric"])[0]
        inside = near > radius if cell["metric"] == "IP" else near < radius
        differs = inside != np.isin(ids[0], found)
        wrong += int((differs & (np.abs(near - radius) > slack)).sum())
    return wrong


class Sweep:
    def __init__(self, options):
        self.options = options
        rival = options.wheel_python or sys.executable
        self.workers = []
        try:
            for kind, python in (("ours", sys.executable),
                                 ("wheel" if options.wheel_python else "faiss",
                                  rival)):
                self.workers.append(WorkerProcess(
                    kind, python, options.threads, script=SCRIPT))
        except Exception:
            self.close()
            raise

    def close(self):
        for worker in self.workers:
            worker.close()

    def meta(self):
        ours, rival = self.workers
        return {"cpu": cpu_name(), "cores": cores(),
                "threads": self.options.threads,
                "faiss": ours.about["faiss"], "rival": rival.about["faiss"],
                "load_before": [digits(x) for x in os.getloadavg()],
                "commit": self.options.commit, "date": self.options.date,
                "seed": self.options.seed, "cells": self.options.cells}

    def rows(self, cell):
        """The rows of a cell: ours with its ratio, and the rival's."""
        replies = [worker.ask("data", cell=cell) for worker in self.workers]
        least = [float("inf")] * 2
        for number in range(ROUNDS):
            for at in ((0, 1), (1, 0))[number % 2]:
                time.sleep(PAUSE)
                reply = self.workers[at].ask("time", seconds=TURN)
                least[at] = min(least[at], reply["ms"])
        fields = {field: cell[field] for field in CELL_FIELDS["cpu_sweep"]
                  if field in cell} | {"data_seed": cell["data_seed"]}
        rows = [{"bench": "cpu_sweep", "method": worker.methods[0], **fields,
                 "ms": digits(ms)} for worker, ms in zip(self.workers, least)]
        rows[0]["ratio"] = digits(least[1] / least[0])
        self._check(cell, rows[0], *replies)
        return rows

    @staticmethod
    def _check(cell, row, reply, reply_of_rival):
        ours, rival = reply["answer"], reply_of_rival["answer"]
        if cell["index"] == "flat" and cell["call"] == "search":
            row["places_wrong"] = places_wrong(cell, ours)
        elif cell["index"] == "flat":
            row["places_wrong"] = ids_wrong(cell, ours, reply["radius"])
        elif cell["call"] == "search":
            vectors, queries = vectors_of(cell)
            row["same_places"] = digits(share_agreed(
                np.array(ours), np.array(rival), queries[:len(ours)], vectors,
                cell["metric"]))
        else:
            sizes = sum(len(set(a) | set(b)) for a, b in zip(ours, rival))
            both = sum(len(set(a) & set(b)) for a, b in zip(ours, rival))
            row["same_places"] = digits(both / sizes if sizes else 1)

    @staticmethod
    def is_right(row):
        return (row.get("places_wrong", 0) == 0
                and row.get("same_places", 1) >= SAME)


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", required=True, help="JSON file, kept whole after every cell")
    add("--wheel-python", metavar="PYTHON",
        help="a Python that has faiss-cpu (default: the FAISS of this one)")
    add("--cells", type=int, default=400)
    add("--seed", type=int, default=secrets.randbits(31),
        help="of the cells (default: a fresh one)")
    add("--threads", type=int, default=cores(), help="(default: all)")
    add("--max-seconds", type=float, default=float("inf"),
        help="no cell starts after this time")
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"),
        help="for meta (default: $FAISS_BITS_COMMIT)")
    add("--date", default=datetime.date.today().isoformat(), help="for meta")
    options = parser.parse_args(arguments)
    for name in ("cells", "threads"):
        value = getattr(options, name)
        if value < 1:
            parser.error(f"--{name} {value}: at least 1 is needed")
    return options


def summarize(rows):
    """The figures of a run, and its cells where the rival is ahead."""
    ours = [row for row in rows if "ratio" in row]
    if not ours:
        return
    ratios = [row["ratio"] for row in ours]
    behind = sorted((row for row in ours if row["ratio"] < 1),
                    key=lambda row: row["ratio"])
    print(f"{len(ours)} cells: {statistics.geometric_mean(ratios):.3g} times as "
          f"fast as the rival in the geometric mean, behind in {len(behind)}")
    for row in behind:
        print(f"  {row['ratio']:.3g}  {row['ms']:.4g} ms  {text_of(row)}")


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    sweep, failed = Sweep(options), 0
    data = {"meta": sweep.meta(), "rows": []}
    print(f"seed {options.seed}", flush=True)
    begin = time.monotonic()
    try:
        cells = random_cells(options.cells, options.seed)
        for at, cell in enumerate(cells):
            if time.monotonic() - begin > options.max_seconds:
                data["meta"]["left_out"] = len(cells) - at
                print(f"--max-seconds is spent: {len(cells) - at} of "
                      f"{len(cells)} cells left out")
                break
            try:
                rows = sweep.rows(cell)
            except WorkerError as error:
                print(f"FAILED {text_of(cell)}: {error}", flush=True)
                failed += 1
                data["meta"]["failed"] = data["meta"].get("failed", 0) + 1
                continue
            data["rows"] += rows
            save(options.out, data)
            right = sweep.is_right(rows[0])
            failed += not right
            print(f"{at + 1:4d} {rows[0]['ratio']:7.3g} {rows[0]['ms']:10.4g} "
                  f"ms  {text_of(cell)}{'' if right else '  WRONG'}",
                  flush=True)
    finally:
        sweep.close()
        save(options.out, data)
    summarize(data["rows"])
    return 1 if failed else 0


if __name__ == "__main__":
    end_with(main)
