"""Figures in README.md and in the pages that it links are those of the results that
they name: ranges, several GPUs, words and the drop-in library. A failure shows the
text that the results make."""

import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

from result_file import cell_of  # noqa: E402

RESULTS = ROOT / "benchs" / "results"
LIMITS = (ROOT / "docs" / "limits.md").read_text()
OURS = "faiss_bits"


def rows(path):
    return json.loads((RESULTS / path).read_text())["rows"]


def expect(text, page="docs/limits.md"):
    words = " ".join((ROOT / page).read_text().split())
    assert text in words, f"{page} should say: {text}"


def span(values, form=".2f"):
    return f"{min(values):{form}} to {max(values):{form}}"


def races(path):
    """[(our row, the fastest rival's time over ours)] of cells with both; rivals
    that were wrong take no part."""
    ours, best = {}, {}
    for row in rows(path):
        cell = cell_of(row)
        if row["method"] == OURS:
            ours[cell] = row
        elif not row.get("wrong"):
            best[cell] = min(best.get(cell, row["ms"]), row["ms"])
    return [(row, best[cell] / row["ms"]) for cell, row in ours.items()
            if cell in best]


def test_nearest_of_few_vectors():
    ns = (256, 1024, 4096, 16384)

    def listed(texts):
        *first, last = texts
        return f"{', '.join(first)} and {last}"

    def times_and_ratios(k):
        times = {(r["method"], r["n"]): r["ms"]
                 for r in rows("h200/flat_few_vectors_0094109.json")
                 if (r["k"], r["d"], r["q"]) == (k, 128, 262144)}
        return (listed(f"{times[OURS, n]:.3g}" for n in ns),
                listed(f"{times['faiss_flat', n] / times[OURS, n]:.0f}" for n in ns))

    ours, ratios = times_and_ratios(1)
    expect(f"{ours} ms, {ratios} times as fast as FAISS", "README.md")
    ours, ratios = times_and_ratios(32)
    expect(f"{ours} ms, {ratios} times as fast", "README.md")


def test_range_search():
    def cell(selectivity):
        (row,) = [r for r in rows("h200/range.json")
                  if (r["method"], r["index"], r["metric"], r["d"], r["q"],
                      r["selectivity"])
                  == (OURS, "flat", "l2", 128, 10240, selectivity)]
        assert row["n"] == 2**20
        return row

    few, many = cell(0.0001), cell(0.01)
    expect(f"10,240 queries find {few['results'] / 1e6:.0f} million vectors among "
           f"2^20 (d = 128, L2, uniform) in {few['ms']:.1f} ms", "README.md")
    expect(f"bound by their distances: {many['ms'] * 1e6 / many['results']:.2f} ns "
           "a result (10,240 queries, 1% of 2^20 x 128; `range.json`)")


def test_ranges_of_points():
    at = {}
    for row in rows("h200/range_points.json"):
        if row["index"] == "flat":
            cell = row["n"], row["q"], row["selectivity"]
            at.setdefault(cell, {})[row["method"]] = row["ms"]
    ratios = [ms["cuml"] / ms[OURS] for ms in at.values() if "cuml" in ms]
    large = [at[10_000_000, 10240, share] for share in (0.0001, 0.001, 0.01)]

    def times(method):
        one, two, three = (f"{ms[method]:.2g}" for ms in large)
        return f"{one}, {two} and {three}"

    expect(f"Searches are {min(ratios):.1f} to {max(ratios):.0f} times as fast as by "
           "cuML's ball cover")
    expect(f"for 10^7 points with 10,240 queries {times(OURS)} ms at 0.01, 0.1 and "
           f"1% against {times('cuml')[:-8]}")


def test_ranges_of_points_by_open3d():
    points = [row for row in rows("h100/range_60fb7d8.json")
              if (row["index"], row["metric"], row["d"]) == ("flat", "l2", 3)]
    ours = {cell_of(row): row["ms"] for row in points if row["method"] == OURS}
    found = [row["ms"] / ours[cell_of(row)] for row in points
             if row["method"] == "open3d"]
    assert len(found) == len(ours) == 24
    least, most = math.floor(10 * min(found)) / 10, float(f"{max(found):.2g}")
    expect("Open3D's fixed-radius search takes "
           f"{least:.1f} to {most:,.0f} times as long (H100, its kernels built "
           "from source, `h100/range_60fb7d8.json`)")


