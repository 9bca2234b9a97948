"""benchs/tune_select.py: the table from measurements made up for the test, and
the table that is committed."""

import json
import math
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import tune_select  # noqa: E402

META = {"gpu": "NVIDIA H200", "compute_capability": 90, "driver": "580.1",
        "cuda": "13.0", "commit": "0123456789ab", "date": "2026-01-31",
        "read_bw_gbps": 4500.0}
TABLE_ROW = re.compile(
    r"BITS_SELECT_ROW\((\d+), ([24]), (kAnyRows|\d+), (kAnyCols|\d+), "
    r"(kAnyK|\d+), (\w+)\)")


def parse_table(text):
    """Rows of a table, kAny... as infinity; every line is a comment or a row."""
    rows = []
    for line in text.splitlines():
        if not line.startswith("//"):
            *numbers, name = TABLE_ROW.fullmatch(line).groups()
            rows.append([float("inf") if n.startswith("kAny") else int(n)
                         for n in numbers] + [name])
    return rows


def pick(table, key_bytes, *problem):
    """As the dispatch: the first row that fits."""
    for _, size, *limits, name in table:
        if size == key_bytes and all(n <= m for n, m in zip(problem, limits)):
            return name
    return None


def tuned(algorithm, rows, cols, k, ms, dtype="float32", **other):
    row = {"bench": "select", "method": "faiss_bits", "algorithm": algorithm,
           "forced": 1, "rows": rows, "cols": cols, "k": k, "dtype": dtype,
           "order": "random", "ms": ms, "frac_read": 0.5}
    return row | other


TUNED = [
    tuned("short_rows", 1, 1 << 20, 10, 1.0),
    tuned("sort", 1, 1 << 20, 10, 9.0),
    tuned("sort", 1, 1 << 20, 1 << 20, 9.0),
    tuned("short_rows", 64, 1 << 20, 10, 1.0),
    tuned("sort", 64, 1 << 20, 1 << 20, 9.0),
    tuned("sample_threshold", 64, 1 << 10, 10, 1.0),
    tuned("short_rows", 64, 1 << 10, 10, 2.0),
    tuned("radix_select", 64, 1 << 10, 10, 0.5, "float16"),
    tuned("radix_select", 64, 1 << 20, 10, 0.1, forced=0),
    tuned("radix_select", 64, 1 << 20, 10, 0.1, order="few"),
]


def test_table_follows_the_fastest():
    text = tune_select.table_text({"meta": META, "rows": TUNED})
    table = parse_table(text)
    for stamp in ("NVIDIA H200", "13.0", "0123456789ab", "2026-01-31", "580.1"):
        assert stamp in text
    assert pick(table, 4, 64, 1 << 10, 10) == "SampleThreshold"
    assert pick(table, 4, 1, 1 << 20, 10) == "ShortRows"
    assert pick(table, 4, 64, 1 << 20, 1 << 20) == "Sort"
    assert pick(table, 4, 10**6, 1 << 31, 10) == "ShortRows"
    # To the nearest: the middle of 2^10 and 2^20 is 2^15.
    assert pick(table, 4, 64, 1 << 15, 10) == "SampleThreshold"
    assert pick(table, 4, 64, (1 << 15) + 1, 10) == "ShortRows"
    assert pick(table, 2, 1, 7, 10**9) == "RadixSelect"
    # One and 64 rows of 2^20 agree: no row of the table tells them apart.
    assert len(table) == 4


def fastest(*rows):
    """The winner of the shape of the first row."""
    first = rows[0]
    return tune_select.winners(rows)[4].get(
        (first["rows"], first["cols"], first["k"]))


def test_as_fast_but_for_noise_goes_by_the_order_of_algorithms():
    sort = tuned("sort", 9, 1000, 10, 1.0)
    assert fastest(sort, tuned("short_rows", 9, 1000, 10, 1.02)) == "short_rows"
    assert fastest(sort, tuned("short_rows", 9, 1000, 10, 1.1)) == "sort"


def test_a_selection_of_all_columns_is_a_sort():
    rows = [tuned("radix_select", 9, 1000, 1000, 1.0),
            tuned("sort", 9, 1000, 1000, 2.0)]
    assert fastest(*rows) == "sort"
    for row in rows:
        row["k"] = 999
    assert fastest(*rows) == "radix_select"


def test_bits_is_for_one_key():
    for k, name in ((1, "bits"), (2, "sample_threshold")):
        assert fastest(tuned("bits", 9, 1000, k, 1.0),
                       tuned("sample_threshold", 9, 1000, k, 2.0)) == name


