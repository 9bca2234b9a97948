"""Nearest words and a spell check, from the command line.

    python -m faiss_bits.contrib.words                    # asks for words and lines
    python -m faiss_bits.contrib.words "teh quick borwn fox"
    python -m faiss_bits.contrib.words --words my_words.txt -k 5 "acommodate"

One word: the words nearest to it, by edit distance. A line: each of its words
that is not in the list, with what it may have been. The list is British English
(347,734 words) or with --language spanish Spanish (86,016), which Debian has in
the packages wbritish-huge and wspanish, or a file of yours with a word a line.
It runs on the GPU if there is one, else on the CPU.
"""

import argparse
import re
import sys
import time
from pathlib import Path
from typing import List, NamedTuple, Tuple

import faiss_bits
from faiss_bits.contrib.programs import status_of

__all__ = ["Checked", "check_text", "read_words", "suggestions"]

LISTS = {
    "english": ("/usr/share/dict/british-english-huge", "wbritish-huge"),
    "spanish": ("/usr/share/dict/spanish", "wspanish"),
}
EXAMPLES = {
    "english": (
        "acommodate",
        "The quick borwn fox jmups over teh lazy dog, definately a pangramm.",
    ),
    "spanish": (
        "murcielago",
        "El velos murciélago hindú come felis cardilo con una zigüeña.",
    ),
}
FARTHEST = 3  # edits, of what a word may have been
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class Checked(NamedTuple):
    """A word of a text that is not in the list."""

    word: str
    place: int  #: of its first letter in the text
    near: List[Tuple[str, int]]  #: words of the list and distances, best first


