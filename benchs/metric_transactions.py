#!/usr/bin/env python3
"""Sum up what searches in metric spaces read and write, from Nsight Compute.

    ncu --profile-from-start off --csv --page raw --log-file kernels.csv \\
        --clock-control none --metrics METRICS \\
        bench_metric_space --profile on --out cells.json ...
    benchs/metric_transactions.py cells.json kernels.csv --out OUT

METRICS are printed by --metrics. Each row of cells.json gets the sums over the
kernels of its search: sectors (32 bytes) that the multiprocessors read from and
write to the L2 cache, and those that go on to memory. The paper's device has no
such cache.
"""

import argparse
import csv
import json
import pathlib
import re
import sys

from program import end_with

METRICS = {
    "lts__t_sectors_srcunit_tex_op_read.sum": "l2_reads",
    "lts__t_sectors_srcunit_tex_op_write.sum": "l2_writes",
    "dram__sectors_read.sum": "memory_reads",
    "dram__sectors_write.sum": "memory_writes",
}
_MARK = "profileMark"


def kernels_of(lines):
    """{mark: [{metric: value}]} of what Nsight Compute has printed."""
    # What the program prints comes before the table, and units below its head.
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    cells = {}
    current = None
    for row in csv.DictReader(lines[start:]):
        if not row["ID"]:
            continue  # units
        if _MARK in row["Kernel Name"]:
            current = int(re.search(r"\d+", row["Grid Size"]).group())
            if current in cells:
                raise ValueError(f"two cells have the mark {current}")
            cells[current] = []
            continue
        if current is None:
            raise ValueError(f"{row['Kernel Name']} comes before any mark")
        cells[current].append(
            {metric: float(row[metric].replace(",", "")) for metric in METRICS})
    return cells


def summed(report, cells):
    """The report with the sums in its rows."""
    rows = []
    for row in report["rows"]:
        kernels = cells.pop(row["mark"], None)
        if not kernels:
            raise ValueError(f"no kernel has the mark {row['mark']}")
        row = dict(row)
        del row["mark"]
        row["kernels"] = len(kernels)
        for metric, name in METRICS.items():
            row[name] = int(sum(kernel[metric] for kernel in kernels))
        rows.append(row)
    if cells:
        raise ValueError(f"marks of no row: {sorted(cells)}")
    return {"meta": report["meta"], "rows": rows}


def write(report, path):
    """One row a line, as the benches."""
    rows = ",\n  ".join(json.dumps(row) for row in report["rows"])
    path.write_text(f'{{"meta": {json.dumps(report["meta"])},\n "rows": [\n  '
                    f'{rows}\n ]}}\n')


def main(arguments):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", action="store_true")
    parser.add_argument("cells", nargs="?", type=pathlib.Path)
    parser.add_argument("kernels", nargs="?", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if options.metrics:
        print(",".join(METRICS))
        return 0
    if not (options.cells and options.kernels and options.out):
        parser.error("cells, kernels and --out are needed")
    lines = options.kernels.read_text().splitlines()
    write(summed(json.loads(options.cells.read_text()), kernels_of(lines)),
          options.out)
    return 0


if __name__ == "__main__":
    end_with(main, sys.argv[1:])
