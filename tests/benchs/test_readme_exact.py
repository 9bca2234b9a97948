"""Figures of what exact answers cost, of hard data and of inverted lists beside other
libraries are those of the results that they name. A failure shows the text that the
results make."""

import json
import statistics

from test_readme_highlights import OURS, RESULTS, by_cell, expect, rows

MEASURED = "docs/design/exact_measured.md"
HARD = "docs/design/flat_hard_data_measured.md"
PLAIN = "faiss_bits_plain"
PRICE = "h200/exact_price.json"
RIVALS = "h200/ivf_rivals_14a5933.json"


def commit_of(path):
    return json.loads((RESULTS / path).read_text())["meta"]["commit"]


def prices(path, *key):
    """{values of key: certified over plain time}."""
    return {at: methods[OURS]["ms"] / methods[PLAIN]["ms"]
            for at, methods in by_cell(path, *key).items()}


def test_price_of_certified_searches():
    found = prices(PRICE, "q", "k", "d", "metric")
    mean = statistics.geometric_mean(found.values())
    assert len(found) == 192
    expect(f"{len(found)} cells", MEASURED)
    expect(f"commit {commit_of(PRICE)}, `{PRICE}`", MEASURED)
    of_queries = [statistics.geometric_mean(
        ratio for (q, *_), ratio in found.items() if q == one)
        for one in (1, 16, 1024, 10240)]
    one, few, some, many = (f"{value:.2f}" for value in of_queries)
    expect(f"The geometric mean is {mean:.2f}: {one} of one query, {few} of 16, {some} of "
           f"1,024 and {many} of 10,240.", MEASURED)
    dear = {at: ratio for at, ratio in found.items() if ratio > 1.05}
    assert len(dear) == 10
    of_16 = [ratio for (q, k, d, _), ratio in dear.items()
             if q == 16 and k in (1024, 2000) and d in (16, 32)]
    assert len(of_16) == 8
    expect(f"k = 1024 and 2000: {min(of_16):.2f} to {max(of_16):.2f}", MEASURED)
    ds = (16, 32, 64, 128, 256, 768)
    for q in (1, 16, 1024, 10240):
        for k in (10, 100, 1024, 2000):
            cells = (f"{found[q, k, d, 'L2']:.2f} / {found[q, k, d, 'IP']:.2f}"
                     for d in ds)
            expect(f"| {q:,} | {k} | " + " | ".join(cells) + " |", MEASURED)
        spans = []
        for d in ds:
            such = [ratio for at, ratio in found.items() if (at[0], at[2]) == (q, d)]
            spans.append(f"{min(such):.2f} to {max(such):.2f}")
        expect(f"| {q:,} | " + " | ".join(spans) + " |", "docs/design/flat.md")


def test_price_of_few_queries_since():
    path = "h200/exact_price_16.json"
    found = prices(path, "q", "k", "d", "metric").values()
    text = f"16 queries take {min(found):.2f} to {max(found):.2f} of a plain search's time"
    expect(f"{text} in all {len(found)} cells (commit {commit_of(path)}, `{path}`)",
           "docs/exact.md")
    expect(text)


def test_fixed_hard_cells():
    path = "h200/exact_hard.json"
    found = prices(path, "data", "d", "q", "k")
    assert max(found.values()) < 5
    expect(f"up to {max(found.values()):.1f} times as long as a plain search by L2, in none "
           f"of {len(found)} cells more")
    expect(f"commit {commit_of(path)}, `exact_hard.json`")
    for data in ("clusters", "scales", "equal", "few", "infinite", "far"):
        for d in (16, 128):
            cells = (" / ".join(f"{found[data, d, q, k]:.2f}" for k in (10, 1024))
                     for q in (1, 1024, 10240))
            expect(f"| {d} | " + " | ".join(cells) + " |", HARD)


def test_random_hard_cells():
    path = "h200/exact_hard_sweep.json"
    ours = [row for row in rows(path) if row["method"] == OURS]
    beyond = [row for row in ours if row["times_plain"] > 5]
    worst = max(row["times_plain"] for row in ours)
    assert len(beyond) == 2
    expect(f"2 of {len(ours)} take more than five times as long, {worst:.1f} at most "
           f"(H200, commit {commit_of(path)}, `exact_hard_sweep.json`)")


def test_lists_beside_other_libraries():
    found = by_cell(RIVALS, "data", "index", "nprobe", "q")
    every = {(at, name): row["ms"] / methods[OURS]["ms"]
             for at, methods in found.items() for name, row in methods.items()
             if name != OURS}

    def of(data, name=None, index=None):
        return [ratio for ((of, kind, *_), rival), ratio in every.items()
                if of == data and name in (None, rival) and index in (None, kind)]

    assert min(of("clustered")) > 1
    (behind,) = [at for at, ratio in every.items() if ratio < 1]
    assert behind == (("sift", "ivf_flat", 4, 1000), "faiss_115")
    means = [f"{statistics.geometric_mean(of('clustered', name)):.1f}"
             for name in ("faiss_115", "cuvs")]
    expect(f"ahead in all {len(of('clustered'))} comparisons with clustered vectors (2^20 x "
           f"128, 1,024 lists, k = 10; geometric means {means[0]} and {means[1]} times, "
           f"least {min(of('clustered', 'faiss_115')):.2f} and "
           f"{min(of('clustered', 'cuvs')):.2f}), and in {len(of('sift')) - 1} of "
           f"{len(of('sift'))} with SIFT")
    one = found[behind[0]]
    expect(f"takes {one[OURS]['ms']:.3f} ms, FAISS {one['faiss_115']['ms']:.3f} (H200, "
           f"commit {commit_of(RIVALS)}, `ivf_rivals_14a5933.json`)")
    for data, words in (("clustered", "clustered"), ("sift", "SIFT")):
        for name, label in (("faiss_115", "FAISS 1.15.1"), ("cuvs", "cuVS")):
            such = of(data, name, "ivf_flat")
            expect(f"| {words}: {label} | {statistics.geometric_mean(such):.2f}, "
                   f"{min(such):.2f} to {max(such):.3g} |", "docs/design/ivf.md")
