"""The command line of bench_flat_cpu.py."""

import argparse
import datetime
import os
from pathlib import Path

import flat_cells


def cores():
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0))


def numbers(text):
    return [int(part) for part in text.split(",")]


def names(text):
    return text.split(",")


def parse(arguments, description):
    """Command line to a namespace."""
    default_library = "build/release/benchs/bin/libbench_cpu.so"
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", required=True, help="JSON file, kept whole after every cell")
    add("--library", default=default_library,
        help=f"default: {default_library}")
    add("--wheel-python", metavar="PYTHON",
        help="a Python that has faiss-cpu and scikit-learn; without it, their "
             "methods are left out")
    add("--before", metavar="LIBRARY",
        help="libbench_cpu.so of a commit whose IndexFusedFlat knows no "
             "certified searches: method faiss_bits_before")
    add("--before-commit", metavar="COMMIT", default="unknown",
        help="that commit, for meta")
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"),
        help="for meta (default: $FAISS_BITS_COMMIT)")
    add("--date", default=datetime.date.today().isoformat(), help="for meta")
    add("--threads", type=int, default=cores(),
        help="of every method (default: all)")
    add("--cells", type=names, default=list(flat_cells.GROUPS),
        metavar="GROUPS", help="of " + ",".join(flat_cells.GROUPS))
    add("--methods", type=names, default=[],
        help="rivals that take part (default: all)")
    add("--parties", type=names, default=[],
        help="of flat_cells.py, ours,faiss for a short run (default: all)")
    for field in ("n", "d", "q", "k"):
        add(f"--{field}s", type=numbers, default=[],
            help=f"cells with these {field} only")
    add("--metrics", type=names, default=[], help="these metrics only")
    add("--dtypes", type=names, default=[], help="float32, float64")
    add("--together", action="store_true",
        help="cells with the same vectors share the turns of a method, which "
             "are short: for a machine that is there for a minute")
    add("--rounds", type=int, default=9,
        help="of a cell, at most (default: 9)")
    add("--max-seconds", type=float, default=float("inf"),
        help="no cell starts after this time")
    options = parser.parse_args(arguments)
    for group in options.cells:
        if group not in flat_cells.GROUPS:
            parser.error(f"--cells {group} is none of "
                         + ", ".join(flat_cells.GROUPS))
    for name in ("library", "before"):
        value = getattr(options, name)
        if value is None:
            continue
        if not Path(value).is_file():
            parser.error(f"--{name} {value}: no such file")
        setattr(options, name, str(Path(value).resolve()))
    for name in ("threads", "rounds"):
        value = getattr(options, name)
        if value < 1:
            parser.error(f"--{name} {value}: at least 1 is needed")
    return options
