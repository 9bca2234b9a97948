"""Figures of random searches on the CPU are those of the results that they name. A
failure shows the text that the results make."""

import statistics

from test_readme_highlights import expect, rows

LIMITS = "docs/limits.md"
FILES = ("cpu/sweep.json", "cpu/sweep_two_threads.json")
KINDS = {"k nearest": ("search", False), "with a filter": ("search", True),
         "ranges": ("range_search", False)}


def text_of(found):
    behind = sum(ratio < 1 for ratio in found)
    return (f"{statistics.geometric_mean(found):.2f}, {behind} of {len(found)}, "
            f"{min(found):.2f}")


def test_cells_by_kind():
    seen = 0
    for index, name in (("flat", "flat"), ("ivf", "lists")):
        for kind, (call, filtered) in KINDS.items():
            for few in (True, False):
                texts = []
                for path in FILES:
                    found = [row["ratio"] for row in rows(path)
                             if "ratio" in row and row["index"] == index
                             and row["call"] == call
                             and ("selector" in row) == filtered
                             and (row["n"] <= 512) == few]
                    seen += len(found)
                    texts.append(text_of(found))
                size = "up to 512 vectors" if few else "more vectors"
                expect(f"| {name}, {kind}, {size} | {texts[0]} | {texts[1]} |",
                       LIMITS)
    assert seen == 800


def test_all_cells():
    means, behind, parts = [], [], []
    for path in FILES:
        of_ours = [row for row in rows(path) if "ratio" in row]
        assert len(of_ours) == 400
        assert all(row.get("places_wrong", 0) == 0 for row in of_ours)
        assert all(row.get("same_places", 1) >= 0.95 for row in of_ours)
        found = [row["ratio"] for row in of_ours]
        means.append(f"{statistics.geometric_mean(found):.2f}")
        slow = [row for row in of_ours if row["ratio"] < 1]
        behind.append(len(slow))
        parts.append((sum(row["n"] <= 512 for row in slow),
                      sum(row["index"] == "ivf" for row in slow),
                      sum(row["ms"] < 0.1 for row in slow)))
    expect(f"{means[0]} and {means[1]} times as fast in the geometric mean, behind in "
           f"{behind[0]} and {behind[1]}.", LIMITS)
    few, lists, short = (f"{one} and {two}" for one, two in zip(*parts))
    expect(f"Of the {behind[0]} and {behind[1]} that are behind, {few} have up to 512 "
           f"vectors, {lists} are inverted lists, and {short} take less than 0.1 ms.",
           LIMITS)
    expect(f"{behind[0]} of 400 take longer than the wheel's on one thread, and "
           f"{behind[1]} of 400 on two", "README.md")
