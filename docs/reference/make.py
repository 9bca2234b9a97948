#!/usr/bin/env python3
"""Makes the reference: make.py OUT [--root FOLDER] [--linkcheck].

Doxygen reads the headers that the pages in docs/reference/cpp name, Sphinx makes
OUT/html of it, of the docstrings of the faiss_bits on PYTHONPATH, and of the
pages of the tree. A warning of either is an error. --linkcheck asks for every
page on the network that one of ours names, too.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ENTRY = re.compile(r"^```\{doxygenfile\} (\S+)$", re.M)


def headers(root):
    """The headers that have an entry, in the order of the pages."""
    pages = sorted((root / "docs/reference/cpp").glob("*.md"))
    return [
        name
        for page in pages
        for name in _ENTRY.findall(page.read_text())
    ]


def run_doxygen(root, out):
    """OUT/doxygen/xml; raises where Doxygen has something to say."""
    folder = out / "doxygen"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = ["docs/reference/namespaces.dox", *headers(root)]
    missing = [name for name in names if not (root / name).is_file()]
    if missing:
        sys.exit(f"docs/reference/cpp names what is not there: {missing}")
    settings = [
        (_HERE / "Doxyfile").read_text(),
        f'OUTPUT_DIRECTORY = "{folder}"',
        f'STRIP_FROM_PATH = "{root}"',
        f'INPUT_FILTER = "{sys.executable} {_HERE}/doxygen_filter.py"',
        "INPUT = " + " ".join(f'"{root / name}"' for name in names),
    ]
    subprocess.run(
        ["doxygen", "-"], input="\n".join(settings), text=True, cwd=root, check=True
    )
    for path in (folder / "xml").glob("*.xml"):
        path.write_text(public_part(path.read_text()))
    return folder / "xml"


def public_part(xml):
    """Doxygen's XML without private members, which it always has, and without
    links to the text of headers, which is no page here."""
    xml = re.sub(
        r'<sectiondef kind="(private|friend)[^>]*>.*?</sectiondef>', "", xml, flags=re.S
    )
    return re.sub(r'<ref refid="\w+_8h(?:_source)?"[^>]*>(.*?)</ref>', r"\1", xml)


def run_sphinx(root, out, xml, builder):
    """OUT/<builder>. Everything is read anew: Sphinx does not know when a
    docstring or a header has changed."""
    subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-q"),
            *("-b", builder, "-c", _HERE, "-d", out / "doctrees"),
            *(root, out / builder),
        ],
        env={**os.environ, "FAISS_BITS_DOXYGEN_XML": str(xml)},
        cwd=out,  # not where the folder faiss_bits is
        check=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=lambda text: Path(text).resolve())
    parser.add_argument("--root", type=Path, default=_HERE.parents[1])
    parser.add_argument("--linkcheck", action="store_true")
    args = parser.parse_args()
    args.root = args.root.resolve()
    try:
        xml = run_doxygen(args.root, args.out)
        run_sphinx(args.root, args.out, xml, "html")
        if args.linkcheck:
            run_sphinx(args.root, args.out, xml, "linkcheck")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]}: {error.returncode}, see above")


if __name__ == "__main__":
    main()
