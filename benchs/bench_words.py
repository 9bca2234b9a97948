#!/usr/bin/env python3
"""Range searches of word lists by edit distance, beside rivals.

    benchs/bench_words.py queries /usr/share/dict/spanish spanish.queries
    benchs/bench_words.py cpu --out benchs/results/cpu/words.json
    benchs/bench_words.py gpu --program bench_words --out words.json
    benchs/bench_words.py check --dictionaries spanish,british-huge

Queries are words of the list with one random edit each (word_queries.py). `gpu`
runs the program bench_words (benchs/words/BenchWords.cpp), then the cross
product of the package `stringzillas-cuda`. `cpu` times
faiss_bits.EditDistanceIndex and `rapidfuzz.process.cdist`, which gets the
distance as score_cutoff and the threads as workers. Both rivals return a matrix
of all distances: they get fewer queries, some hundred at a time. Times on the
CPU are the least of some runs; `cpu_ms` counts all threads' time alone, which
other programs on the machine disturb less. Debian has the lists in the packages
wspanish and wbritish-huge. The dictionary `phrases` is made of the latter: 40,000
texts of ten words, whose queries have more than 63 letters mostly.

`check` measures nothing: it compares every answer of faiss_bits.EditDistanceIndex
on the CPU, for every query and radius, with rapidfuzz's distances, and fails if one
differs. Those of the GPU are compared with the CPU's by the program bench_words.

With --add what --out has and this run does not measure stays there, and each row
that stays says of which commit, date and processor it is, if of others.
"""

import argparse
import datetime
import importlib.util
import os
import platform
import subprocess
import time
from pathlib import Path

import numpy as np

from program import end_with
from result_file import cell_of, load, save
from word_queries import SEED, make_phrases, make_queries, read_lines

LISTS = {
    "spanish": "/usr/share/dict/spanish",
    "british-huge": "/usr/share/dict/british-english-huge",
}
PHRASES = "phrases"
RADII = (1, 2, 3)
# The methods of the paper, and how many queries each gets on a CPU.
CPU_METHODS = {"trie": 40000, "list_of_clusters": 2000, "sss": 2000,
               "brute_force": 1000}
#: What a dictionary has less of: the trie of a GPU takes 63 letters, and all
#: distances of long texts take minutes on a CPU.
GPU_METHODS = {PHRASES: ("brute_force", "list_of_clusters", "sss")}
PHRASE_QUERIES = 4000
PHRASE_CPU_METHODS = {"trie": PHRASE_QUERIES}


def words_of(args, name):
    """(words, queries) of a dictionary."""
    source = "british-huge" if name == PHRASES else name
    words = read_lines(getattr(args, source.replace("-", "_")))
    count = args.queries
    if name == PHRASES:
        words, count = make_phrases(words), min(count, PHRASE_QUERIES)
    return words, make_queries(words, count)


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
        if args.add and Path(args.out).exists():
            old = load(args.out)
            for name in ("gpu", "seed"):
                if old["meta"].get(name) != meta.get(name):
                    raise SystemExit(f"{args.out} is of another {name}")
            self.data = {"meta": {**old["meta"], **meta},
                         "rows": kept(old["rows"], old["meta"], meta)}

    def extend(self, rows):
        """Rows in place of those of the same method and cell."""
        new = {(row["method"], cell_of(row)) for row in rows}
        self.data["rows"] = [
            row for row in self.data["rows"]
            if (row["method"], cell_of(row)) not in new
        ] + rows
        save(self.args.out, self.data)

    def add(self, **row):
        self.extend([{"bench": "words", **row}])
        print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)

    def lists(self):
        for name in self.args.dictionaries.split(","):
            yield name, *words_of(self.args, name)


def kept(rows, old, new):
    """Rows that say where they are from, where that is another commit, date or
    processor than that of new ones."""
    own = {name: old[name] for name in ("commit", "date", "cpu")
           if name in old and old[name] != new.get(name)}
    return [{**row, **{k: row.get(k, v) for k, v in own.items()}} for row in rows]


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
            methods = PHRASE_CPU_METHODS if name == PHRASES else CPU_METHODS
            for method, count in methods.items():
                if method not in args.methods.split(","):
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
            if "rapidfuzz" in args.methods.split(","):
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


def check(args):
    """The number of (query, radius) whose ranges are not rapidfuzz's."""
    import faiss_bits

    wrong = 0
    for name in args.dictionaries.split(","):
        words, queries = words_of(args, name)
        index = faiss_bits.EditDistanceIndex(words, "cpu")
        found = {r: index.range_search(queries, r) for r in RADII}
        bad = different_ranges(words, queries, found)
        results = {r: len(I) for r, (_, _, I) in found.items()}
        print(f"{name}: {len(words):,} words, {len(queries):,} queries, results at "
              f"each distance {results}, ranges that differ: {bad}", flush=True)
        wrong += bad
    return wrong


