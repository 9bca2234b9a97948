"""An entry for what is in a namespace, in place of one for the namespace: Breathe
would declare faiss_bits anew for every header, which C++ may and Sphinx may not."""

from breathe.renderer.sphinxrenderer import SphinxRenderer, WithContext

_qualification = SphinxRenderer.get_qualification


def _visit_namespace(self, node):
    inside = self.compound_parser.parse(node.refid)
    inside.compounddef.briefdescription = None
    inside.compounddef.detaileddescription = None
    parent = self.context.create_child_context(inside)
    with WithContext(self, parent.create_child_context(inside.compounddef)):
        return self.render(inside, parent)


def _get_qualification(self):
    """Functions, enumerations and constants get the name of the namespace that
    they are in; classes bring it along."""
    stack = self.context.node_stack
    if self.nesting_level or stack[0].node_type != "memberdef":
        return _qualification(self)
    for node in stack:
        if node.node_type == "compounddef" and node.kind == "namespace":
            return node.compoundname.split("::")
    return _qualification(self)


def setup(app):
    SphinxRenderer.visit_namespace = _visit_namespace
    SphinxRenderer.get_qualification = _get_qualification
