"""Figures of the random sweeps in docs/limits.md and docs/design/random_cells.md are
those of the results that they name. A failure shows the text that the results make."""

import json
import math
import re
import statistics

from test_readme_highlights import LIMITS, OURS, RESULTS, expect, races, rows, span


EARLIER = "docs/design/random_cells.md"


def test_random_selections():
    found = races("h200/select_sweep.json")
    ahead = [ratio for _, ratio in found if ratio >= 1]
    mean = math.exp(statistics.fmean(math.log(ratio) for _, ratio in found))
    expect(f"`select_sweep.json` (H200) has {len(found)} random cells")
    expect(f"faster than every rival that can run in {len(ahead)}, {mean:.2f} times as "
           "fast as the best of them in the geometric mean")
    meta = json.loads((RESULTS / "h200/select_sweep.json").read_text())["meta"]
    expect(f"That was commit {meta['commit'][:10]}.")
    expect(f"Of the {len(found)} random cells the fastest rival is ahead in "
           f"{len(found) - len(ahead)}")
    behind = sum(map(int, re.findall(r"^\| (\d+) \| .* \| 0\.\d+ \|$", LIMITS, re.M)))
    assert behind == len(found) - len(ahead), "the table of docs/limits.md"


def test_random_searches():
    ours = [r for r in rows("h200/flat_sweep.json") if r["method"] == OURS]
    ratios = [row["ratio"] for row in ours]
    assert not any(row["places_wrong"] for row in ours)
    expect(f"Of {len(ours)} random cells (n, d, q, k, metric")
    expect(f"is ahead in {sum(ratio < 1 for ratio in ratios)}, and half of the cells "
           f"are {statistics.median(ratios):.2f} times as fast as it or more")
    expect(f"No place of the {sum(row['places'] for row in ours):,} that were checked "
           "is wrong")


def test_random_searches_of_other_seeds():
    for name, text in (("8bd53d8", "{behind} of {cells} in a run just before ({least:.2f}"),
                       ("af0c1b1_1", "none of {cells}"),
                       ("af0c1b1_2", "{behind} of {cells} ({least:.2f})"),
                       ("af0c1b1_3", "{behind} of {cells} ({least:.2f}"),
                       ("24a7e9e", "had {behind} of {cells} behind, {least:.2f}")):
        ours = [r for r in rows(f"h200/flat_sweep_{name}.json") if r["method"] == OURS]
        ratios = [row["ratio"] for row in ours]
        assert not any(row["places_wrong"] for row in ours)
        behind = sum(ratio < 1 for ratio in ratios)
        assert behind or text.startswith("none")
        expect(text.format(behind=behind, cells=len(ours), least=min(ratios)),
               EARLIER if name == "24a7e9e" else "docs/limits.md")


def test_orders_of_random_selections():
    ours = [row for row in rows("h200/select_sweep.json") if row["method"] == OURS]
    assert not any(row.get("wrong") for row in ours)

    def beyond(is_such, most):
        such = [row["ms"] / row["random_ms"] for row in ours
                if row["order"] != "random" and row["ms"] >= 0.1 and is_such(row)]
        return len(such), [ratio for ratio in such if round(ratio, 2) > most]

    def is_adversary(row):
        return row["order"].startswith("adversary")

    cells, slow = beyond(lambda r: r["k"] <= 2048 and not is_adversary(r), 1.3)
    expect(f"Of {cells} cells of 100 us and more with k up to 2,048 in other than "
           f"random order {len(slow)} take more than 1.3 times as long as random keys "
           f"(at most {max(slow):.2f}")
    cells, slow = beyond(lambda r: r["k"] > 2048 and not is_adversary(r), 1.6)
    _, all_of_them = beyond(lambda r: r["k"] > 2048 and not is_adversary(r), 0)
    expect(f"of {cells} with larger k {len(slow)} more than 1.6 (at most "
           f"{max(all_of_them):.2f}")
    cells, slow = beyond(is_adversary, 0)
    assert max(slow) <= 2.5
    expect(f"of {cells} adversaries none more than 2.5 ({max(slow):.2f})")


def test_earlier_random_selections():
    for name, text in (("select_sweep_24a7e9e.json", "of cells of 20 us and more whose "
                        "k is at most a quarter of the row one behind, "),
                       ("select_sweep_0094109.json", "of cells of 20 us and more whose "
                        "k is at most a quarter of the row six behind, "),
                       ("select_sweep_807a327.json", "16 of 640 behind, ")):
        found = races(f"h200/{name}")
        mean = math.exp(statistics.fmean(math.log(ratio) for _, ratio in found))
        # A longer k is a sort; shorter times may be equal.
        behind = [ratio for row, ratio in found if ratio < 1 and
                  (name.endswith("807a327.json") or
                   row["ms"] >= 0.02 and row["k"] <= row["cols"] / 4)]
        assert len(behind) == (1 if "one" in text else 6 if "six" in text else 16)
        worst = (f"{behind[0]:.2f};" if "one" in text else
                 span(behind) if "six" in text else f"{min(behind):.2f} at worst")
        expect(f"`{name}`, {mean:.2f} times, {text}{worst}", EARLIER)


def test_later_random_searches():
    name = "flat_sweep_0094109.json"
    ours = [r for r in rows(f"h200/{name}") if r["method"] == OURS]
    ratios = sorted(row["ratio"] for row in ours)
    assert not any(row["places_wrong"] for row in ours)
    expect(f"`{name}`, {len(ours)} cells, half of them "
           f"{statistics.median(ratios):.2f} times as fast as the best rival or more, "
           f"none of {sum(row['places'] for row in ours):,} places wrong) has FAISS "
           f"ahead in one: {ratios[0]:.2f}", EARLIER)
    assert ratios[1] >= 1