def rapidfuzz_matrix(queries, words, most):
    """Distances up to `most`; what is beyond is more."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    return cdist(queries, words, scorer=Levenshtein.distance, score_cutoff=most,
                 dtype=np.uint8)


def different_ranges(words, queries, found, matrix_of=rapidfuzz_matrix, step=100):
    """How many of `found`, {r: (lims, D, I)}, are not the words within r edits by
    matrix_of, by ascending id."""
    bad = 0
    for first in range(0, len(queries), step):
        matrix = matrix_of(queries[first : first + step], words, max(found))
        for r, (lims, D, I) in found.items():
            for row, distances in enumerate(matrix, first):
                ids = np.flatnonzero(distances <= r)
                own = slice(lims[row], lims[row + 1])
                bad += not (np.array_equal(I[own], ids)
                            and np.array_equal(D[own], distances[ids]))
    return bad


# ---- on a GPU -----------------------------------------------------------------


def gpu(args):
    bench = None
    for name in args.dictionaries.split(","):
        words, lines = words_of(args, name)
        texts = {}
        for kind, some in (("words", words), ("queries", lines)):
            texts[kind] = Path(args.out).with_name(f"{name}.{kind}")
            texts[kind].write_text("\n".join(some) + "\n", encoding="utf-8")
        part = Path(args.out).with_name(f"{name}.json")
        methods = [
            m for m in args.methods.split(",")
            if m in GPU_METHODS.get(name, CPU_METHODS)
        ]
        command = [
            args.program, "--out", part, "--words", texts["words"],
            "--queries", texts["queries"], "--dictionary", name,
            "--commit", args.commit, "--date", args.date,
        ]
        runs = [["--methods", ",".join(methods)]]
        if name == "spanish" and args.threads:
            runs[0] += ["--threads", args.threads]
        if name == PHRASES and args.threads:
            runs.append(["--methods", ",".join(PHRASE_CPU_METHODS), "--gpu", "0",
                         "--threads", args.threads])
        rows = []
        for run in runs:
            subprocess.run([*command, *run], check=True)
            found = load(part)
            rows += found["rows"]
        part.unlink()
        texts["words"].unlink()
        if bench is None:
            meta = {**found["meta"], "cpu": cpu_name(), "seed": SEED}
            meta.pop("read_bw_gbps", None)
            bench = Bench(args, meta)
        bench.extend(rows)
        if not importlib.util.find_spec("stringzillas"):
            print("stringzillas-cuda is not installed: left out", flush=True)
        elif name != PHRASES and "stringzillas-cuda" in args.methods.split(","):
            run_stringzillas(bench, name, words, lines)


def run_stringzillas(bench, name, words, queries):
    """All distances of some queries, as the package gives them: a matrix."""
    import stringzilla as sz
    import stringzillas as szs

    bench.data["meta"]["stringzillas-cuda"] = szs.__version__
    scope = szs.DeviceScope(gpu_device=0)
    engine = szs.LevenshteinDistancesUTF8(capabilities=scope)
    asked, all_words = queries[:256], sz.Strs(words)

    def run():
        return engine(texts, all_words, device=scope, out=out)

    while True:
        texts = sz.Strs(asked)
        out = np.zeros((len(asked), len(words)), np.uint64)
        try:
            run()
            break
        except MemoryError:  # of the GPU: British words on one of 80 GB
            if len(asked) < 16:
                raise
            asked = asked[: len(asked) // 2]
    times, _ = least(run, 3)
    for r in RADII:  # the same for every distance
        bench.add(
            method="stringzillas-cuda", device="gpu", dictionary=name,
            words=len(words), queries=len(asked), r=r, ms=times["ms"],
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
    for part in ("cpu", "gpu", "check"):
        add = parts.add_parser(part).add_argument
        add("--queries", type=int, default=40000)
        add("--dictionaries", default=",".join((*LISTS, PHRASES)))
        for name, path in LISTS.items():
            add(f"--{name}", default=path, help=f"the list (default: {path})")
        if part == "check":
            continue
        add("--out", required=True)
        add("--add", action="store_true", help="keep the other rows of --out")
        add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
        add("--date", default=datetime.date.today().isoformat())
        rival = "rapidfuzz" if part == "cpu" else "stringzillas-cuda"
        add("--methods", default=",".join((*CPU_METHODS, rival)))
        if part == "cpu":
            add("--runs", type=int, default=5)
            add("--note", default="", help="for meta")
        else:
            add("--program", required=True, help="the program bench_words")
            add("--threads", default="", help="also on the CPU, as 1,16")
    return parser.parse_args(arguments)


def main(arguments=None):
    args = parse(arguments)
    if args.part == "queries":
        lines = make_queries(read_lines(args.list), args.count)
        Path(args.out).write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif args.part == "check":
        return int(check(args) > 0)
    elif args.part == "cpu":
        cpu(args)
    else:
        gpu(args)
    return 0


if __name__ == "__main__":
    end_with(main)
