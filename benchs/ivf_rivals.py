#!/usr/bin/env python3
"""Races inverted lists of several libraries: time and recall by nprobe.

    benchs/ivf_rivals.py --out ivf_rivals.json [--data sift,clustered,...]
        [--env METHOD:NAME=VALUE ...]

Every method runs in a process of its own (two builds of FAISS share none), and
--env gives it its PYTHONPATH, LD_LIBRARY_PATH and so on. All of them get the
same vectors, and but for cuVS, which trains by itself, the same centroids and
codebook, so that at one nprobe they search the same lists. They take turns,
cell by cell, on an idle GPU. "recall" is the share of the exact k nearest
neighbours, found by float64 among all vectors, that the answer has.

Methods that cannot be imported are named in the meta's "missing"; what has no
answer has a row with "why" and no "ms".
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from program import end_with
from result_file import save

METHODS = ("faiss_bits", "faiss", "faiss_115", "faiss_cuvs", "cuvs", "flashlib")
#: {data: (n, d, nlist, queries)}
DATA = {"sift": (99000, 128, 1024, 1000),
        "fashion_mnist": (60000, 784, 1024, 10000),
        "clustered": (1 << 20, 128, 1024, 10240),
        "clustered_10m": (10_000_000, 96, 4096, 10240)}
#: Queries of a call; the last is all of them.
QS = (1, 1024)
NPROBES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Kinds of indexes of each data set.
INDEXES = {"sift": ("ivf_flat", "ivf_sq8", "ivf_pq32"),
           "fashion_mnist": ("ivf_flat", "ivf_sq8"),
           "clustered": ("ivf_flat", "ivf_sq8", "ivf_pq32"),
           "clustered_10m": ("ivf_flat", "ivf_pq32")}
K = 10
#: Queries that the recall is of.
CHECKED = 1000


def meta_of(options):
    """What the machine is."""
    import torch

    meta = {"gpu": "none (CPU)", "driver": "none", "cuda": "none"}
    if options.device != "cpu":
        from bench_dropin import smi

        major, minor = torch.cuda.get_device_capability()
        meta = {"gpu": torch.cuda.get_device_name(),
                "compute_capability": 10 * major + minor,
                "driver": smi("driver_version"), "cuda": torch.version.cuda}
    return meta | {"torch": torch.__version__, "commit": options.commit,
                   "date": options.date, "seed": options.seed}


def why_missing(name, options):
    """Why a data set is not to be had, or None."""
    if name.startswith("clustered"):
        return None
    import flat_data

    return flat_data.Data(options.device).why_missing(name)


def prepare(data, nlist, qs, file, options):
    """Trains, finds the exact answers and writes both to the file. Returns
    {(q, nprobe): pairs of a query and a vector of a list that it probes}."""
    import torch
    from ivf_shared import exact, make_data, nearest, pairs, train

    x, queries = make_data(**data, device=options.device)
    given = train(x, nlist, options.parts[data["name"]], options.seed + 1)
    given["truth"] = exact(x, queries[: options.check], options.k)
    given["first"] = x[:16]
    torch.save({key: value.cpu().clone() for key, value in given.items()}, file)
    lengths = torch.bincount(
        nearest(x, given["centroids"])[:, 0], minlength=nlist)
    count = {
        (q, nprobe): pairs(queries[:q], given["centroids"], lengths, nprobe)
        for q in qs for nprobe in options.nprobes if nprobe <= nlist}
    del x, queries, given, lengths
    if options.device != "cpu":
        torch.cuda.empty_cache()
    return count


class Process:
    """A worker; read() raises RuntimeError where it has died."""

    def __init__(self, name, device, more):
        self.name = name
        self.own_lists = False
        self.child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("ivf_worker.py")),
             name, device],
            env=os.environ | more, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)

    def read(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{self.name} ended with status {self.child.wait()}")
        return json.loads(line)

    def tell(self, **request):
        try:
            print(json.dumps(request), file=self.child.stdin, flush=True)
        except BrokenPipeError:
            pass  # read() says it

    def end(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()


class Race:
    def __init__(self, options):
        self.options = options
        self.begin = time.monotonic()
        self.result = {"meta": {}, "rows": []}
        self.processes = []
        self.times = {}

    def spent(self):
        return time.monotonic() - self.begin > self.options.max_seconds

    def start(self):
        """Starts everyone together: to import takes longer than many cells."""
        meta = self.result["meta"]
        meta.update(meta_of(self.options))
        started = [Process(name, self.options.device,
                           self.options.env.get(name, {}))
                   for name in self.options.methods]
        missing = {}
        for process in started:
            try:
                said = process.read()
            except RuntimeError as error:
                said = {"why": str(error)}
            if "why" in said:
                missing[process.name] = said["why"]
                print(f"note: {process.name} is left out: {said['why']}")
                process.end()
                continue
            process.own_lists = said["own_lists"]
            # The FAISS that ours is built with.
            key = {"faiss_bits": "faiss"}.get(process.name, process.name)
            meta[key] = said["version"]
            self.processes.append(process)
        if missing:
            meta["missing"] = missing

    def say(self, process, **request):
        """An answer; one that died is not asked again."""
        process.tell(**request)
        return self.hear(process)

    def hear(self, process):
        try:
            return process.read()
        except RuntimeError as error:
            self.lose(process, error)
            return {"why": f"failed: {error}"}

    def say_to_all(self, **request):
        """[(process, answer)]; they work together, so nothing is timed."""
        asked = list(self.processes)
        for process in asked:
            process.tell(**request)
        return [(process, self.hear(process)) for process in asked]

    def lose(self, process, error):
        print(f"note: {error}", flush=True)
        self.processes.remove(process)
        self.result["meta"].setdefault("missing", {})[process.name] = str(error)

    def run_data(self, name, folder):
        options = self.options
        n, d, nlist, queries = options.sizes or DATA[name]
        qs = sorted(options.qs or [q for q in QS if q < queries] + [queries])
        data = {"name": name, "n": n, "d": d, "q": queries,
                "seed": options.seed}
        file = str(Path(folder) / f"{name}.pt")
        count = prepare(data, nlist, qs, file, options)
        self.note(f"{name}: trained")
        for process, said in self.say_to_all(do="load", file=file, **data):
            if "why" in said and process in self.processes:
                self.lose(process, f"{process.name}: {said['why']}")
                process.end()
        cell = {"data": name, "n": n, "d": d, "nlist": nlist}
        for index in options.indexes or INDEXES[name]:
            self.run_index({"index": index, **cell}, qs, count)

    def run_index(self, cell, qs, count):
        """Cell by cell, the methods in turn."""
        racing = []
        where = f"{cell['data']} {cell['index']}"
        for process, said in self.say_to_all(
                do="build", index=cell["index"]):
            if "why" in said:
                self.note(f"{where} {process.name}: {said['why']}")
                self.result["meta"].setdefault("no_index", {})[
                    f"{where} {process.name}"] = said["why"]
            else:
                self.note(f"{where} {process.name}: built in "
                          f"{said['build_s']:.2f} s")
                racing.append(process)
        self.times = {}
        for q in reversed(qs):
            for nprobe in self.options.nprobes:
                if nprobe > cell["nlist"]:
                    break
                if self.spent():
                    print(f"--max-seconds is spent before {where} q={q} "
                          f"nprobe={nprobe}")
                    return
                for process in [p for p in racing if p in self.processes]:
                    self.search(process, cell | {
                        "nprobe": nprobe, "q": q, "k": self.options.k}, count)
        self.save()

    def search(self, process, cell, count):
        q, nprobe = cell["q"], cell["nprobe"]
        known = self.times.get((process.name, q))
        guess = known[1] * nprobe / known[0] if known else 0
        if guess > self.options.max_ms:
            said = {"why": f"about {guess:.0f} ms a call"}
        else:
            said = self.say(process, do="search", q=q, k=cell["k"],
                            nprobe=nprobe)
        if "ms" in said:
            self.times[process.name, q] = nprobe, said["ms"]
        row = {"bench": "ivf", "method": process.name, **cell}
        row |= {"own_lists": 1} if process.own_lists else {
            "pairs": count[q, nprobe]}
        self.result["rows"].append(row | {"ms": None} | said)
        text = said.get("why") or (
            f"{said['ms']:.4f} ms ({said['repeats']}) recall "
            f"{said['recall']:.4f}")
        self.note(f"{cell['data']} {cell['index']} q={q} nprobe={nprobe} "
                  f"{process.name:10} {text}")

    def note(self, text):
        print(f"{time.monotonic() - self.begin:5.0f}s {text}", flush=True)

    def save(self):
        save(self.options.out, self.result)


def run(options):
    """Returns how many rows of faiss_bits failed."""
    race = Race(options)
    race.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in options.data:
                why = why_missing(name, options)
                if why:
                    print(f"note: {name} is left out: {why}", flush=True)
                elif not race.spent():
                    race.run_data(name, folder)
        race.save()
    finally:
        for process in race.processes:
            process.end()
    rows = [row for row in race.result["rows"] if row["method"] == "faiss_bits"]
    failed = [row for row in rows if row.get("why", "").startswith("failed")]
    if "faiss_bits" in options.methods and not rows:
        print("no row of faiss_bits", file=sys.stderr)
        return 1
    return len(failed)


def read_env(values, parser):
    """{method: {NAME: VALUE}} of METHOD:NAME=VALUE."""
    env = {}
    for text in values:
        method, colon, setting = text.partition(":")
        name, equals, value = setting.partition("=")
        if method not in METHODS or not colon or not equals or not name:
            parser.error(f"--env {text} is no METHOD:NAME=VALUE with a method "
                         f"of {', '.join(METHODS)}")
        env.setdefault(method, {})[name] = value
    return env


def parse(arguments):
    """Command line to a namespace."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument

    def names(text):
        return text.split(",")

    def numbers(text):
        return [int(value) for value in text.split(",")]

    add("--out", required=True, help="JSON file to write")
    add("--methods", type=names, default=list(METHODS),
        help=f"of {','.join(METHODS)} (default: all)")
    add("--data", type=names, default=list(DATA),
        help=f"of {','.join(DATA)} (default: all)")
    add("--indexes", type=names,
        help="ivf_flat, ivf_sq8, ivf_pqM (default: by data)")
    add("--nprobes", type=numbers, default=list(NPROBES),
        help="rising (default: powers of two up to 256)")
    add("--qs", type=numbers, help="queries a call (default: by data)")
    add("--k", type=int, default=K, help=f"neighbours (default: {K})")
    add("--sizes", type=numbers, metavar="N,D,NLIST,QUERIES",
        help="of made data, in place of the data's own")
    add("--check", type=int, default=CHECKED,
        help=f"queries of which the recall is (default: {CHECKED})")
    add("--seed", type=int, default=1, help="of vectors and training")
    add("--env", action="append", default=[], metavar="METHOD:NAME=VALUE",
        help="of the process of a method; may be repeated")
    add("--max-ms", type=float, default=400,
        help="leave out what takes longer a call, by its time for fewer lists")
    add("--max-seconds", type=float, default=float("inf"),
        help="start no cell after that")
    add("--device", default="cuda", help="cpu: to try this script")
    add("--commit", default=os.environ.get("FAISS_BITS_COMMIT", "unknown"))
    options = parser.parse_args(arguments)
    check(options, parser)
    options.env = read_env(options.env, parser)
    options.date = datetime.date.today().isoformat()
    return options