def test_ranges_of_lists():
    at = {}
    for row in rows("h200/range_a0312c4.json"):
        if row["method"] == OURS and row["d"] == 128:
            cell = row["metric"], row["q"], row["selectivity"]
            at.setdefault(cell, {})[row["index"]] = row
    both = list(at.values())
    assert all((r["n"], r["d"]) == (2**20, 128) for b in both for r in b.values())
    assert {b["ivf_flat"]["settings"] for b in both} == {"nlist = 1024, nprobe = 32"}
    ratios = [b["ivf_flat"]["ms"] / b["flat"]["ms"] for b in both]
    found = [b["ivf_flat"]["results"] / b["flat"]["results"] for b in both
             if b["flat"]["results"] > 1000]
    assert 0.04 < min(found) and max(found) < 0.26, (min(found), max(found))
    expect(f"in {min(ratios):.2f} to {max(ratios):.2f} of the time of "
           f"`GpuIndexBitsFlat` (2^20 x 128, nlist 1024, nprobe 32, {len(both)} cells; "
           "H200, `range_a0312c4.json`)")


def shards_over_one(path, shards, devices, n, q):
    """Their time over that of one index, for k = 10, 100, 2000."""
    found = {}
    for row in rows(path):
        if (row["method"], row["kind"], row["arrays"], row["n"], row["q"]) == (
                OURS, "shards", "device", n, q):
            found[row["shards"], row["devices"], row["k"]] = row["ms"]
    return [found[shards, devices, k] / found[1, 1, k] for k in (10, 100, 2000)]


def test_two_gpus():
    def two(n, q):
        return shards_over_one("h200/many.json", 2, 2, n, q)

    expect("Two H200s with half of the vectors each, as shares of one's time (k = 10 "
           "to 2000; `many.json`):")
    for power, q in (21, 10240), (21, 1024), (21, 1), (23, 1):
        expect(f"| 2^{power} x 128 | {q:,} | {span(two(2**power, q))} |")
    expect(f"two H200s take {span(two(2**21, 1))} of one's time for a single query in "
           "2^21 vectors", "README.md")


def test_shards_on_one_gpu():
    expect("Several shards on one GPU cost time with few queries. Eight, over the time "
           "of one index (2^20 x 128; `many_limits.json`):")
    for q in (10240, 1024, 512, 1):
        times = shards_over_one("h200/many_limits.json", 8, 1, 2**20, q)
        ten, hundred, thousands = (f"{ratio:.2f}" for ratio in times)
        expect(f"| {q:,} | {ten} | {hundred} | {thousands} |")


def test_words():
    gpu = {(r["dictionary"], r["r"]): r for r in rows("h200/words.json")
           if (r["method"], r["device"]) == ("trie", "gpu")}

    def times(dictionary):
        one, two, three = (gpu[dictionary, r] for r in (1, 2, 3))
        assert {row["queries"] for row in (one, two, three)} == {40000}
        return one["words"], (
            f"{one['ms']:.2g}, {two['ms']:.2g} and {three['ms']:.1f} ms")

    (spanish, first), (english, then) = times("spanish"), times("british-huge")
    expect(f"40,000 misspelt words are found among {spanish:,} Spanish ones in "
           f"{first} (distance 1, 2, 3), among {english:,} English ones in "
           f"{then.removesuffix(' ms')} ms", "docs/examples.md")

    cpu = {(r["dictionary"], r["r"], r["method"]): r for r in rows("cpu/words.json")}

    def ratio(dictionary, r, field):
        ours, theirs = (cpu[dictionary, r, name] for name in ("trie", "rapidfuzz"))
        return (theirs[field] / theirs["queries"]) / (ours[field] / ours["queries"])

    by_clock, by_processor = (
        [f"{ratio(name, 2, field):.0f}" for name in ("spanish", "british-huge")]
        for field in ("ms", "cpu_ms"))
    expect(f"at distance 2, it was {by_clock[0]} (Spanish) and {by_clock[1]} (English) "
           "times as fast as `rapidfuzz.process.cdist`, by the processor's time of all "
           f"threads {by_processor[0]} and {by_processor[1]} times",
           "docs/examples.md")
    phrases = [ratio("phrases", r, "ms") for r in (1, 2, 3)]
    expect(f"Phrases of ten words are found {phrases[0]:.0f}, {phrases[1]:.1f} and "
           f"{phrases[2]:.2f} times as fast as by it (distance 1, 2, 3)",
           "docs/examples.md")


