#!/usr/bin/env python3
"""Range searches of word lists by edit distance, beside rivals.

    benchs/bench_words.py queries /usr/share/dict/spanish spanish.queries
    benchs/bench_words.py cpu --out benchs/results/cpu/words.json
    benchs/bench_words.py gpu --program bench_words --out words.json

Queries are words of the list with one random edit each (word_queries.py). `gpu`
runs the program bench_words (benchs/words/BenchWords.cpp), then the cross
product of the package `stringzillas-cuda`. `cpu` times
faiss_bits.EditDistanceIndex and `rapidfuzz.process.cdist`, which gets the
distance as score_cutoff and the threads as workers. Both rivals return a matrix
of all distances: they get fewer queries, some hundred at a time. Times on the
CPU are the least of some runs; `cpu_ms` counts all threads' time alone, which
other programs on the machine disturb less. Debian has the lists in the packages wspanish and
wbritish-huge.
"""

import argparse
import datetime
import importlib.util
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from result_file import load, save
from word_queries import SEED, make_queries, read_lines

LISTS = {
    "spanish": "/usr/share/dict/spanish",
    "british-huge": "/usr/share/dict/british-english-huge",
}
RADII = (1, 2, 3)
# The methods of the paper, and how many queries each gets on a CPU.
CPU_METHODS = {"trie": 40000, "list_of_clusters": 2000, "sss": 2000,
               "brute_force": 1000}
#: Making its clusters takes minutes there.
LEFT_OUT = {("british-huge", "list_of_clusters"), ("british-huge", "sss")}


def cpu_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def least(call, runs):
    """The shortest times of some runs in ms, by the clock and of all threads
    together, and the last result."""
    walls, threads = [], []
    for _ in range(runs):
        wall, thread = time.perf_counter(), time.process_time()
        result = call()
        walls.append(1e3 * (time.perf_counter() - wall))
        threads.append(1e3 * (time.process_time() - thread))
    return {
        "ms": float(f"{min(walls):.5g}"), "cpu_ms": float(f"{min(threads):.5g}")
    }, result


class Bench:
    def __init__(self, args, meta):
        self.args = args
        self.data = {"meta": meta, "rows": []}

    def add(self, **row):
        self.data["rows"].append({"bench": "words", **row})
        save(self.args.out, self.data)
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def lists(self):
        for name in self.args.dictionaries.split(","):
            words = read_lines(getattr(self.args, name.replace("-", "_")))
            yield name, words, make_queries(words, self.args.queries)


# ---- on the CPU ---------------------------------------------------------------


def cpu(args):
    import faiss

    import faiss_bits
    import rapidfuzz

    threads = faiss.omp_get_max_threads()
    meta = {
        "cpu": cpu_name(), "cores": threads, "faiss_bits": faiss_bits.__version__,
        "rapidfuzz": rapidfuzz.__version__, "commit": args.commit,
        "date": args.date, "seed": SEED, "note": args.note,
    }
    bench = Bench(args, meta)
    for name, words, queries in bench.lists():
        index = faiss_bits.EditDistanceIndex(words, "cpu")
        for r in RADII:
            for method, count in CPU_METHODS.items():
                if (name, method) in LEFT_OUT:
                    continue
                asked = queries[:count]
                index.range_search(asked[:1], r, method)  # makes what it needs
                times, found = least(
                    lambda: index.range_search(asked, r, method), args.runs
                )
                bench.add(
                    method=method, device="cpu", dictionary=name,
                    words=len(words), queries=len(asked), r=r, threads=threads,
                    **times, results=len(found[2]),
                )
            run_rapidfuzz(bench, name, words, queries[:1000], r, threads)


def run_rapidfuzz(bench, name, words, queries, r, threads):
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    def run():
        results = 0
        for first in range(0, len(queries), 200):
            matrix = cdist(
                queries[first : first + 200], words, scorer=Levenshtein.distance,
                score_cutoff=r, dtype=np.uint8, workers=threads,
            )
            results += int(np.count_nonzero(matrix <= r)) if not timing else 0
        return results

    timing = False
    results = run()
    timing = True
    times, _ = least(run, bench.args.runs)
    bench.add(
        method="rapidfuzz", device="cpu", dictionary=name, words=len(words),
        queries=len(queries), r=r, threads=threads, **times, results=results,
    )


# ---- on a GPU -----------------------------------------------------------------


def gpu(args):
    bench = None
    for name in args.dictionaries.split(","):
        words = getattr(args, name.replace("-", "_"))
        queries = Path(args.out).with_name(f"{name}.queries")
        lines = make_queries(read_lines(words), args.queries)
        queries.write_text("\n".join(lines) + "\n", encoding="utf-8")
        part = Path(args.out).with_name(f"{name}.json")
        methods = [
            m for m in args.methods.split(",") if (name, m) not in LEFT_OUT
        ]
        command = [
            args.program, "--out", part, "--words", words, "--queries", queries,
            "--dictionary", name, "--methods", ",".join(methods),
            "--commit", args.commit, "--date", args.date,
        ]
        if name == "spanish" and args.threads:
            command += ["--threads", args.threads]
        subprocess.run(command, check=True)
        found = load(part)
        part.unlink()
        if bench is None:
            meta = {**found["meta"], "cpu": cpu_name(), "seed": SEED}
            meta.pop("read_bw_gbps", None)
            bench = Bench(args, meta)
        bench.data["rows"] += found["rows"]
        save(args.out, bench.data)
        if importlib.util.find_spec("stringzillas"):
            run_stringzillas(bench, name, read_lines(words), lines)
        else:
            print("stringzillas-cuda is not installed: left out", flush=True)


def run_stringzillas(bench, name, words, queries):
    """All distances of some queries, as the package gives them: a matrix."""
    import stringzilla as sz
    import stringzillas as szs

    bench.data["meta"]["stringzillas-cuda"] = szs.__version__
    scope = szs.DeviceScope(gpu_device=0)
    engine = szs.LevenshteinDistancesUTF8(capabilities=scope)
    count = 256
    asked, all_words = sz.Strs(queries[:count]), sz.Strs(words)
    out = np.zeros((count, len(words)), np.uint64)

    def run():
        return engine(asked, all_words, device=scope, out=out)

    run()
    times, _ = least(run, 3)
    for r in RADII:  # the same for every distance
        bench.add(
            method="stringzillas-cuda", device="gpu", dictionary=name,
            words=len(words), queries=count, r=r, ms=times["ms"],
            results=int(np.count_nonzero(out <= r)),
        )


# ---- the command line ---------------------------------------------------------


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    add = parts.add_parser("queries").add_argument
    add("list")
    add("out")
    add("--count", type=int, default=40000)
    for part in ("cpu", "gpu"):
        add = parts.add_parser(part).add_argument
        add("--out", required=True)
        add("--queries", type=int, default=40000)
        add("--dictionaries", default=",".join(LISTS))
        for name, path in LISTS.items():
            add(f"--{name}", default=path, help=f"the list (default: {path})")
        add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
        add("--date", default=datetime.date.today().isoformat())
        if part == "cpu":
            add("--runs", type=int, default=5)
            add("--note", default="", help="for meta")
        else:
            add("--program", required=True, help="the program bench_words")
            add("--methods", default=",".join(CPU_METHODS))
            add("--threads", default="", help="also on the CPU, as 1,16")
    return parser.parse_args(arguments)


def main(arguments=None):
    args = parse(arguments)
    if args.part == "queries":
        lines = make_queries(read_lines(args.list), args.count)
        Path(args.out).write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif args.part == "cpu":
        cpu(args)
    else:
        gpu(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
