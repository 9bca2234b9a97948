"""benchs/bench_dropin.py, as far as it runs without FAISS and a GPU."""

import json
import sys

import pytest
from conftest import ROOT

np = pytest.importorskip("numpy")
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import bench_dropin  # noqa: E402


@pytest.fixture
def result(tmp_path):
    def write(distances, ids):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npz"
        np.savez(path, distances=np.array(distances, "float32"),
                 ids=np.array(ids))
        return path

    return write


@pytest.mark.parametrize(
    "distances, ids, equal, same",
    [
        ([[1, 2, 2, 3]], [[5, 6, 7, 8]], True, 1.0),
        ([[1, 2, 2, 3]], [[5, 7, 6, 8]], True, 0.5),  # a tie turned round
        ([[1, 2, 2, 3]], [[5, 6, 7, 9]], True, 0.75),  # its equal left out
        ([[1, 2, 2, 3]], [[4, 6, 7, 8]], False, 0.75),
        ([[1, 2, 2, 4]], [[5, 6, 7, 8]], False, 1.0),
    ],
)
def test_compare(result, distances, ids, equal, same):
    stock = result([[1, 2, 2, 3]], [[5, 6, 7, 8]])
    assert bench_dropin.compare(stock, result(distances, ids)) == (equal, same)


@pytest.mark.parametrize(
    "distances, ids, equal",
    [
        ([[1.1, 2, 2, 3]], [[5, 6, 7, 8]], True),
        ([[1.3, 2, 2, 3]], [[5, 6, 7, 8]], False),
        ([[1, 1.9, 2.2, 3]], [[5, 7, 6, 8]], True),
        ([[1, 2, 2, 3]], [[6, 5, 7, 8]], False),  # 5 is nearer than 6
        ([[1, 2, 2, 2.9]], [[5, 6, 7, 9]], True),
        ([[1, 2, 2, 3]], [[5, 6, 9, 8]], False),  # 7 is missing
    ],
)
def test_compare_with_rounding(result, distances, ids, equal):
    stock = result([[1, 2, 2, 3]], [[5, 6, 7, 8]])
    found, _ = bench_dropin.compare(stock, result(distances, ids), 0.25)
    assert found == equal


@pytest.mark.parametrize("rows, equal", [(0, True), (2, True), (3, False)])
def test_compare_allows_rows_with_other_lists(result, rows, equal):
    distances = np.ones((2000, 2), "float32")
    ids = np.tile([3, 4], (2000, 1))
    stock = result(distances, ids)
    distances[:rows, 1] = 5
    ids[:rows, 1] = 7
    found, same = bench_dropin.compare(stock, result(distances, ids), 0.25, 1e-3)
    assert (found, same) == (equal, 1 - rows / 4000)


def test_tolerance_is_of_the_arithmetic():
    worker = object.__new__(bench_dropin.Worker)
    worker.greatest_norm = 3.0
    xq = np.array([[2, 0, 0, 0], [0, 1, 0, 0]], "float32")
    unit = 8 * 2.0**-24
    assert worker.tolerance("flat_l2", 4, xq) == 25 * unit
    assert worker.tolerance("flat_ip", 4, xq) == 6 * unit
    assert worker.tolerance("ivf_flat", 4, xq) == 25 * unit
    for index in ("ivf_sq8", "ivf_pq32", "ivf_pq32_tables"):
        assert worker.tolerance(index, 4, xq) == 2 * 121 * 12 * 2.0**-24
    assert worker.tolerance("binary_flat", 4, xq) == 0


def test_cells_and_report(tmp_path):
    options = bench_dropin.parse(
        "--indexes flat_l2 ivf_pq32 --q 1 16 --k 10 2048 --d 32 64".split()
    )
    cells = list(bench_dropin.cells(options))
    assert len(cells) == len(set(cells)) == 16
    assert cells[0] == ("flat_l2", 1 << 20, 32, None, None, 1, 10)
    assert cells[8] == ("ivf_pq32", 1 << 20, 32, 4096, 32, 1, 10)
    # Other lists are of other indexes; flat ones have none, and no list has fewer
    # than 64 vectors.
    options = bench_dropin.parse(
        "--indexes flat_l2 ivf_pq32 --n 131072 --nlist 4096 1024 --nprobe 32 8 "
        "--q 1 --k 10".split()
    )
    assert list(bench_dropin.cells(options)) == [
        ("flat_l2", 1 << 17, 128, None, None, 1, 10),
        *(("ivf_pq32", 1 << 17, 128, nlist, nprobe, 1, 10)
          for nlist in (2048, 1024) for nprobe in (32, 8)),
    ]
    path = tmp_path / "rows.json"
    for rows in ([], [{"bench": "dropin"}], [{"bench": "dropin"}, {"q": 1}]):
        bench_dropin.save(path, {"gpu": "x"}, rows)
        assert json.loads(path.read_text()) == {"meta": {"gpu": "x"}, "rows": rows}


def test_vectors_are_the_same_everywhere():
    first, again = (bench_dropin.vectors(50, 8, 3) for _ in range(2))
    assert first.dtype == np.float32 and (first == again).all()
    assert (first != bench_dropin.vectors(50, 8, 4)).any()
    assert bench_dropin.codes(5, 64, 1).shape == (5, 8)
