"""python -m faiss_bits.contrib.words: nearest words and a spell check."""

import io
import sys
import time

import pytest

import faiss_bits
import faiss_bits.contrib.words as program

WORDS = "the quick brown fox jumps over a lazy dog don't born then ten café".split()


@pytest.fixture
def index():
    return faiss_bits.EditDistanceIndex(WORDS)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\n".join([*WORDS, "", "fox"]) + "\n", encoding="utf-8")
    return str(path)


def test_reads_different_words(path):
    assert program.read_words(path) == WORDS


def test_suggests_what_may_have_been(index):
    near = program.suggestions(index, ["borwn", "teh", "xyzzyx", "Cafe"])
    # Neighbours that changed places before what is one edit away.
    assert near[0][:2] == [("brown", 2), ("born", 1)]
    assert near[1][0] == ("the", 2) and ("ten", 1) in near[1]
    assert near[2] == []
    assert near[3] == [("café", 2)]
    assert program.suggestions(index, []) == []
    assert len(program.suggestions(index, ["teh"], k=1)[0]) == 1


def test_checks_a_text(index):
    text = "The quick borwn fox: DON’T jmups, 12 dogz!"
    found = program.check_text(index, text)
    assert [one.word for one in found] == ["borwn", "jmups", "dogz"]
    assert all(text[one.place :].startswith(one.word) for one in found)
    assert found[1].near[0] == ("jumps", 2)
    assert program.check_text(index, "the lazy dog") == []
    assert program.check_text(index, "") == []


def test_prints_words_and_lines(path, capsys):
    arguments = ["--words", path, "--device", "cpu", "-k", "3"]
    assert program.main([*arguments, "teh", "teh lazy dgo"]) == 0
    out = capsys.readouterr().out
    assert "14 words of" in out and "on the CPU" in out
    assert "nearest to teh\n       1 edit   ten" in out
    assert "\nteh lazy dgo\n^^^      ^^^\n  teh  the 2" in out
    assert "2 of 3 words not in the list" in out
    assert "\033" not in out  # no terminal, no colours


def test_reads_lines(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a lazzy dog\n\nfox\n"))
    assert program.main(["--words", path, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "lazzy  lazy 1" in out and "nearest to fox\n  it is there   fox" in out


def test_asks(path, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("brwn\n\n"))
    assert program.main(["--words", path, "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "a word, or a line of text" in out and "1 edit   brown" in out
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    assert program.main(["--words", path, "--device", "cpu"]) == 0


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--words", "missing.txt"], "missing.txt"),
        (["--words", "empty.txt"], "no word in it"),
        (["--words", "bytes.txt"], "bytes.txt"),
    ],
)
def test_bad_files(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "bytes.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(SystemExit, match=text):
        program.main(arguments)


@pytest.mark.cpu
def test_no_gpu_is_one_line(path, capsys):
    assert program.main(["--words", path, "--device", "gpu", "teh"]) == 1
    err = capsys.readouterr().err
    assert "device = 'gpu'" in err and "Traceback" not in err


def test_no_list(monkeypatch):
    monkeypatch.setitem(program.LISTS, "spanish", ("/nowhere/spanish", "wspanish"))
    with pytest.raises(SystemExit, match="apt-get install wspanish"):
        program.main(["--language", "spanish", "hola"])


def test_bad_k(capsys):
    with pytest.raises(SystemExit):
        program.main(["-k", "0", "word"])
    assert "-k 0" in capsys.readouterr().err


def test_a_line_within_a_second():
    """Among a list as long as a language's."""
    letters = "abcdefghij"
    words = [a + b + c + d + e for a in letters for b in letters for c in letters
             for d in letters for e in letters]
    index = faiss_bits.EditDistanceIndex(words, "cpu")
    known = set(words)
    program.check_text(index, "abczd", known)
    begin = time.perf_counter()
    found = program.check_text(index, "abcdz xbcde abde zzzzz acegi zbzdb", known)
    assert time.perf_counter() - begin < 1
    assert len(found) == 5


def test_ctrl_c_leaves_a_line(path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "answer", interrupted)
    assert program.main(["--words", path, "--device", "cpu", "teh"]) == 130
    assert capsys.readouterr().err.endswith("stopped\n")
