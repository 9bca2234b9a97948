"""benchs/word_queries.py, bench_words.py and plot_words.py."""

import json
import pathlib
import sys

import numpy as np
import pytest

BENCHS = pathlib.Path(__file__).resolve().parents[2] / "benchs"
sys.path.insert(0, str(BENCHS))
sys.dont_write_bytecode = True

import bench_words  # noqa: E402
import plot_words  # noqa: E402
import word_queries  # noqa: E402

WORDS = ["año", "casa", "a", "perro", "gato"]


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = row[j + 1], min(
                before + (x != y), row[j] + 1, row[j + 1] + 1)
    return row[-1]


def test_queries_are_one_edit_away():
    queries = word_queries.make_queries(WORDS, 500)
    assert len(queries) == 500
    nearest = [min(edits(q, w) for w in WORDS) for q in queries]
    assert set(nearest) == {0, 1}  # a letter may be replaced by itself
    lengths = {len(q) for q in queries}
    assert 0 in lengths and 6 in lengths
    assert queries == word_queries.make_queries(WORDS, 500)
    assert queries != word_queries.make_queries(WORDS, 500, seed=3)


def test_queries_of_the_program(tmp_path):
    source, out = tmp_path / "words", tmp_path / "queries"
    source.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    assert bench_words.main(["queries", str(source), str(out), "--count", "7"]) == 0
    assert word_queries.read_lines(source) == WORDS
    assert word_queries.read_lines(out) == word_queries.make_queries(WORDS, 7)


def test_phrases_are_words():
    phrases = word_queries.make_phrases(WORDS, 50, parts=3)
    assert len(phrases) == 50 and phrases == word_queries.make_phrases(WORDS, 50, 3)
    assert all(p.count(" ") == 2 and set(p.split()) <= set(WORDS) for p in phrases)


def test_ranges_that_differ_are_counted():
    queries = word_queries.make_queries(WORDS, 23)

    def matrix_of(queries, words, most):
        return np.array([[min(edits(q, w), most + 1) for w in words] for q in queries])

    def ranges(r):
        lims, D, I = [0], [], []
        for distances in matrix_of(queries, WORDS, r):
            ids = np.flatnonzero(distances <= r)
            lims.append(lims[-1] + len(ids))
            D.extend(distances[ids])
            I.extend(ids)
        return np.array(lims), np.array(D), np.array(I)

    found = {r: ranges(r) for r in (1, 3)}

    def differ():
        return bench_words.different_ranges(WORDS, queries, found, matrix_of, step=7)

    assert differ() == 0
    lims, D, I = found[3]
    assert len(I) > len(found[1][2]) > 0
    D[0] += 1  # a wrong distance
    assert differ() == 1
    last = len(I) - 1  # and a wrong id, of the last query with a result
    I[last] = (I[last] + 1) % len(WORDS)
    assert differ() == 2
    found[3] = ranges(3)
    lims, D, I = found[1]
    found[1] = np.minimum(lims, lims[-1] - 1), D[:-1], I[:-1]  # one is missing
    assert differ() == 1


def test_rows_that_are_added(tmp_path):
    """New rows take the places of old ones; what stays says where it is from."""
    out = tmp_path / "words.json"
    meta = {"gpu": "G", "cpu": "C", "seed": 2012, "commit": "a", "date": "1"}
    out.write_text(json.dumps({"meta": meta, "rows": [
        row("trie", "gpu", 1, 5.0), row("trie", "gpu", 2, 6.0),
        row("trie", "cpu", 1, 7.0, threads=1),
        row("sss", "gpu", 1, 8.0, commit="0", date="0")]}))
    args = bench_words.parse(["cpu", "--out", str(out), "--add"])
    bench = bench_words.Bench(args, {**meta, "commit": "b", "date": "2"})
    bench.extend([row("trie", "gpu", 1, 0.5), row("sss", "gpu", 3, 0.7)])
    data = json.loads(out.read_text())
    assert data["meta"] == {**meta, "commit": "b", "date": "2"}
    assert [(r["method"], r["device"], r["r"], r["ms"], r.get("commit"), r.get("date"))
            for r in data["rows"]] == [
        ("trie", "gpu", 2, 6.0, "a", "1"), ("trie", "cpu", 1, 7.0, "a", "1"),
        ("sss", "gpu", 1, 8.0, "0", "0"), ("trie", "gpu", 1, 0.5, None, None),
        ("sss", "gpu", 3, 0.7, None, None)]
    with pytest.raises(SystemExit, match="is of another gpu"):
        bench_words.Bench(args, {**meta, "gpu": "H"})
    args = bench_words.parse(["cpu", "--out", str(out)])
    assert bench_words.Bench(args, meta).data["rows"] == []


