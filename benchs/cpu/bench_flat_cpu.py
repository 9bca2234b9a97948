#!/usr/bin/env python3
"""Times the CPU search against FAISS and others, all in one run.

    benchs/cpu/bench_flat_cpu.py --out benchs/results/cpu/flat.json \\
        --commit "$(git rev-parse HEAD)" --wheel-python wheelenv/bin/python

Every method lives in a process of its library (bench_worker.py). The methods
of a cell take turns, round by round, so that what else the machine does hits
all of them; the medians of the rounds are the rows. benchs/cpu/README.md says more.
"""

import platform
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import flat_cells  # noqa: E402
from flat_options import cores, parse  # noqa: E402
from result_file import save  # noqa: E402
from turns import (  # noqa: E402
    FOR_SCALE, PAUSE, TURN, Turn, rounds_for, wanted_rounds)
from worker_process import WorkerError, WorkerProcess  # noqa: E402

OURS = "faiss_bits"
#: The same without canonical distances and their proof.
PLAIN = "faiss_bits_plain"
#: Ours of the commit of --before.
BEFORE = "faiss_bits_before"
#: Forced variants, of those that the plan says can run.
VARIANTS = ("buffered", "var1", "var5", "var6", "direct")


def say(text):
    print(text, flush=True)


def available_bytes():
    """Memory that can be had now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("/proc/meminfo has no MemAvailable")


def cpu_name():
    """As Linux calls it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def digits(value):
    return float(f"{value:.5g}")