def check(options, parser):
    """Names the option that is wrong, and exits."""
    from_lists = [("--methods", options.methods, METHODS),
                  ("--data", options.data, DATA)]
    for option, values, known in from_lists:
        for value in values:
            if value not in known:
                parser.error(f"{option} {value} is none of {', '.join(known)}")
    for index in options.indexes or []:
        parts = index.removeprefix("ivf_pq")
        if index not in ("ivf_flat", "ivf_sq8") and not (
                index.startswith("ivf_pq") and parts.isdigit() and int(parts)):
            parser.error(f"--indexes {index} is none of ivf_flat, ivf_sq8, "
                         "ivf_pqM")
    numbers = {"--nprobes": options.nprobes, "--qs": options.qs or [1],
               "--k": [options.k], "--check": [options.check],
               "--sizes": options.sizes or [1]}
    for option, values in numbers.items():
        if min(values) < 1:
            parser.error(f"{option} {min(values)} is not positive")
    if options.nprobes != sorted(options.nprobes):
        parser.error(f"--nprobes {options.nprobes} do not rise")
    check_sizes(options, parser)


def check_sizes(options, parser):
    """Of each data set; sets options.parts, {data: parts of its codes}."""
    made = [name for name in options.data if name.startswith("clustered")]
    if options.sizes and made != options.data:
        parser.error("--sizes are of made data: clustered, clustered_10m")
    if options.sizes and len(options.sizes) != 4:
        parser.error(f"--sizes {options.sizes} are not N,D,NLIST,QUERIES")
    options.parts = {}
    for name in options.data:
        queries = (options.sizes or DATA[name])[3]
        if options.qs and max(options.qs) > queries:
            parser.error(f"--qs {max(options.qs)} is above the {queries} "
                         f"queries of {name}")
        parts = {int(index[6:]) for index in options.indexes or INDEXES[name]
                 if index.startswith("ivf_pq")}
        if len(parts) > 1:
            parser.error(f"--indexes: ivf_pq of {sorted(parts)} parts, one "
                         "number a run")
        options.parts[name] = parts.pop() if parts else None


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments)
    failed = run(options)
    if failed:
        print(f"{failed} rows of faiss_bits failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    end_with(main)
