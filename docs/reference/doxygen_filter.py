#!/usr/bin/env python3
"""What Doxygen reads of a header: doxygen_filter.py FILE.

Tables of our comments become Markdown lists, or, above a function, @param
commands for the rows that say what an argument is, so that Doxygen checks their
names. Every line stays the line it was.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import comment_layout  # noqa: E402

# Above these a row with a small letter is a field, and no argument.
_NOT_A_FUNCTION = re.compile(r"\s*(template\b.*)?(struct|class|enum|namespace|#)")


def escaped(text):
    """`<q, x>` is a product, not HTML. What is between backticks stays, and so do
    Doxygen's own commands."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [
        re.sub(r"[@\\](?![a-z])|#", r"\\\g<0>", part).replace("<", "&lt;")
        for part in parts[::2]
    ]
    return "".join(parts)


def _rewritten(lines, above_function):
    out = list(lines)
    for first, run in comment_layout.paragraphs(lines):
        rows = comment_layout.table(run)
        items = None if rows else comment_layout.hanging_list(run)
        if rows:
            new = [_row(word, text, above_function) for word, text in rows]
        elif items:
            new = [
                text if kind is None else f"- {text}" if kind else f"  {text}"
                for kind, text in items
            ]
        else:
            new = run
        out[first : first + len(run)] = map(escaped_line, new)
    return out


def _row(word, text, above_function):
    if word is None:
        return f"  {text}"
    if above_function and re.fullmatch(r"[a-z]\w*", word):
        return f"@param {word} {text}"
    return f"- **{word}** {text}"


def escaped_line(line):
    command = re.match(r"@param \w+ ", line)
    if command:
        return command[0] + escaped(line[command.end() :])
    return line if line.startswith("    ") else escaped(line)


def filtered(text):
    lines = text.split("\n")
    # What derived classes override for FAISS is no part of the reference.
    lines = [re.sub(r"^\s*protected:", "private:", line) for line in lines]
    # Of a file that is not documented, Doxygen leaves out the macros in silence.
    lines = ["/** @file */" if x == "#pragma once" else x for x in lines]
    number = 0
    while number < len(lines):
        begin = number
        while re.match(r"\s*///(?!<)", lines[number]):
            number += 1
        if number == begin:
            lines[number] = re.sub(
                r"///<.*", lambda m: "///<" + escaped(m[0][4:]), lines[number]
            )
            number += 1
            continue
        run = [re.sub(r"^\s*/// ?", "", line) for line in lines[begin:number]]
        function = not _NOT_A_FUNCTION.match(" ".join(lines[number : number + 2]))
        lines[begin:number] = [f"/// {x}" for x in _rewritten(run, function)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(filtered(Path(sys.argv[1]).read_text()))