class Bench:
    """The run: workers, the file, the cells one after another."""

    def __init__(self, options):
        self.options, self.begin = options, time.monotonic()
        self.rows, self.wrong = [], 0
        self.workers, self.holders, self.data = [], {}, None
        self.native = self.start("native", sys.executable, options.library)
        if options.before:
            self.start("before", sys.executable, options.before)
        if options.wheel_python:
            self.start("wheel", options.wheel_python)
            if not options.methods or set(FOR_SCALE) & set(options.methods):
                self.start("scale", options.wheel_python)
        self.meta = self.collect_meta()

    def start(self, kind, python, *arguments):
        worker = WorkerProcess(kind, python, self.options.threads, *arguments)
        self.workers.append(worker)
        return worker

    def close(self):
        for worker in self.workers:
            worker.close()

    def seconds(self):
        return time.monotonic() - self.begin

    def collect_meta(self):
        about = dict(self.native.about)
        model = about.pop("model")
        meta = {"cpu": cpu_name(), "cores": cores(),
                "threads": self.options.threads, "faiss": about.pop("faiss"),
                **about}
        for worker in self.workers:
            if worker is not self.native:
                meta.update(worker.about)
        if self.options.before:
            meta["before_commit"] = self.options.before_commit
        meta |= {"commit": self.options.commit, "date": self.options.date,
                 "read_bw_gbps": digits(self.native.ask("bandwidth")["gbps"]),
                 "peak_gflops": 0.0, "peak_gflops_float64": 0.0}
        # Those of one thread, as the cost model has them.
        meta |= {f"model_{name}": digits(value)
                 for name, value in model.items()}
        return meta

    def measure_peak(self):
        """The best of all that were measured: a share of it claims no more."""
        for name, dtype in (("peak_gflops", "float32"),
                            ("peak_gflops_float64", "float64")):
            rate = digits(self.native.ask("peak", dtype=dtype)["gflops"])
            self.meta[name] = max(self.meta[name], rate)

    def save(self):
        save(self.options.out, {"meta": self.meta, "rows": self.rows})

    # ---- cells ----------------------------------------------------------

    def run(self, cells):
        """Measures all; returns whether all answers were right."""
        most_queries, done = {}, set()
        for cell in cells:
            most_queries[cell.data] = max(cell.q,
                                          most_queries.get(cell.data, 0))
        self.measure_peak()
        self.save()
        for place, (cell, parties) in enumerate(cells.items()):
            if self.seconds() > self.options.max_seconds:
                say(f"--max-seconds is spent: {len(cells) - place} of "
                    f"{len(cells)} cells left out")
                break
            need, have = flat_cells.bytes_needed(cell, parties), 0
            if self.data != cell.data:
                self.unload()
                have = available_bytes()
                if need > 0.9 * have:
                    say(f"note: {cell} left out: needs {need / 2**30:.1f} GiB, "
                        f"{have / 2**30:.1f} are free")
                    continue
            if self.options.together and cell in done:
                continue
            say(f"{self.seconds():5.0f}s cell {place + 1} of {len(cells)}: "
                f"{cell}")
            try:
                self.load(cell, parties, most_queries[cell.data])
                if self.options.together:
                    group = {c: p for c, p in cells.items()
                             if c.data == cell.data}
                    done |= group.keys()
                    self.run_together(group)
                else:
                    self.run_cell(cell, parties)
            except WorkerError as error:
                self.wrong += 1
                say(f"WRONG: {cell}: {error}")
                if any(w.process.poll() is not None for w in self.workers):
                    break
        return self.wrong == 0

    def unload(self):
        for worker in self.workers:
            worker.ask("unload")
        self.data, self.holders = None, {}

    def load(self, cell, parties, q):
        """Gives every worker that takes part the vectors, unless it has
        them."""
        self.data = cell.data
        for worker in self.workers:
            if worker in self.holders or not self.methods_of(worker, parties):
                continue
            n, d, metric, dtype = cell.data
            self.holders[worker] = worker.ask(
                "data", n=n, q=q, d=d, metric=metric, dtype=dtype)["checksum"]
        if len({tuple(sums) for sums in self.holders.values()}) > 1:
            raise WorkerError("the workers have made different vectors")

    def methods_of(self, worker, parties):
        """Methods of a worker that belong to the parties, as asked for."""
        def takes_part(method):
            if method == OURS:
                return bool(parties & {"ours", "variants"})
            if method == PLAIN:
                return "plain" in parties
            if method == BEFORE:
                return "before" in parties
            party = ("faiss" if method.startswith("faiss_cpu_")
                     else "gemm" if method == "gemm_heap" else "scale")
            return party in parties and (not self.options.methods
                                         or method in self.options.methods)
        return [m for m in worker.methods if takes_part(m)]

    def turns_of(self, cell, parties):
        turns = [Turn(worker, method) for worker in self.workers
                 for method in self.methods_of(worker, parties)]
        plan = self.native.ask("plan", q=cell.q, k=cell.k)
        for turn in turns:
            if turn.method == OURS:
                turn.plan = plan
        if "variants" in parties:
            turns += [Turn(self.native, OURS, name) for name in VARIANTS
                      if name in plan["predicted_ms"]]
            for turn in turns:
                if turn.is_forced:
                    turn.plan = self.native.ask("plan", q=cell.q, k=cell.k,
                                                variant=turn.variant)
        return turns

    def run_cell(self, cell, parties):
        turns = self.turns_of(cell, parties)
        for turn in turns:
            turn.begin(cell)
        self.check(cell, turns)
        best = min(turn.first for turn in turns)
        rounds = min(self.options.rounds,
                     rounds_for(sum(turn.first for turn in turns)))
        reads = []
        for number in range(rounds):
            shift = number % len(turns)
            for turn in turns[shift:] + turns[:shift]:
                if number < wanted_rounds(turn, rounds, best):
                    turn.play(cell)
            if cell.q == 1:
                time.sleep(PAUSE)
                reads.append(min(self.native.ask("read", calls=3)["ms"]))
        if cell.d >= 512:
            self.measure_peak()
        for turn in turns:
            if turn.times:
                self.add(cell, turn, reads)
        self.save()

    def run_together(self, cells):
        """The cells of the same vectors, in which a method takes one turn for
        all of them: a pause and some calls of each."""
        turns = {cell: self.turns_of(cell, parties)
                 for cell, parties in cells.items()}
        names = list(dict.fromkeys(
            str(turn) for each in turns.values() for turn in each))

        def take_turn(name, act):
            """After calls that do not count: threads that have slept may be
            late for some milliseconds."""
            time.sleep(PAUSE)
            mine = [(turn, cell) for cell, each in turns.items()
                    for turn in each if str(turn) == name]
            mine[0][0].wake(mine[0][1])
            for turn, cell in mine:
                act(turn, cell)

        for name in names:
            take_turn(name, lambda turn, cell: turn.begin(cell, pause=False))
        for cell, each in turns.items():
            self.check(cell, each)
        for number in range(self.options.rounds):
            shift = number % len(names)

            def act(turn, cell, number=number):
                # Long ones need not be known so well.
                if number < 2 or turn.first < TURN:
                    turn.play(cell, short=True)

            for name in names[shift:] + names[:shift]:
                take_turn(name, act)
        for cell, each in turns.items():
            say(f"      {cell}")
            for turn in each:
                self.add(cell, turn, [])
        self.save()

    def check(self, cell, turns):
        """Our answers against the definition, all others against ours."""
        ours = next((t for t in turns if t.method == OURS), None)
        for turn in turns:
            if ours is None:
                break
            share = self.native.ask("compare", ours=ours.answer[1],
                                    theirs=turn.answer[1])["agreed"]
            if share < 1:
                self.wrong += 1
                say(f"WRONG: {turn} agrees with ours on {share:.4f} of the ids")
            if turn.method in (OURS, PLAIN, BEFORE):
                D, I = turn.answer
                excess = self.native.ask("verify", D=D, I=I)["excess"]
                if not excess <= 1:
                    self.wrong += 1
                    say(f"WRONG: a distance of {turn} is off by {excess:.3g} "
                        "times what rounding may do")

    def add(self, cell, turn, reads):
        """The row of a method, into the list and the log."""
        ms = statistics.median(turn.times)
        row = {"bench": "flat_cpu", "method": turn.method}
        if turn.plan:
            row["variant"] = turn.plan["variant"]
        if turn.is_forced:
            row["forced"] = 1
        row |= {**cell._asdict(), "ms": digits(ms),
                "gflops": digits(1e3 * cell.gflop / ms),
                "rounds": len(turn.times), "least_ms": digits(min(turn.times))}
        if turn.plan:
            row["predicted_ms"] = digits(
                turn.plan["predicted_ms"].get(turn.plan["variant"],
                                              1e3 * turn.plan["seconds"]))
            if reads and not turn.is_forced:
                row["read_ms"] = digits(statistics.median(reads))
        if turn.extras:
            row |= {name: digits(statistics.median(e[name]
                                                   for e in turn.extras))
                    for name in turn.extras[0]}
        self.rows.append(row)
        note = f"  {turn.plan['plan']}" if turn.plan else ""
        say(f"        {str(turn):22s} {ms:11.4g} ms {row['gflops']:7.1f} "
            f"GFLOP/s ({len(turn.times)}){note}")


def main(arguments=None):
    """Returns the exit status."""
    options = parse(arguments, __doc__)
    cells = flat_cells.of_parties(flat_cells.cells_of(options.cells),
                                  options.parties)
    cells = flat_cells.keep(
        cells, n=options.ns, d=options.ds, q=options.qs, k=options.ks,
        metric=options.metrics, dtype=options.dtypes)
    if not cells:
        print("no cells are left", file=sys.stderr)
        return 2
    bench = None
    try:
        bench = Bench(options)
        known = {m for worker in bench.workers for m in worker.methods}
        for method in options.methods:
            if method not in known:
                raise WorkerError(f"--methods {method} is none of "
                                  + ", ".join(sorted(known)))
        right = bench.run(cells)
    except KeyboardInterrupt:
        say("stopped; the rows of finished cells are kept")
        return 130
    except WorkerError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if bench:
            bench.close()
    say(f"{len(bench.rows)} rows in {options.out}, {bench.seconds():.0f} s, "
        f"{bench.wrong} wrong")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