def row(method, device, r, ms, queries=100, **other):
    return {"bench": "words", "method": method, "device": device,
            "dictionary": "spanish", "words": 5, "queries": queries, "r": r,
            "ms": ms, "results": 1, **other}


ROWS = [
    row("brute_force", "cpu", 1, 100.0, threads=1, evaluations=1.0),
    row("trie", "cpu", 1, 1.0, threads=1, evaluations=0.0),
    row("sss", "cpu", 1, 20.0, 200, threads=1, evaluations=0.25),
    row("brute_force", "cpu", 1, 10.0, threads=16),
    row("trie", "gpu", 1, 0.5),
    row("stringzillas-cuda", "gpu", 1, 7.0),
    row("trie", "gpu", 2, 0.5),  # no brute force to compare with
    {**row("trie", "gpu", 1, 0.1), "dictionary": "british-huge"},
]


def test_speed_ups_are_of_rates():
    assert plot_words.speed_ups(ROWS) == {
        ("sequential", "brute_force", 1): 1, ("sequential", "trie", 1): 100,
        ("sequential", "sss", 1): 10, ("16 threads", "brute_force", 1): 10,
        ("GPU", "trie", 1): 200,
    }
    assert plot_words.evaluations(ROWS) == {("brute_force", 1): 1, ("sss", 1): 0.25}
    assert "16 threads" in plot_words.table(ROWS)


def test_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "words.json"
    path.write_text(json.dumps({"meta": {"gpu": "G", "cpu": "C"}, "rows": ROWS}))
    assert plot_words.main([str(path)]) == 0
    assert path.with_suffix(".png").stat().st_size > 1000
    assert path.with_suffix(".svg").exists()
    assert "sequential" in capsys.readouterr().out
    assert plot_words.main([]) == 2


@pytest.mark.parametrize("device", ["h200", "cpu"])
def test_results_agree(device):
    """Every method has found the same numbers of results for the same queries."""
    data = json.loads((BENCHS / "results" / device / "words.json").read_text())
    assert data["meta"]["seed"] == word_queries.SEED
    found = {}
    for one in data["rows"]:
        cell = one["dictionary"], one["queries"], one["r"]
        assert found.setdefault(cell, one["results"]) == one["results"], one


def test_a_rival_without_memory_gets_fewer_queries(tmp_path, monkeypatch):
    """What is timed says how many queries it is of."""
    class Engine:
        def __init__(self, capabilities):
            pass

        def __call__(self, queries, words, device, out):
            assert out.shape == (len(queries), len(words))
            if len(queries) > 100:
                raise MemoryError("of the GPU")
            out[:] = [[edits(q, w) for w in words] for q in queries]

    class Module:
        __version__ = "1"
        Strs = list
        LevenshteinDistancesUTF8 = Engine

        @staticmethod
        def DeviceScope(gpu_device):
            return gpu_device

    for name in ("stringzilla", "stringzillas"):
        monkeypatch.setitem(sys.modules, name, Module)
    out = tmp_path / "words.json"
    args = bench_words.parse(["gpu", "--program", "none", "--out", str(out)])
    bench = bench_words.Bench(args, {"gpu": "G", "seed": 2012})
    queries = word_queries.make_queries(WORDS, 300)
    bench_words.run_stringzillas(bench, "spanish", WORDS, queries)
    found = json.loads(out.read_text())["rows"]
    assert [(row["queries"], row["r"]) for row in found] == [(64, 1), (64, 2), (64, 3)]
    assert found[0]["results"] == sum(
        edits(q, w) <= 1 for q in queries[:64] for w in WORDS)