def test_dropin():
    def of(path):
        ratios = {}
        for row in rows(path):
            ratios.setdefault(row["index"], []).append(
                row["ms_stock"] / row["ms_dropin"])
        return ratios

    searches = of("h200/dropin_searches.json")["flat_l2"]
    (large,) = [r for r in rows("h200/dropin_searches.json")
                if (r["index"], r["q"], r["k"]) == ("flat_l2", 10240, 10)]
    expect(f"flat L2 searches are {span(searches, '.2g')} times as fast: 10,240 "
           f"queries, k = 10, take {large['ms_dropin']:.1f} ms in place of "
           f"{large['ms_stock']:.0f}", "README.md")
    for path, page in (("h200/dropin_searches.json", "docs/dropin.md"),
                       ("h100/dropin_searches_4e1375d.json", "docs/design/dropin.md")):
        cells = rows(path)
        many = [r["ms_stock"] / r["ms_dropin"] for r in cells if r["q"] >= 1024]
        few = [r["ms_stock"] / r["ms_dropin"] for r in cells if r["q"] < 1024]
        expect(f"All {len(cells)} flat cells are faster: {span(many, '.1f')} times "
               f"with 1,024 queries and more, {min(few):.1f} to {max(few):.0f} times "
               "with one and 16", page)

    def lists_of(q, **cell):
        return [r["ms_stock"] / r["ms_dropin"] for r in rows("h200/dropin_ivf.json")
                if r["q"] == q and cell.items() <= r.items()]

    many, few = lists_of(10240), lists_of(1024)
    few_lists = lists_of(1024, nprobe=8)
    two_a_list = lists_of(1024, nlist=4096, nprobe=8)
    expect(f"All {len(many) + len(few)} cells of lists are faster: "
           f"{span(many, '.1f')} times with 10,240 queries, {span(few, '.1f')} with "
           "1,024. The least are 8 lists a query with 1,024 queries: "
           f"{span(few_lists, '.1f')} times", "docs/dropin.md")
    assert min(few_lists) == min(many + few)
    expect(f"Inverted lists are {span(many + few, '.2g')} times as fast with 1,024 and "
           "10,240 queries", "README.md")
    codes = lists_of(1024, index="ivf_pq32", nlist=1024, nprobe=8)
    expect(f"1,024 queries of 8 of 4,096 lists are {span(two_a_list)} times as fast as "
           "by the 1.15.1 wheel, with product codes 8 of 1,024 lists "
           f"{codes[0]:.2f} and {codes[1]:.2f}")
    select, lists = of("h200/dropin.json"), of("h100/dropin_ivf.json")
    flats = select["flat_l2"] + select["flat_ip"]
    expect(f"flat searches are {min(flats):.2f} to {max(flats):.0f} times as fast",
           "docs/dropin.md")
    expect("The k-selection alone (`=select`) makes flat L2 searches "
           f"{min(select['flat_l2']):.1f} to {max(select['flat_l2']):.0f} times as "
           "fast, and those by inner product "
           f"{min(select['flat_ip']):.2f} to {max(select['flat_ip']):.0f} times",
           "docs/design/dropin.md")
    (tables,) = rows("h100/dropin_tables.json")
    expect("Searches of inverted lists, on an H100, were "
           f"{span(lists['ivf_flat'], '.1f')} times as fast (IVFFlat), "
           f"{span(lists['ivf_pq32'], '.1f')} times (product codes) and "
           f"{span(lists['ivf_pq32_tables'], '.1f')} times (with tables; one query of "
           f"these, which lost, is {tables['ms_stock'] / tables['ms_dropin']:.2f} "
           "times as fast since)", "docs/design/dropin.md")


