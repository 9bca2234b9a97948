"""Figures in README.md and in the pages that it links are those of the results that
they name."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchs" / "results"


def words(page):
    return " ".join((ROOT / page).read_text().split())


README = words("README.md")
LIMITS = words("docs/limits.md")
EXAMPLES = (ROOT / "docs" / "examples.md").read_text()


def cells(path, *key, n=None):
    """{key: {method: row}} of what was measured on uniform data, not forced; with
    n vectors."""
    data = json.loads((RESULTS / path).read_text())
    found = {}
    for row in data["rows"]:
        if (not row.get("forced") and "data" not in row
                and n in (None, row.get("n"))):
            at = tuple(row[name] for name in key)
            found.setdefault(at, {})[row["method"]] = row
    return data["meta"], found


def test_few_queries_against_the_memory():
    meta, found = cells("h200/flat.json", "metric", "dtype", "d", "q", "k", n=2**20)

    def share(q, d):
        row = found["L2", "float32", d, q, 10]["faiss_bits"]
        assert row["n"] == 2**20
        read_ms = 4 * row["n"] * d / meta["read_bw_gbps"] / 1e6
        return f"{read_ms / row['ms']:.2f}"

    assert "memory's speed (float32, L2, k = 10, n = 2^20; computed from" in LIMITS
    for q in (1, 16):
        assert (
            f"| {q} | {share(q, 16)} | {share(q, 128)} | {share(q, 768)} |"
        ) in LIMITS
    row = found["L2", "float32", 16, 1, 10]["faiss_bits"]
    over = row["ms"] / (4 * row["n"] * 16 / meta["read_bw_gbps"] / 1e6)
    assert (
        f"one query of d = 16 takes {over:.1f} times as long as reading the "
        "vectors once"
    ) in README


def test_few_queries_against_faiss():
    _, found = cells("h200/flat.json", "metric", "dtype", "d", "q", "k", n=2**20)
    ratios = [
        row["faiss_flat"]["ms"] / row["faiss_bits"]["ms"]
        for (_, _, _, q, _), row in found.items()
        if q <= 16 and {"faiss_flat", "faiss_bits"} <= set(row)
    ]
    assert (
        f"{min(ratios):.0f} to {max(ratios):.0f} times as fast as FAISS 1.7.3 "
        "(1 to 16 queries against 2^20 vectors on an H200)"
    ) in README
    many = [
        row["faiss_flat"]["ms"] / row["faiss_bits"]["ms"]
        for (_, _, _, q, _), row in found.items()
        if q >= 1024 and {"faiss_flat", "faiss_bits"} <= set(row)
    ]
    assert (
        f"and {min(many):.0f} to {max(many):.0f} times for thousands of queries"
    ) in README


def test_few_vectors():
    _, found = cells("h200/flat_few_vectors.json", "n", "d", "q", "k")

    def span(ratios, digits):
        return f"{min(ratios):.{digits}f} to {max(ratios):.{digits}f}"

    def times(over, under, k, d=None, least=0, most=2**31):
        return [
            row[over]["ms"] / row[under]["ms"]
            for (n, dims, _, at_k), row in found.items()
            if at_k == k and d in (None, dims) and least <= n <= most
            and {over, under} <= set(row)
        ]

    ours, plain, rival = "faiss_bits", "faiss_bits_plain", "faiss_flat"
    nearest = times(rival, ours, 1, d=768, most=1024)
    more = times(rival, ours, 32, most=4096)
    few = times(ours, plain, 32, most=1024)
    many = times(ours, plain, 32, least=4096)
    assert (
        f"is found {span(nearest, 1)} times as fast as by FAISS 1.7.3, 32 "
        f"neighbours among 64 to 4,096 are {min(more):.1f} (d = 768, n = 1,024) "
        f"to {max(more):.0f} times (d = 128, n = 64) as fast; certified "
        f"searches of these take {span(few, 1)} times as long as plain ones up "
        f"to n = 1,024, and {span(many, 2)} times from 4,096 on"
    ) in LIMITS


def cpu_race(*paths):
    """{cell: the faster FAISS over ours} of the cells with both of FAISS."""
    ratios = {}
    for path in paths:
        _, found = cells(path, "n", "d", "q", "k", "metric", "dtype")
        for at, row in found.items():
            rivals = [r["ms"] for m, r in row.items() if m[:9] == "faiss_cpu"]
            if "faiss_bits" in row and len(rivals) == 2:
                ratios[at] = min(rivals) / row["faiss_bits"]["ms"]
    return ratios


def test_cpu_cells_on_two_cores():
    ratios = cpu_race("cpu/flat.json")
    assert min(ratios.values()) > 1
    l2 = [ratio for at, ratio in ratios.items() if at[4] == "L2"]
    assert (
        f"in all {len(ratios)} cells measured: L2 {min(l2):.1f} to "
        f"{max(l2):.0f} times as fast as the faster of the two"
    ) in README
    assert (
        f"{min(l2):.1f} to {max(l2):.0f} times as fast by L2 as the faster of FAISS "
        "1.7.3 and 1.15.1"
    ) in README
    assert f"L2 searches are {min(l2):.1f} times as fast as the faster" in LIMITS


def test_cpu_cells_on_sixteen_cores():
    ratios = cpu_race("cpu_xeon_16/flat_large.json", "cpu_xeon_16/flat_paper.json")
    behind = {at: ratio for at, ratio in ratios.items() if ratio < 1}
    assert len(behind) == 1
    (at, ratio), = behind.items()
    assert at == (100_000, 16, 1, 100, "L2", "float32")
    assert (
        f"faster in {len(ratios) - 1} of {len(ratios)} cells and took "
        f"{1 / ratio:.2f} times as long as the wheel in one (n = 100,000, "
        "d = 16, one query, k = 100;"
    ) in LIMITS


def test_few_queries_on_the_cpu():
    data = json.loads((RESULTS / "cpu/flat_few.json").read_text())
    at = {}
    for row in data["rows"]:
        cell = tuple(row[name] for name in ("n", "d", "q", "k"))
        at.setdefault(cell, {})[row["method"]] = row["least_ms"]
    ours, rival = (at[100_000, 16, 1, 100][method]
                   for method in ("faiss_bits", "faiss_cpu_1151"))
    assert f"takes {ours:.3g} ms on two cores, for {rival:.3g}" in LIMITS
    ratios = [
        min(ms for method, ms in times.items() if method != "faiss_bits")
        / times["faiss_bits"]
        for times in at.values()
    ]
    assert (
        f"({len(ratios)} cells of few queries, least times beside other "
        f"programs: {min(ratios):.1f} to {max(ratios):.0f} times as fast as the "
        "faster of the two;"
    ) in LIMITS


def test_few_queries_on_16_cores():
    data = json.loads(
        (RESULTS / "cpu_xeon_16/flat_few_60fb7d8.json").read_text())
    at = {}
    for row in data["rows"]:
        cell = tuple(row[name] for name in ("n", "d", "q", "k"))
        at.setdefault(cell, {})[row["method"]] = row["ms"]
    ours, rival = (at[100_000, 16, 1, 100][method]
                   for method in ("faiss_bits", "faiss_cpu_1151"))
    assert f"and {ours:.3g} ms on 16, for {rival:.3g}" in LIMITS
    ratios = [times["faiss_cpu_1151"] / times["faiss_bits"]
              for times in at.values()]
    assert (
        f"({len(ratios)} cells of few queries, {min(ratios):.1f} to "
        f"{max(ratios):.0f} times as fast as the wheel;"
    ) in LIMITS


def test_inverted_lists_on_the_cpu():
    data = json.loads((RESULTS / "cpu/ivf.json").read_text())
    at = {
        (row["q"], row["k"], row["method"]): row["least_ms"]
        for row in data["rows"]
    }

    def cell(q, k):
        ours, rival = at[q, k, "faiss_bits"], at[q, k, "faiss_cpu_1151"]
        number = f"{rival:,.0f}" if rival >= 1000 else f"{rival:.3g}"
        return f"{ours:.3g} ms for {number}"

    for q in (1, 10, 1000, 10000):
        assert f"| {q:,} | {cell(q, 10)} | {cell(q, 100)} |" in EXAMPLES


def test_tables_are_written_by_the_script(tmp_path):
    copy = tmp_path / "README.md"
    text = (ROOT / "README.md").read_text()
    copy.write_text(text)
    script = ROOT / "benchs" / "readme_table.py"
    for name in ("first", "speed"):
        begin = text.index(f"<!-- {name}: begin")
        end = text.index(f"<!-- {name}: end -->")
        assert "ms, **" in text[begin:end], name
    subprocess.run(
        [sys.executable, script, RESULTS / "h200", "--readme", copy], check=True
    )
    assert copy.read_text() == text
