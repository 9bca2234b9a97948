#!/usr/bin/env python3
"""Random certified searches on a GPU, every place of every query against float64.

    benchs/run_properties.py --program build/gpu/tests/bin/test_knn_properties \\
        --queries 1000000 --commit "$(git rev-parse HEAD)" --out benchs/results/h200/properties.json

Runs the program (tests/knn/TestProperties.cpp) in several processes with seeds
of their own, which draw shapes, values, filters and metrics, until all of them
together have checked that many queries or the time is spent. The file has a row
for each process: its seed, the queries and searches checked, how many queries
were repeated, how many were found wrong (a process ends with its first wrong
search, none of whose queries count as checked), and the seconds after which it
and those before it had ended. Exits with 1 if any is wrong, a process failed or
too few queries were checked.
"""

import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from program import end_with  # noqa: E402
from result_file import save  # noqa: E402

DONE = re.compile(
    r"(\d+) queries in (\d+) searches, seed (\d+): all places right, "
    r"(\d+) repeated")
WRONG = re.compile(r"(\d+) queries are wrong")


def gpu_meta():
    """GPU and driver, as nvidia-smi names them."""
    out = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version",
         "--format=csv,noheader"],
        check=True, capture_output=True, text=True).stdout
    name, driver = out.splitlines()[0].split(", ")
    return {"gpu": name, "driver": driver}


def row_of(seed, status, output, seconds):
    """One process's row: what its last line says."""
    row = {"bench": "properties", "seed": seed, "queries": 0, "searches": 0,
           "repeated": 0, "wrong": 0}
    done = DONE.search(output)
    wrong = WRONG.search(output)
    if status == 0 and done and int(done[3]) == seed:
        row |= {"queries": int(done[1]), "searches": int(done[2]),
                "repeated": int(done[4])}
    elif wrong:
        row["wrong"] = int(wrong[1])
    else:
        row["failed"] = output[-500:]
    return row | {"seconds": round(seconds, 1)}


def run(options):
    """The rows of all processes."""
    each = -(-options.queries // options.processes)
    started = time.monotonic()
    running = []
    for i in range(options.processes):
        seed = options.seed + i
        environment = os.environ | {
            "FAISS_BITS_PROPERTY_QUERIES": str(each),
            "FAISS_BITS_PROPERTY_SEED": str(seed),
            "FAISS_BITS_PROPERTY_SECONDS": str(options.max_seconds),
            "FAISS_BITS_PROPERTY_THREADS": str(options.threads)}
        running.append((seed, subprocess.Popen(
            [options.program], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)))
    rows = []
    for seed, process in running:
        output, _ = process.communicate()
        rows.append(row_of(seed, process.returncode, output,
                           time.monotonic() - started))
    return rows


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2,
                        help="of each process, for the reference")
    parser.add_argument("--seed", type=int, default=0,
                        help="of the first process; 0: the clock's")
    parser.add_argument("--max-seconds", type=int, default=10**6,
                        help="a process starts no search later")
    parser.add_argument("--commit",
                        default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    if min(options.queries, options.processes, options.threads) < 1:
        parser.error("--queries, --processes and --threads are at least 1")
    options.seed = options.seed or int(time.time())
    meta = gpu_meta() | {
        "commit": options.commit,
        "date": datetime.date.today().isoformat(), "seed": options.seed}
    rows = run(options)
    save(options.out, {"meta": meta, "rows": rows})
    total = {name: sum(row[name] for row in rows)
             for name in ("queries", "searches", "repeated", "wrong")}
    failed = [row["seed"] for row in rows if "failed" in row]
    print(f"{total['queries']} queries in {total['searches']} searches, seeds "
          f"{options.seed} to {options.seed + options.processes - 1}: "
          f"{total['wrong']} wrong, {total['repeated']} repeated")
    if failed:
        print("failed: seeds", *failed)
    short = total["queries"] < options.queries
    return 1 if total["wrong"] or failed or short else 0


if __name__ == "__main__":
    end_with(main)