def test_cells_that_were_held_up_are_left_out():
    slow = tuned("sort", 9, 1000, 10, 9.0)
    other = tuned("short_rows", 9, 1000, 10, 9.9)
    assert fastest(slow, other, tuned("sort", 9, 1000, 30, 8.0)) == "sort"
    assert fastest(slow, other, tuned("sort", 9, 1000, 30, 4.0)) is None
    # Of one key nothing else would be known.
    slow["k"] = other["k"] = 1
    assert fastest(slow, other, tuned("sort", 9, 1000, 30, 4.0)) == "sort"


def test_table_needs_forced_rows(capsys, tmp_path):
    out, source = tmp_path / "table.inc", tmp_path / "tune.json"
    source.write_text(json.dumps({"meta": META, "rows": TUNED[-2:]}))
    assert tune_select.main(["--from", str(source), "--out", str(out)]) == 1
    assert "forced" in capsys.readouterr().err and not out.exists()
    source.write_text(json.dumps({"meta": META, "rows": TUNED}))
    assert tune_select.main(["--from", str(source), "--out", str(out)]) == 0
    assert parse_table(out.read_text())


def algorithm_names():
    """Enumerators of kernels/select/SelectAlgorithm.h."""
    header = (ROOT / "kernels/select/SelectAlgorithm.h").read_text()
    body = re.search(r"enum class SelectAlgorithm \{(.*?)\};", header, re.S)[1]
    return re.findall(r"^\s*(\w+)\s*(?:,|$|//)",
                      re.sub(r"//.*", "", body), re.M)


def test_candidates_are_algorithms():
    names = algorithm_names()
    assert "Auto" in names and len(names) == 9
    for name in tune_select.ALGORITHMS:
        assert tune_select.enumerator(name) in names


def test_committed_table_is_whole():
    path = ROOT / "kernels/select/SelectTable.inc"
    if not path.exists():
        pytest.skip("no table is committed")
    text = path.read_text()
    table = parse_table(text)
    names = set(algorithm_names()) - {"Auto"}
    assert table and all(name in names for *_, name in table)
    for stamp in ("gpu", "cuda", "driver", "commit", "date"):
        assert re.search(rf"^// {stamp}: \S", text, re.M), stamp
    kept = set(re.findall(r"of rows for more than \d+ columns", text))
    for stamp in ("gpu", "commit", "date"):
        for rows in kept:
            assert re.search(rf"^// {stamp} {rows}: \S", text, re.M), stamp
    for size in (2, 4):
        assert pick(table, size, 1e18, 1e18, 1e18), "nothing for the largest"


def test_longer_rows_of_another_table_stay():
    short = [tuned("short_rows", rows, cols, 10, 1.5)
             for rows in (1, 64) for cols in (1 << 10, 1 << 12)]
    rest = tune_select.table_text({"meta": META, "rows": TUNED + short})
    new = [tuned("sort", 64, cols, 10, 1.0, dtype)
           for cols in (1 << 8, 1 << 11) for dtype in ("float32", "float16")]
    text = tune_select.table_text(
        {"meta": META | {"commit": "fedcba"}, "rows": new}, rest)
    table = parse_table(text)
    limit = math.isqrt(1 << 22)  # between 2^10 and 2^12: the first from 2^11 on
    assert f"commit of rows for more than {limit} columns: 0123456789ab" in text
    assert pick(table, 4, 64, limit, 10) == "Sort"
    for cols in (limit + 1, 1 << 20, 1 << 25):
        for k in (10, 1 << 19):
            assert pick(table, 4, 64, cols, k) == pick(
                parse_table(rest), 4, 64, cols, k)
    with pytest.raises(ValueError, match="keys of 2 bytes"):
        tune_select.table_text({"meta": META, "rows": new[::2]}, rest)
    with pytest.raises(ValueError, match="columns or behind"):
        tune_select.longer_rows(rest, 1 << 40)


def test_longer_rows_begin_where_asked_and_have_bits_for_one_key_alone():
    line = "BITS_SELECT_ROW(90, 4, {}, {}, {}, {})"
    rest = "\n".join(
        line.format(*row) for row in (
            ("kAnyRows", 1000, "kAnyK", "Sort"),
            ("kAnyRows", 9000, 1, "Bits"),
            ("kAnyRows", 9000, 64, "Bits"),
            ("kAnyRows", "kAnyCols", "kAnyK", "BitsGlobal")))
    begin, kept, _ = tune_select.longer_rows(rest, 1000, 2000)
    assert begin == 2000
    assert kept == {4: [line.format("kAnyRows", 9000, 1, "Bits"),
                        line.format("kAnyRows", "kAnyCols", "kAnyK",
                                    "BitsGlobal")]}
    text = tune_select.table_text(
        {"meta": META, "rows": [tuned("sort", 64, 1000, 10, 1.0)]}, rest, 2000)
    table = parse_table(text)
    assert pick(table, 4, 64, 2000, 10) == "Sort"
    assert pick(table, 4, 64, 2001, 1) == "Bits"
    assert pick(table, 4, 64, 2001, 10) == "BitsGlobal"


