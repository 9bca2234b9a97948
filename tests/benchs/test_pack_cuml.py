"""benchs/pack_cuml.py: what stays of a library's machine code."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchs"))
sys.dont_write_bytecode = True

import pack_cuml  # noqa: E402

PTX, LINKED = 1, 8


def entry(kind, arch, payload, header=64):
    head = pack_cuml.ENTRY.pack(kind, 0x101, header, len(payload), arch)
    return head + b"h" * (header - len(head)) + payload


def binary(*entries):
    body = b"".join(entries)
    return pack_cuml.HEADER.pack(0xBA55ED50, 1, 16, len(body)) + body


def test_only_machine_code_of_the_architecture_stays(tmp_path):
    def library(*payloads):
        a, b, c, d, e = payloads
        return (b"host code" + binary(entry(2, 80, a), entry(2, 90, b), entry(PTX, 90, c))
                + pack_cuml.MAGIC + b"no header" * 4
                + binary(entry(LINKED, 75, d, 120), entry(2, 90, e)) + b"data")

    path = tmp_path / "lib.so"
    path.write_bytes(library(b"aaaa", b"bbbbb", b"cc", b"ddd", b"ee"))
    assert pack_cuml.prune(path, 90) == (7, 9)
    assert path.read_bytes() == library(
        bytes(4), b"bbbbb", bytes(2), bytes(3), b"ee")


def test_a_broken_entry_is_no_silent_loss(tmp_path):
    path = tmp_path / "lib.so"
    path.write_bytes(binary(entry(2, 90, b"b", header=64)[:-1] + b"", b"x" * 40))
    with pytest.raises(ValueError, match="no entry of machine code at byte"):
        pack_cuml.prune(path, 90)


def test_a_folder_without_wheels(tmp_path):
    with pytest.raises(FileNotFoundError, match="libcuvs.so"):
        pack_cuml.main([str(tmp_path), str(tmp_path / "out")])


def test_a_folder_that_is_there(tmp_path, capsys):
    with pytest.raises(SystemExit):
        pack_cuml.main([str(tmp_path), str(tmp_path)])
    assert "is there already" in capsys.readouterr().err
