"""Parts of many.json, of one device and of two, become one file."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchs"))

import merge  # noqa: E402
import result_file  # noqa: E402

META = {"gpu": "a GPU", "commit": "abc", "date": "2026-01-01"}


def row(shards, devices, ms, **fields):
    fields = {
        "kind": "shards", "method": "faiss_bits", "arrays": "device", **fields
    }
    return {
        "bench": "many", "index": "flat", "shards": shards, "devices": devices,
        "peers": int(devices > 1), "n": 1024, "d": 8, "q": 4, "k": 2, "ms": ms,
        **fields,
    }


@pytest.fixture
def save(tmp_path):
    def save(name, rows, **meta):
        path = str(tmp_path / name)
        result_file.save(path, {"meta": {**META, **meta}, "rows": rows})
        return path

    return save


def test_parts_become_one_file(save, tmp_path):
    one = [row(1, 1, 3.0), row(8, 1, 4.0, merge_ms=0.1)]
    two = [
        row(2, 2, 2.0, merge_ms=0.2),
        row(2, 2, 2.5, kind="replicas"),
        row(2, 2, 2.6, arrays="host"),
        row(2, 2, 9.0, arrays="host", method="faiss"),
    ]
    again = [row(8, 1, 3.9, merge_ms=0.1)]  # the later one counts
    out = str(tmp_path / "many.json")
    parts = [
        save("1.json", one, read_bw_gbps=4500.0),
        save("2.json", two, read_bw_gbps=4510.0),
        save("3.json", again, read_bw_gbps=4400.0),
    ]
    assert merge.main([out, *parts]) == 0
    merged = result_file.load(out)
    assert merged["rows"] == [one[0], again[0], *two]
    assert merged["meta"] == {**META, "read_bw_gbps": 4510.0}


@pytest.mark.parametrize("field", ["commit", "gpu", "date"])
def test_parts_of_other_runs_are_refused(save, tmp_path, capsys, field):
    out = tmp_path / "many.json"
    parts = [save("1.json", [row(1, 1, 3.0)]), save("2.json", [row(2, 2, 2.0)],
                                                    **{field: "other"})]
    assert merge.main([str(out), *parts]) == 1
    assert field in capsys.readouterr().err
    assert not out.exists()
