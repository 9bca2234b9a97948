"""The race of inverted lists: what runs without a GPU."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import ivf_rivals  # noqa: E402
import ivf_worker  # noqa: E402
import merge  # noqa: E402
import plot_ivf  # noqa: E402
import result_file  # noqa: E402

MADE = ["--data", "clustered", "--sizes", "1000,16,8,100", "--qs", "1,100"]

# ---- options ----------------------------------------------------------------------


@pytest.mark.parametrize("arguments, message", [
    ([], "--out"),
    (["--methods", "faiss_bits,scann"], "--methods scann"),
    (["--data", "sift,glove"], "--data glove"),
    (["--indexes", "ivf_sq4"], "--indexes ivf_sq4"),
    (["--indexes", "ivf_pq0"], "--indexes ivf_pq0"),
    (["--indexes", "ivf_pq"], "--indexes ivf_pq"),
    (["--indexes", "ivf_pq32,ivf_pq64"], "[32, 64] parts"),
    (["--nprobes", "0,1"], "--nprobes 0"),
    (["--nprobes", "8,4"], "--nprobes [8, 4] do not rise"),
    (["--qs", "0"], "--qs 0"),
    (["--qs", "1001", "--data", "sift"], "--qs 1001 is above the 1000"),
    (["--k", "0"], "--k 0"),
    (["--check", "-1"], "--check -1"),
    (["--sizes", "10,2,3,4"], "--sizes are of made data"),
    (["--sizes", "10,2,3", "--data", "clustered"], "N,D,NLIST,QUERIES"),
    (["--sizes", "10,0,3,4", "--data", "clustered"], "--sizes 0"),
    (["--env", "faiss_115"], "--env faiss_115"),
    (["--env", "scann:A=b"], "--env scann:A=b"),
    (["--env", "cuvs:A"], "--env cuvs:A"),
    (["--env", "cuvs:=b"], "--env cuvs:=b")])
def test_wrong_options_are_named(capsys, arguments, message):
    out = ["--out", "x.json"] if arguments else []
    with pytest.raises(SystemExit):
        ivf_rivals.parse(out + arguments)
    assert message in capsys.readouterr().err


def test_right_options():
    options = ivf_rivals.parse(
        ["--out", "x.json", "--env", "cuvs:PYTHONPATH=/a:/b=c",
         "--env", "cuvs:B=", "--env", "faiss:B=1", "--qs", "1000"])
    assert options.env == {
        "cuvs": {"PYTHONPATH": "/a:/b=c", "B": ""}, "faiss": {"B": "1"}}
    assert options.parts == {"sift": 32, "fashion_mnist": None,
                             "clustered": 32, "clustered_10m": 32}


# ---- the recall -------------------------------------------------------------------


def share(ids, distances, last, n=100):
    return ivf_worker.share_found(
        np.array(ids), np.array(distances, float), np.array(last, float), n)


@pytest.mark.parametrize("ids, distances, found", [
    ([[3, 5, 9, 2]], [[0, 1, 2, 4]], 4),  # the last as far as the last
    ([[3, 5, 9, 2]], [[0, 1, 2, 4 + 1e-9]], 3),
    ([[3, 5, 9, 2]], [[0, 1, 7, 8]], 2),
    ([[3, 3, 9, 3]], [[0, 0, 2, 0]], 2),  # each id once
    ([[3, -1, -1, -1]], [[0, 0, 0, 0]], 1),  # nothing found
    ([[3, 100, 99, 5]], [[0, 0, 0, 0]], 3),  # no such vector
    ([[-1, -1, -1, -1]], [[0, 0, 0, 0]], 0)])
def test_share_found(ids, distances, found):
    assert share(ids, distances, [4]) == found / 4


def test_share_found_of_several_queries():
    assert share([[1, 2], [1, 2]], [[0, 9], [0, 1]], [1, 1]) == 0.75
    # A far neighbour of one query is no far one of another.
    assert share([[1, 2], [1, 2]], [[0, 9], [0, 1]], [9, 0.5]) == 0.75


@pytest.mark.parametrize("count, q, ends", [
    (10, 1, list(range(1, 11))), (10, 4, [4, 8]), (10, 10, [10]), (10, 20, [20])])
def test_slices(count, q, ends):
    parts = ivf_worker.slices(count, q)
    assert [part.stop for part in parts] == ends
    assert all(part.stop - part.start == q for part in parts)


class TickingClock:
    """once() takes what times say, in turn."""

    def __init__(self, *times):
        self.times, self.calls = times, 0

    def once(self, call):
        self.calls += 1
        return self.times[min(self.calls, len(self.times)) - 1]


@pytest.mark.parametrize("ms, repeats", [
    (0.1, 21), (3.0, 10), (10.0, 5), (500.0, 5)])
def test_median_is_of_five_calls_at_least(ms, repeats):
    clock = TickingClock(1e4, ms)  # the first call compiles
    assert ivf_worker.median(clock, None) == (ms, repeats)
    assert clock.calls >= repeats + 2


# ---- the race, with workers made up -----------------------------------------------


class Fake:
    """A process whose answers are made up; it notes what it was asked."""

    log = []
    slow, dead, without, missing = {}, {}, {}, {}

    def __init__(self, name, device, more):
        self.name, self.more = name, more
        self.own_lists = False
        why = self.missing.get(name)
        self.answers = [{"why": why} if why else {
            "version": "9.9", "own_lists": name == "cuvs"}]

    def tell(self, **request):
        Fake.log.append((self.name, request))
        self.answers.append(self.answer(**request))

    def answer(self, do, **request):
        if do == "load":
            return {}
        if do == "build":
            why = self.without.get((self.name, request["index"]))
            return {"why": why} if why else {"build_s": 0.5}
        if (self.name, request["nprobe"]) in self.dead:
            return None
        return {"ms": self.slow.get(self.name, 0.001) * request["nprobe"],
                "repeats": 7, "recall": 0.5}

    def read(self):
        answer = self.answers.pop(0)
        if answer is None:
            raise RuntimeError(f"{self.name} ended with status 139")
        return answer

    def end(self):
        pass


@pytest.fixture
def race(tmp_path, monkeypatch):
    """Runs a race of fakes; returns (status, result)."""
    def prepare(data, nlist, qs, file, options):
        return {(q, p): 10 * q * p for q in qs for p in options.nprobes}

    meta = {"gpu": "NVIDIA H200", "date": "2026-01-31", "commit": "0123"}
    monkeypatch.setattr(ivf_rivals, "Process", Fake)
    monkeypatch.setattr(ivf_rivals, "prepare", prepare)
    monkeypatch.setattr(ivf_rivals, "meta_of", lambda options: dict(meta))
    for name, value in (("log", []), ("slow", {}), ("dead", {}),
                        ("without", {}), ("missing", {})):
        monkeypatch.setattr(Fake, name, value)

    def run(*arguments):
        out = tmp_path / "out.json"
        status = ivf_rivals.main(["--out", str(out), *MADE, *arguments])
        return status, result_file.load(out)
    return run


def test_rows_of_a_race(race):
    status, result = race(
        "--methods", "faiss_bits,faiss_115,cuvs", "--indexes", "ivf_flat",
        "--nprobes", "1,4,16")
    assert status == 0
    assert result["meta"] == {
        "gpu": "NVIDIA H200", "date": "2026-01-31", "commit": "0123",
        "faiss": "9.9", "faiss_115": "9.9", "cuvs": "9.9"}
    rows = result["rows"]
    # 16 probes of 8 lists are none; of a cell everyone has a row, in turn.
    assert [(r["q"], r["nprobe"], r["method"]) for r in rows] == [
        (q, p, m) for q in (100, 1) for p in (1, 4)
        for m in ("faiss_bits", "faiss_115", "cuvs")]
    assert rows[0] == {
        "bench": "ivf", "method": "faiss_bits", "index": "ivf_flat",
        "data": "clustered", "n": 1000, "d": 16, "nlist": 8, "nprobe": 1,
        "q": 100, "k": 10, "pairs": 1000, "ms": 0.001, "repeats": 7,
        "recall": 0.5}
    own = rows[2]
    assert own["own_lists"] == 1 and "pairs" not in own
    cells = [result_file.cell_of(row) for row in rows]
    assert len(set(zip(cells, (r["method"] for r in rows)))) == len(rows)
    assert plot_ivf.is_race(rows)


def test_what_will_be_too_slow_is_left_out(race):
    Fake.slow["faiss_115"] = 60.0
    _, result = race("--methods", "faiss_bits,faiss_115", "--indexes",
                     "ivf_flat", "--nprobes", "1,4,8", "--max-ms", "300")
    rows = {(r["method"], r["q"], r["nprobe"]): r for r in result["rows"]}
    assert rows["faiss_115", 100, 4]["ms"] == 240
    assert rows["faiss_115", 100, 8]["why"] == "about 480 ms a call"
    assert rows["faiss_115", 100, 8]["ms"] is None
    assert "recall" not in rows["faiss_115", 100, 8]
    assert rows["faiss_bits", 100, 8]["ms"] == 0.008
    # What was told is not asked for.
    asked = [r for name, r in Fake.log if name == "faiss_115"
             and r["do"] == "search"]
    assert [(r["q"], r["nprobe"]) for r in asked] == [
        (100, 1), (100, 4), (1, 1), (1, 4)]


def test_who_is_missing_is_named(race, capsys):
    Fake.missing["cuvs"] = "No module named 'cuvs'"
    Fake.without["faiss_115", "ivf_sq8"] = "no ivf_sq8"
    status, result = race("--methods", "faiss_bits,faiss_115,cuvs",
                          "--indexes", "ivf_flat,ivf_sq8", "--nprobes", "1")
    assert status == 0
    assert result["meta"]["missing"] == {"cuvs": "No module named 'cuvs'"}
    assert result["meta"]["no_index"] == {
        "clustered ivf_sq8 faiss_115": "no ivf_sq8"}
    assert [(r["index"], r["method"]) for r in result["rows"]] == [
        ("ivf_flat", "faiss_bits"), ("ivf_flat", "faiss_115")] * 2 + [
        ("ivf_sq8", "faiss_bits")] * 2
    assert "cuvs is left out" in capsys.readouterr().out


def test_who_dies_is_not_asked_again(race):
    Fake.dead["faiss_115", 4] = True
    status, result = race("--methods", "faiss_bits,faiss_115", "--indexes",
                          "ivf_flat,ivf_sq8", "--nprobes", "1,4")
    assert status == 0
    last = [r for r in result["rows"] if r["method"] == "faiss_115"][-1]
    assert last["ms"] is None and "status 139" in last["why"]
    assert "status 139" in result["meta"]["missing"]["faiss_115"]
    assert sum(r["method"] == "faiss_bits" for r in result["rows"]) == 8
    assert sum(r["method"] == "faiss_115" for r in result["rows"]) == 2


@pytest.mark.parametrize("what", ["missing", "dead", "without"])
def test_a_race_without_ours_fails(race, what):
    key = {"missing": "faiss_bits", "dead": ("faiss_bits", 1),
           "without": ("faiss_bits", "ivf_flat")}[what]
    getattr(Fake, what)[key] = "gone"
    status, _ = race("--methods", "faiss_bits,faiss_115", "--indexes",
                     "ivf_flat", "--nprobes", "1")
    assert status == 1


def test_the_time_is_kept(race, capsys):
    status, result = race("--methods", "faiss_bits", "--max-seconds", "-1")
    assert (status, result["rows"]) == (1, [])


def test_parts_of_a_race_are_merged(race, tmp_path):
    Fake.without["cuvs", "ivf_sq8"] = "no ivf_sq8"
    paths = []
    for index in ("ivf_flat", "ivf_sq8"):
        _, part = race("--methods", "faiss_bits,cuvs", "--indexes", index)
        paths.append(str(tmp_path / f"{index}.json"))
        result_file.save(paths[-1], part)
    out = tmp_path / "all.json"
    assert merge.main([str(out), *paths]) == 0
    merged = result_file.load(out)
    assert {r["index"] for r in merged["rows"]} == {"ivf_flat", "ivf_sq8"}
    assert list(merged["meta"]["no_index"]) == ["clustered ivf_sq8 cuvs"]


def test_a_worker_says_why_it_cannot_work(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    found = subprocess.run(
        [sys.executable, str(ROOT / "benchs/ivf_worker.py"), "faiss", "cpu"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True,
        text=True, input='{"do": "build", "index": "ivf_flat"}\n', check=True)
    first, second = map(json.loads, found.stdout.splitlines())
    assert first == {"why": "no torch here"}
    assert second["why"].startswith("failed: ")


# ---- torch on the CPU -------------------------------------------------------------


def test_exact_and_training_on_the_cpu():
    torch = pytest.importorskip("torch")
    import ivf_shared as shared

    x, queries = shared.make_data("clustered", 3000, 24, 20, 3, "cpu")
    again = shared.make_data("clustered", 3000, 24, 20, 3, "cpu")
    assert torch.equal(x, again[0]) and torch.equal(queries, again[1])
    brute = (queries[:, None].double() - x[None].double()).square().sum(2)
    ids = shared.exact(x, queries, 7)
    assert torch.equal(ids, brute.argsort(1)[:, :7])
    near = shared.squares(x, ids, queries)
    assert torch.allclose(near, brute.gather(1, ids), rtol=1e-12)
    trained = shared.train(x, 16, 6, 5)
    assert trained["centroids"].shape == (16, 24)
    assert trained["codebook"].shape == (6, 256, 4)
    lists = shared.nearest(x, trained["centroids"])[:, 0]
    by_hand = torch.cdist(x.double(), trained["centroids"].double()).argmin(1)
    assert (lists == by_hand).float().mean() > 0.999
    sizes = torch.bincount(lists, minlength=16)
    assert shared.pairs(queries, trained["centroids"], sizes, 16) == 20 * 3000
    assert shared.pairs(queries, trained["centroids"], sizes, 1) == int(
        sizes[shared.nearest(queries, trained["centroids"])[:, 0]].sum())
    # Lloyd's steps bring the centers nearer.
    cost = [shared.squares(x, lists[:, None] * 0, x).sum()]
    for iterations in (0, 20):
        centers = shared.kmeans(x[None], 16, 5, iterations)[0]
        cost.append(torch.cdist(x, centers).amin(1).square().sum())
    assert cost[2] < 0.9 * cost[1] < cost[0]


@pytest.mark.parametrize("call, message", [
    (lambda s, x: s.kmeans(x[None, :5], 6, 1), "5 points are fewer than 6"),
    (lambda s, x: s.train(x, 4, 5, 1), "5 parts do not divide d = 24")])
def test_training_that_cannot_be(call, message):
    pytest.importorskip("torch")
    import ivf_shared as shared

    x, _ = shared.make_data("clustered", 50, 24, 1, 3, "cpu")
    with pytest.raises(ValueError, match=message):
        call(shared, x)


def test_a_race_on_the_cpu(tmp_path):
    """FlashLib has a way for tensors on the CPU, and what lists it was given
    is all that counts there."""
    pytest.importorskip("torch")
    pytest.importorskip("flashlib")
    out = tmp_path / "a.json"
    ivf_rivals.main([
        "--out", str(out), "--device", "cpu", "--methods", "flashlib,faiss_cuvs",
        "--indexes", "ivf_flat,ivf_pq8", "--nprobes", "1,8", "--check", "50",
        *MADE])
    result = result_file.load(out)
    assert "faiss_cuvs" in result["meta"]["missing"]
    rows = {(r["index"], r["q"], r["nprobe"]): r for r in result["rows"]}
    assert len(rows) == 8
    assert rows["ivf_flat", 100, 8]["recall"] == 1  # of all lists
    assert rows["ivf_flat", 100, 8]["pairs"] == 100 * 1000
    assert rows["ivf_flat", 100, 1]["recall"] < 1
    assert 0.5 < rows["ivf_pq8", 100, 8]["recall"] < 1
