"""Links of the Markdown pages to folders of the tree. Sphinx knows pages and
files; a folder that is there is a good link, and stays a text."""

from pathlib import Path


def _resolve(app, env, node, contnode):
    target = node.get("reftarget", "")
    page = Path(env.doc2path(node.get("refdoc", env.config.root_doc)))
    if "/" in target and (page.parent / target).is_dir():
        return contnode
    return None


def setup(app):
    app.connect("missing-reference", _resolve)