def test_hard_searches():
    ours = [r for r in rows("h100/exact_hard_sweep.json") if r["method"] == OURS]
    every = [row["times_plain"] for row in ours]
    products = [r["times_plain"] for r in ours if r["metric"] in ("L2", "IP")]
    assert len(products) < len(every)

    def beyond(ratios):
        return sum(ratio > 5 for ratio in ratios)

    expect(f"Of {len(every)} random cells of such data {beyond(every)} took more "
           f"than 5 times as long as a plain search, {max(every):.1f} at most; by L2 "
           f"and inner product {beyond(products)} of {len(products)}, "
           f"{max(products):.1f} at most (H100)", "README.md")


def by_cell(path, *key):
    """{values of key: {method: row}} of the rows that have a time."""
    found = {}
    for row in rows(path):
        if row["ms"] is not None:
            at = tuple(row.get(name, "uniform") for name in key)
            found.setdefault(at, {})[row["method"]] = row
    return found


def test_rivals_of_flat_search():
    cells = by_cell("h200/flat_rivals.json", "metric", "data", "q", "k")
    own = ("faiss_bits", "faiss_bits_plain", "faiss_bits_fast", "faiss_bits_fp32")
    ratios = [row["ms"] / methods[OURS]["ms"] for methods in cells.values()
              for name, row in methods.items() if name not in own]
    expect(f"in {len(cells)} cells of uniform vectors", "docs/design/flat.md")
    expect(f"takes {min(ratios):.2f} times as long (one query, k = 10) or more",
           "docs/design/flat.md")
    one = cells["L2", "uniform", 1, 10]
    assert one["flashlib_bf16"]["ms"] / one[OURS]["ms"] == min(ratios) > 1

    def recall(*names):
        return min(row["recall"] for methods in cells.values()
                   for name, row in methods.items()
                   if name in names and "recall" in row)

    expect(f"FlashLib finds {100 * recall('flashlib_fp32', 'flashlib_bf16'):.1f} to "
           f"100% of the neighbours, torch in TF32 {100 * recall('torch_tf32'):.1f} to "
           "100%, the others all", "docs/design/flat.md")
    assert recall("faiss_flat", "torch_fp32", "cuvs", OURS) == 1
    many = cells["L2", "uniform", 10240, 10][OURS]["ms"]
    expect(f"10,240 queries among 2^20 x 128 take {many:.2f} ms, one takes "
           f"{one[OURS]['ms']:.3f} ms (H200, L2, k = 10", "docs/using.md")
    expect(f"and {many:.2f} ms exactly", "docs/using.md")


def test_lists_beside_faiss():
    ratios = [ratio for _, ratio in races("h200/ivf.json")]
    expect(f"Inverted lists on the GPU are {min(ratios):.1f} to {max(ratios):.0f} times "
           f"as fast as those of FAISS 1.7.3 (2^20 x 128 on an H200, {len(ratios)} "
           "cells", "README.md")
    expect(f"it is ahead in none of {len(ratios)} cells")
    assert min(ratios) > 1


def test_rivals_of_lists():
    cells = by_cell("h200/ivf_rivals_9a46980.json", "q", "nprobe", "k")
    least = {}
    for name in ("faiss", "cuvs"):
        ratios = [methods[name]["ms"] / methods[OURS]["ms"]
                  for methods in cells.values()]
        least[name] = f"{min(ratios):.2f} to {max(ratios):.1f}"
        assert len(ratios) == 24 and min(ratios) > 1
    expect(f"{least['faiss']} times as fast as FAISS and {least['cuvs']} times as "
           "cuVS", "docs/design/ivf.md")
    for (q, nprobe, k), methods in cells.items():
        if k == 10:
            columns = (f"{methods[name]['ms']:.3g} ({methods[name]['recall']:.3f})"
                       for name in (OURS, "faiss", "cuvs"))
            expect(f"| {q:,} | {nprobe} | " + " | ".join(columns) + " |",
                   "docs/design/ivf.md")
