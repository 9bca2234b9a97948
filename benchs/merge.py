#!/usr/bin/env python3
"""Puts parts of one bench that were measured apart into one file.

    benchs/merge.py benchs/results/h200/select.json part1.json part2.json ...

The parts must agree in meta (GPU, driver, CUDA, libraries, commit, date), so
that the file is still one run's. The read bandwidth (and the peak, of the CPU's
benches) is the largest of them, and frac_read and frac_io are worked out anew
from it. A row that two parts have is the later one's.
"""

import argparse
import sys

from program import end_with
from result_file import cell_of, frac_io, frac_read, load, save


def merged_meta(metas):
    """One meta; ValueError that names the field in which parts differ."""
    result = {}
    for meta in metas:
        for name, value in meta.items():
            if name == "read_bw_gbps" or name.startswith("peak_gflops"):
                value = max(value, result.get(name, value))
            elif name.startswith("model_"):  # measured by each process
                value = result.get(name, value)
            elif name == "left_out":
                value += result.get(name, 0)
            elif name in ("missing", "no_index"):  # until a part has them
                value = {**result.get(name, {}), **value}
            elif result.get(name, value) != value:
                raise ValueError(
                    f"{name} is {result[name]!r} in one part and {value!r} in "
                    "another: not one run"
                )
            result[name] = value
    return result


def merge(parts):
    """One file's data from those of all parts."""
    meta = merged_meta([part["meta"] for part in parts])
    rows = {}
    for part in parts:
        for row in part["rows"]:
            row = dict(row)
            if "frac_read" in row and row["ms"]:
                row["frac_read"] = frac_read(row, meta)
            if "frac_io" in row and row["ms"]:
                row["frac_io"] = frac_io(row, meta)
            forced = row.get("forced") and row.get(
                "algorithm", row.get("variant"))
            key = cell_of(row), row.get("method"), forced  # dropin has none
            rows[key] = row
    benches = {row["bench"] for row in rows.values()}
    if len(benches) > 1:
        raise ValueError(f"parts of several benches: {sorted(benches)}")
    measured = {row.get("method") for row in rows.values()}
    missing = meta.pop("missing", {})
    missing = {name: why for name, why in missing.items() if name not in measured}
    if missing:
        meta["missing"] = missing
    return {"meta": meta, "rows": list(rows.values())}


def main(arguments=None):
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("parts", nargs="+")
    options = parser.parse_args(arguments)
    try:
        data = merge([load(part) for part in options.parts])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    save(options.out, data)
    print(f"{options.out}: {len(data['rows'])} rows of "
          f"{len(options.parts)} parts")
    return 0


if __name__ == "__main__":
    end_with(main)
