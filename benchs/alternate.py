#!/usr/bin/env python3
"""Times two builds of a bench in turns, so that a change is told from noise.

    benchs/alternate.py --old OLD/bench_flat --new NEW/bench_flat --out FILE \\
        --parts "--ds 128" "--ds 64,32" -- --rivals none

Each part's options go to both programs, which run one after the other, `rounds`
times, old and new first in turns; what stands behind `--` goes to every run.
--old-lib and --new-lib are put first on the programs' LD_LIBRARY_PATH.

The file has a row for each cell and build (methods `old` and `new`) with the
median of its times. Printed are the cells that got slower by more than 3% (5%
below 0.1 ms), and the geometric mean of all; exits with 1 if there are any.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from program import end_with  # noqa: E402
from result_file import cell_of, save  # noqa: E402

OURS = "faiss_bits"


def limit_of(ms):
    """By how much a cell of this time may be slower."""
    return 1.05 if ms < 0.1 else 1.03


def run(program, library, options, folder):
    """(meta, rows) of one run."""
    out = pathlib.Path(folder) / "rows.json"
    environment = dict(os.environ)
    if library:
        old = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{library}:{old}" if old else library
    subprocess.run(
        [program, "--out", str(out), *options], check=True, env=environment,
        stdout=subprocess.DEVNULL)
    data = json.loads(out.read_text())
    return data["meta"], [r for r in data["rows"] if r["method"] == OURS]


def collect(options, rest):
    """({method: meta}, {cell: (row, {method: [ms, ...]})})."""
    programs = {
        "old": (options.old, options.old_lib),
        "new": (options.new, options.new_lib),
    }
    metas, cells = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for part in options.parts:
            for turn in range(options.rounds):
                order = ("old", "new") if turn % 2 == 0 else ("new", "old")
                for method in order:
                    metas[method], rows = run(
                        *programs[method], part.split() + rest, folder)
                    for row in rows:
                        times = cells.setdefault(cell_of(row), (row, {}))[1]
                        times.setdefault(method, []).append(row["ms"])
            write(options, metas, cells)
            print(f"{part}: {len(cells)} cells so far", flush=True)
    return metas, cells


def write(options, metas, cells):
    """The file with what there is."""
    meta = dict(metas["new"], commit_old=options.old_commit,
                commit=options.new_commit, rounds=options.rounds)
    rows = []
    for row, times in cells.values():
        for method, list_of_ms in sorted(times.items()):
            keep = {name: value for name, value in row.items()
                    if name not in ("ms", "frac_read", "gdist_s", "method",
                                    "algorithm")}
            rows.append(dict(keep, method=method,
                             ms=statistics.median(list_of_ms)))
    save(options.out, {"meta": meta, "rows": rows})


def slower(cells):
    """[(ratio, old ms, new ms, cell)] beyond the limit, worst first; and the
    geometric mean of new / old."""
    found, logs = [], []
    for cell, (_, times) in cells.items():
        old, new = (statistics.median(times[m]) for m in ("old", "new"))
        logs.append(math.log(new / old))
        if new / old > limit_of(old):
            found.append((new / old, old, new, cell))
    return sorted(found, reverse=True), math.exp(statistics.fmean(logs))


def main(arguments=None):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--old", required=True, help="program of the old build")
    parser.add_argument("--new", required=True, help="program of the new build")
    parser.add_argument("--old-lib", help="folder of its libraries")
    parser.add_argument("--new-lib", help="folder of its libraries")
    parser.add_argument("--old-commit", default="unknown")
    parser.add_argument("--new-commit", default="unknown")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", required=True)
    parser.add_argument("--parts", nargs="+", default=[""],
                        help="options of each part, one string a part")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    rest = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, rest = arguments[:at], arguments[at + 1:]
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds = {options.rounds} is below 1")
    _, cells = collect(options, rest)
    found, mean = slower(cells)
    for ratio, old, new, cell in found:
        name = " ".join(f"{field}={value}" for field, value in cell[1:])
        print(f"SLOWER {ratio:.3f}: {old:.4f} -> {new:.4f} ms  {name}")
    print(f"{len(cells)} cells, {len(found)} slower; new / old {mean:.4f} on "
          "geometric mean")
    return 1 if found else 0


if __name__ == "__main__":
    end_with(main)
