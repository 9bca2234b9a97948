"""The layout of our comments, for programs that know only Markdown or reST.

Headers and docstrings lay out what they promise as a table of words and texts:

    Limits   1 <= k <= kMaxK, above ntotal as well; at most
             2^31 - 1 vectors
    Errors   FaissException naming the argument and its value

or as a list of indented lines. To Doxygen and Sphinx both are one paragraph, or
an error. The functions here find them, line by line: nothing is moved to another
line, so that a warning names the line of the header.
"""

import re

_ROW = re.compile(r"(\S+(?: \S+)?) {2,}(\S.*)")


def _indent(line):
    return len(line) - len(line.lstrip())


def _text_column(lines):
    """Where the texts of a table begin: that of its rows, which a long word may
    push further, or of the lines that go on."""
    columns = [_indent(line) for line in lines if _indent(line)]
    columns += [row.start(2) for row in map(_ROW.match, lines) if row]
    return min(columns)


def table(lines):
    """[(word or None, text)] of the lines of a paragraph that is a table, None
    for a line that goes on; or None if it is no table."""
    if not _ROW.fullmatch(lines[0]):
        return None
    column = _text_column(lines)
    rows = []
    for line in lines:
        row = _ROW.fullmatch(line)
        word, text = line[: column - 1].rstrip(), line[column:]
        if _indent(line) >= column:
            rows.append((None, line.strip()))
        elif row:
            rows.append(row.groups())
        elif word and line[column - 1 : column] == " " and not text[:1].isspace():
            rows.append((word, text))
        else:
            return None
    return rows


def hanging_list(lines):
    """[(is an item, text)] of the lines of a paragraph of which some are
    indented, False for a line that goes on; or None if there are none. Lines
    before the first item are (None, text)."""
    steps = sorted({_indent(line) for line in lines if _indent(line)})
    if not steps or _indent(lines[0]):
        return None
    found = []
    for line in lines:
        depth = _indent(line)
        if not depth and found and found[-1][0] is not None:
            return None
        kind = None if not depth else depth == steps[0]
        found.append((kind, line.strip()))
    return found


def paragraphs(lines):
    """The lines in runs, [(first, [line, ...])], cut at empty ones."""
    runs = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        if runs and runs[-1][0] + len(runs[-1][1]) == number:
            runs[-1][1].append(line)
        else:
            runs.append((number, [line]))
    return runs