def stamps(text):
    """{name: value} of the comments "name: value" of a table."""
    return dict(re.findall(r"^// ([\w ]+): (.+)$", text, re.M))


def kept_from(longer, cols, **meta):
    """A table measured for rows of `cols` columns, the rest of another."""
    rows = [tuned("sort", 64, cols, 10, 1.0, dtype)
            for dtype in ("float32", "float16")]
    return tune_select.table_text(
        {"meta": META | meta, "rows": rows}, longer, cols)


def test_stamps_of_longer_rows_are_those_of_their_own_measurement():
    sizes = [1 << i for i in (10, 13, 16, 20)]
    oldest = tune_select.table_text({"meta": META, "rows": [
        tuned(name, 64, cols, 10, 1.0, dtype)
        for cols, name in zip(sizes, ("sort", "bits_global") * 2)
        for dtype in ("float32", "float16")]})
    middle = kept_from(oldest, 2000, gpu="NVIDIA H100 80GB HBM3",
                       commit="aaaa", date="2026-02-01")
    # Beyond what the middle one measured: all is the oldest's.
    text = kept_from(middle, 30000, gpu="other", commit="bbbb",
                     date="2026-03-01")
    assert stamps(text) == stamps(text) | {
        "gpu": "other", "commit": "bbbb", "date": "2026-03-01"}
    of = " of rows for more than {} columns"
    for name in ("gpu", "commit", "date"):
        assert stamps(text)[name + of.format(30000)] == META[name]
    assert "aaaa" not in text and "H100" not in text
    assert of.format(2000) not in text
    # At the very place where the middle one begins to keep: likewise.
    assert "aaaa" not in kept_from(middle, 2000, commit="bbbb")
    # Within it: both, each from its own number of columns on.
    text = kept_from(middle, 1000, gpu="other", commit="bbbb",
                     date="2026-03-01")
    for limit, wanted in ((1000, {"gpu": "NVIDIA H100 80GB HBM3",
                                  "commit": "aaaa", "date": "2026-02-01"}),
                          (2000, META)):
        for name in ("gpu", "commit", "date"):
            assert stamps(text)[name + of.format(limit)] == wanted[name]


def test_rows_that_were_changed_unmeasured_are_named():
    line = "BITS_SELECT_ROW(90, {}, {}, {}, {}, {})"
    rest = "\n".join(
        line.format(*row) for row in (
            (4, "kAnyRows", 1000, "kAnyK", "Sort"),
            (4, 22, 9000, 1, "Bits"),
            (4, 22, 9000, 64, "Bits"),
            (4, 2, 20000, 17, "Bits"),
            (4, "kAnyRows", "kAnyCols", "kAnyK", "BitsGlobal"),
            (2, "kAnyRows", 1000, "kAnyK", "Sort"),
            (2, "kAnyRows", "kAnyCols", "kAnyK", "BitsGlobal")))
    first = ("// not measured: keys of 4 bytes, up to 22 rows, 9000 columns: "
             "Bits for k = 1 alone, before up to 64")
    second = ("// not measured: keys of 4 bytes, up to 2 rows, 20000 columns: "
              "Bits for k = 1 alone, before up to 17")

    def named(text):
        return re.findall(r"^// not measured.*$", text, re.M)
    text = kept_from(rest, 1000)
    assert named(text) == [first, second]
    # And in tables that keep rows of that one, as long as the row is kept.
    assert named(kept_from(text, 1000)) == [first, second]
    assert named(kept_from(text, 9000)) == [second]
    assert named(kept_from(text, 20000)) == []


def test_shapes_are_many_and_fit():
    shapes = tune_select.shapes()
    assert len(set(shapes)) == len(shapes) >= 20
    assert max(r * c for r, c in shapes) <= 1 << 28
    assert {c for _, c in shapes} == set(tune_select.COLS)


def test_one_key_says_nothing_of_two():
    cells = {(8, 100, k): name for k, name in
             ((1, "bits"), (10, "short_rows"), (100, "sort"))}
    assert tune_select.k_steps(cells, 8, 100) == (
        (1, "bits"), (31, "short_rows"), (None, "sort"))
