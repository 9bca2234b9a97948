"""Sphinx's settings of the reference. make.py calls Sphinx with them; the source
folder is the root of the tree, so that a link among its files is the same here
and there."""

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))
os.environ["FAISS_BITS_DROPIN"] = "off"  # faiss_bits.dropin is read, not used

import docstrings  # noqa: E402
import flat_namespaces  # noqa: E402
import tree_links  # noqa: E402

project = "faiss_bits"
html_title = "faiss_bits"
root_doc = "docs/reference/index"
include_patterns = ["*.md", "docs/**.md", "benchs/README.md", "benchs/cpu/README.md", "benchs/results/README.md", "research/README.md"]
exclude_patterns = ["build*", "out", "dist", ".*"]  # not searched at all
extensions = ["breathe", "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# ---- links ------------------------------------------------------------------

# With -W, what names something that is not there is an error.
nitpicky = True
# Of others; namespaces, which have no entry; and types without an inside.
nitpick_ignore_regex = [
    (r"cpp:identifier", r"(std|faiss)(::.*)?|(cuda|cublas)\w+|u?int\d+_t|size_t"),
    (r"cpp:identifier", r"INT32_MAX|faiss_bits(::(cpu|gpu|words))?|cpu|gpu|words"),
    (r"cpp:identifier", r"FlatKnnPlan|FlatRangePlan|SelectFamilyPlan"),
    (r"py:class", r"(numpy|os|faiss)\..*|array_like"),
]
myst_heading_anchors = 6

# ---- C++ --------------------------------------------------------------------

breathe_projects = {"faiss_bits": os.environ["FAISS_BITS_DOXYGEN_XML"]}
breathe_default_project = "faiss_bits"
breathe_default_members = ("members",)
breathe_show_include = False
highlight_language = "none"

# ---- Python -----------------------------------------------------------------

autodoc_default_options = {
    "members": True,
    "undoc-members": True,  # docstrings.py makes them an error
    "member-order": "bysource",
    "exclude-members": "this, thisown",
}
autoclass_content = "both"
autodoc_docstring_signature = True
# A type is a text ("array_like, optional"), and no name to look up.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_google_docstring = False

# ---- pages ------------------------------------------------------------------

html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_additional_pages = {"index": "to_reference.html"}
templates_path = ["templates"]


def setup(app):
    docstrings.setup(app)
    flat_namespaces.setup(app)
    tree_links.setup(app)
