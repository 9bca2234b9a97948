"""Docstrings of ours as reST. They are plain text in numpydoc's sections, with
tables as comment_layout.py describes them; those of the compiled classes are
comments of the headers, which SWIG has copied."""

import inspect
import re

from sphinx.util import logging

import comment_layout
import gpu_classes

_LOG = logging.getLogger(__name__)


def escaped(text):
    """Of what reST reads as a mark, only backticks are meant as one: code, also
    where it is part of a word."""
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"[\\*|`]|_(?=\W|$)", r"\\\g<0>", x) for x in parts[::2]]
    parts[1::2] = [f"``{x}``" for x in parts[1::2]]
    for i in range(2, len(parts), 2):
        if re.match(r"[^\s.,:;!?)\]'\"-]", parts[i]):
            parts[i] = "\\ " + parts[i]
    return "".join(parts)


def _is_heading(lines, number):
    below = lines[number + 1 : number + 2]
    return bool(below) and re.fullmatch(r"-{3,}", below[0].strip()) is not None


def _paragraph(lines):
    """One paragraph outside numpydoc's sections."""
    if lines[0].startswith("    "):
        return ["::", "", *lines]
    rows = comment_layout.table(lines)
    if rows:
        return [
            f"  {escaped(text)}" if word is None
            else f"- **{escaped(word)}** {escaped(text)}"
            for word, text in rows
        ]
    items = comment_layout.hanging_list(lines)
    if items:
        out = [escaped(text) for kind, text in items if kind is None] + [""]
        return out + [
            ("- " if kind else "  ") + escaped(text)
            for kind, text in items
            if kind is not None
        ]
    return [escaped(line) for line in lines]


_LISTS = ("Parameters", "Returns", "Raises", "Attributes")
_ENTRY = re.compile(r"\*{0,2}[\w.]+(, \*{0,2}[\w.]+)*( : .+)?")


def _entries(lines, section, name):
    """The lines of a section that is a list of entries. Their names keep their
    stars, which napoleon reads."""
    out = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if line.strip() and not line.startswith(" ") and not entry and name:
            _LOG.warning(
                "%s: %r is no entry of %s", name, line, section, location=name
            )
        names, colon, rest = line.partition(" : ")
        out.append(names + colon + escaped(rest) if entry else escaped(line))
    return out


def _text(lines):
    out = []
    for _, run in comment_layout.paragraphs(lines):
        out += [*_paragraph(run), ""]
    return out


def as_rest(lines, name=None):
    """The lines of a docstring, cleaned of indentation, as reST. `name`: whose it
    is, where a text among the entries of a section is to be told."""
    # Where SWIG numbers several C++ functions of one name.
    lines = [
        "" if re.fullmatch(r"\s*(\||\*Overload \d+:\*)\s*", x) else x for x in lines
    ]
    heads = [i for i in range(len(lines)) if _is_heading(lines, i)]
    out = _text(lines[: heads[0]] if heads else lines)
    for begin, end in zip(heads, [*heads[1:], len(lines)]):
        section, inside = lines[begin].strip(), lines[begin + 2 : end]
        out += lines[begin : begin + 2]
        out += (
            _entries(inside, section, name) if section in _LISTS else _text(inside)
        )
    return out


def _process(app, what, name, obj, options, lines):
    if not any(line.strip() for line in lines):
        _LOG.warning("%s has no docstring", name, location=name)
    if what == "class":
        lines[:] = _with_signature(obj, lines)
    # What FAISS's own wrappers say is FAISS's.
    ours = not (getattr(obj, "__module__", None) or "").startswith("faiss.")
    lines[:] = as_rest(lines, name if ours else None)
    if what in _VALUES:
        _kept[name] = list(lines)


def _with_signature(the_class, lines):
    """Of a constructor's docstring that lists several ways to call it, autodoc has
    cut off the first, for its own use."""
    whole = inspect.cleandoc(the_class.__init__.__doc__ or "").split("\n")
    if whole[0].startswith(f"{the_class.__name__}(") and lines[-1:] == [""]:
        rest = [line.strip() for line in whole[1:]]
        if rest == [line.strip() for line in lines[:-1]]:
            return [*whole, ""]
    return lines


# Of these, napoleon takes what stands before the first colon for a type.
_VALUES = ("attribute", "data", "property")
_kept = {}


def _keep(app, what, name, obj, options, lines):
    if what in _VALUES:
        lines[:] = _kept.pop(name)


def _skip(app, what, name, obj, skip, options):
    """The methods of C++ that FAISS's wrappers keep beside the Python ones: the
    C++ pages have them."""
    if what == "class" and name.endswith(("_c", "_ex")):
        return True
    return None


def setup(app):
    gpu_classes.complete()
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-docstring", _keep, priority=600)
    app.connect("autodoc-skip-member", _skip)