def read_words(path):
    """The different lines of a file in UTF-8 that are not empty, in its order."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    return list(dict.fromkeys(line for line in lines if line))


def _rank(word, found):
    """Two neighbours that changed places are one slip of the fingers, though two
    edits; and the first letter is seldom wrong."""

    def key(other):
        text, distance = other
        swapped = distance == 2 and any(
            word[:i] + word[i + 1] + word[i] + word[i + 2 :] == text
            for i in range(len(word) - 1)
        )
        return (
            1 if swapped else distance,
            not swapped,
            text[:1].lower() != word[:1].lower(),
            text[:1].islower() != word[:1].islower(),
        )

    return sorted(found, key=key)  # as found, where equal


def suggestions(index, words, k=8, method="auto"):
    """For each word, up to k of the index's that it may have been.

    Parameters
    ----------
    index : faiss_bits.EditDistanceIndex
        The words that are right, as str
    words : list of str
        Those that are not in it
    k : int, optional
        How many of each
    method : str, optional
        Of the index's searches

    Returns
    -------
    near : list of list of (str, int)
        Words and distances: those within 2 edits or, where there is none,
        within 3; neighbours that changed places first, then by distance
    """
    near = [[] for _ in words]
    left = list(range(len(words)))
    for most in (2, FARTHEST):
        lims, D, I = index.range_search([words[i] for i in left], most, method)
        for place, i in enumerate(left):
            part = slice(lims[place], lims[place + 1])
            found = [(index.words[j], int(d)) for j, d in zip(I[part], D[part])]
            near[i] = _rank(words[i], found)[:k]
        left = [i for i in left if not near[i]]
        if not left:
            break
    return near


def check_text(index, text, known=None, k=8):
    """The words of a text that are not in the index, in their order.

    Parameters
    ----------
    index : faiss_bits.EditDistanceIndex
        The words that are right, as str
    text : str
        Any text; its words are runs of letters, with apostrophes inside
    known : set of str, optional
        The index's words, where a set of them is there already
    k : int, optional
        Suggestions for each

    Returns
    -------
    checked : list of Checked
        A word is known as it stands, or with a small first letter, or with all
        letters small
    """
    known = set(index.words) if known is None else known
    places = [
        match
        for match in _WORD.finditer(text)
        if not known
        & {match[0], match[0].lower(), match[0].replace("’", "'").lower()}
    ]
    near = suggestions(index, [match[0] for match in places], k)
    return [
        Checked(match[0], match.start(), found)
        for match, found in zip(places, near)
    ]


# ---- what is printed ----------------------------------------------------------


class Paint:
    """Colours on a terminal, nothing elsewhere."""

    def __init__(self, on):
        self.on = on

    def __call__(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.on else text


def nearest_text(index, word, k, paint):
    """The words nearest to one, a line for each distance."""
    begin = time.perf_counter()
    D, I = index.search([word], min(k, index.ntotal))
    seconds = time.perf_counter() - begin
    lines = [f"nearest to {paint('1', word)}"]
    for distance in sorted(set(D[0].tolist())):
        same = [index.words[i] for i in I[0][D[0] == distance]]
        edits = {0: "it is there", 1: "1 edit"}.get(distance, f"{distance} edits")
        lines.append(f"  {edits:>11}   {paint('32', ', '.join(same))}")
    lines.append(f"  {1e3 * seconds:.1f} ms")
    return "\n".join(lines)


def checked_text(index, text, known, k, paint):
    """The text, its wrong words marked, and what they may have been."""
    begin = time.perf_counter()
    checked = check_text(index, text, known, k)
    seconds = time.perf_counter() - begin
    marks, at, shown = "", 0, ""
    for one in checked:
        shown += text[at : one.place] + paint("1;31", one.word)
        marks += " " * (one.place - at) + paint("31", "^" * len(one.word))
        at = one.place + len(one.word)
    lines = [shown + text[at:]]
    if checked:
        lines.append(marks)
    width = max((len(one.word) for one in checked), default=0)
    for one in checked:
        near = ", ".join(
            f"{paint('32', word)} {distance}" for word, distance in one.near
        )
        pad = " " * (width - len(one.word))
        lines.append(
            f"  {one.word}{pad}  {near or f'nothing within {FARTHEST} edits'}"
        )
    count = len(_WORD.findall(text))
    lines.append(
        f"  {len(checked)} of {count} words not in the list; {1e3 * seconds:.1f} ms"
    )
    return "\n".join(lines)


def answer(index, text, known, k, paint):
    """What there is to say about a word or a line."""
    if len(text.split()) == 1:
        return nearest_text(index, text, k, paint)
    return checked_text(index, text, known, k, paint)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="words",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("text", nargs="*", help="words or lines; none: asks for them")
    add("--words", metavar="FILE", help="your words, one a line, in UTF-8")
    add("--language", choices=sorted(LISTS), default="english",
        help="the list, without --words (default: english)")
    add("-k", type=int, default=8, help="words to show (default: 8)")
    add("--device", choices=["auto", "cpu", "gpu"], default="auto")
    args = parser.parse_args(arguments)
    if args.k < 1:
        parser.error(f"-k {args.k}: at least 1 is needed")
    return args


def load(args):
    """The words; exits where there is no list."""
    path, package = LISTS[args.language]
    if args.words:
        return read_words(args.words), args.words
    if not Path(path).exists():
        sys.exit(
            f"{path} is not there: apt-get install {package}, or give a list "
            "with --words"
        )
    return read_words(path), Path(path).name


def converse(index, known, k, paint):
    """Answers until an empty line, Ctrl-D or Ctrl-C."""
    while True:
        try:
            text = input("\na word, or a line of text (empty: the end) > ").strip()
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if not text:
            return
        print(answer(index, text, known, k, paint))


def main(arguments=None):
    args = parse(arguments)
    return status_of(lambda: run(args), "\nstopped")


def run(args):
    paint = Paint(sys.stdout.isatty())
    begin = time.perf_counter()
    try:
        words, name = load(args)
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"--words {args.words}: {error}")
    if not words:
        sys.exit(f"--words {args.words}: no word in it")
    index = faiss_bits.EditDistanceIndex(words, args.device)
    known = set(words)
    seconds = time.perf_counter() - begin
    place = "GPU" if index.on_gpu else "CPU"
    print(f"{index.ntotal:,} words of {name} ready in {seconds:.2f} s, on the {place}")
    asks = not args.text and sys.stdin.isatty()
    texts = args.text or (EXAMPLES[args.language] if not args.words else [])
    if not args.text and not sys.stdin.isatty():
        given = [line.strip() for line in sys.stdin]
        texts = [line for line in given if line] or texts
    for text in texts:
        print()
        print(answer(index, text, known, args.k, paint))
    if asks:
        converse(index, known, args.k, paint)
    return 0


if __name__ == "__main__":
    sys.exit(main())
