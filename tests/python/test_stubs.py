"""__init__.pyi says of names, arguments and defaults what the package has."""

import ast
import inspect
import pathlib

import faiss
import pytest

import faiss_bits

PACKAGE = pathlib.Path(faiss_bits.__file__).parent
TREE = ast.parse((PACKAGE / "__init__.pyi").read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {
    node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)
}
# Of all builds; this one may be without the GPU part.
ALL_NAMES = {
    *faiss_bits._FUNCTIONS,
    *faiss_bits._CPU_CLASSES,
    *faiss_bits._PYTHON_CLASSES,
    *faiss_bits._GPU_CLASSES,
}


def members(node):
    """Functions and annotated names of a class, its own and those of the bases
    that the stubs have."""
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in CLASSES:
            yield from members(CLASSES[base.id])
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            yield item.name, item
        elif isinstance(item, ast.AnnAssign):
            yield item.target.id, None


def is_overload(node):
    return any(getattr(one, "id", "") == "overload" for one in node.decorator_list)


def is_property(node):
    return any(getattr(one, "id", "") == "property" for one in node.decorator_list)


REQUIRED, ANY = "required", "any"


def of_stub(node):
    """[(name, kind, default)] of a function in the stubs; ANY: a default that they
    leave out."""

    def default(expression):
        if expression is None:
            return REQUIRED
        value = ast.literal_eval(expression)
        return ANY if value is Ellipsis else value

    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults))
    found = [
        (one.arg, "positional", default(value))
        for one, value in zip(positional, [*defaults, *arguments.defaults])
    ]
    if arguments.vararg:
        found.append((arguments.vararg.arg, "var_positional", REQUIRED))
    found += [
        (one.arg, "keyword", default(value))
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    if arguments.kwarg:
        found.append((arguments.kwarg.arg, "var_keyword", REQUIRED))
    return found


KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}


def of_package(function):
    return [
        (
            one.name,
            KINDS[one.kind],
            REQUIRED if one.default is one.empty else one.default,
        )
        for one in inspect.signature(function).parameters.values()
    ]


def takes_no_keywords(function):
    """Whether it is one of SWIG's, or of ours around them: (self, *args)."""
    kinds = [one.kind for one in inspect.signature(function).parameters.values()]
    return kinds[-1:] == [inspect.Parameter.VAR_POSITIONAL]


def expect_positional_only(name, stub):
    """The stub lets nobody pass by name what the package would refuse so."""
    arguments = stub.args
    takes = [*arguments.args, *arguments.kwonlyargs, arguments.kwarg]
    said = [one.arg for one in takes if one and one.arg != "self"]
    assert not said, f"{name}: {said} cannot be passed by name"


def expect_same(name, stub, function):
    said, there = of_stub(stub), of_package(function)
    assert [one[:2] for one in said] == [one[:2] for one in there], name
    for (argument, _, mine), (_, _, its) in zip(said, there):
        if mine is ANY:
            assert its is not REQUIRED, (name, argument)
        else:
            assert mine == its and type(mine) is type(its), (name, argument)


def test_every_public_name_and_no_other():
    public = {name for name in (*CLASSES, *FUNCTIONS) if name[0] != "_"}
    assert public == ALL_NAMES
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_arguments_of_functions(name):
    expect_same(name, FUNCTIONS[name], getattr(faiss_bits, name))


@pytest.mark.parametrize("name", sorted(name for name in CLASSES if name[0] != "_"))
def test_classes(name):
    if name not in faiss_bits.__all__:
        pytest.skip("no GPU part in this build")
    the_class = getattr(faiss_bits, name)
    for base in CLASSES[name].bases:
        if isinstance(base, ast.Attribute):  # of faiss
            assert issubclass(the_class, getattr(faiss, base.attr)), name
    instance = {
        "Kmeans": lambda: faiss_bits.Kmeans(2, 3),
        "EditDistanceIndex": lambda: faiss_bits.EditDistanceIndex(["a"]),
    }.get(name, lambda: the_class)()
    for member, node in members(CLASSES[name]):
        there = getattr(instance, member, None)
        assert hasattr(instance, member), (name, member)
        if node is None or is_property(node):
            continue
        function = vars(the_class).get(member, getattr(the_class, member))
        if takes_no_keywords(function):
            assert callable(there), (name, member)
            expect_positional_only(f"{name}.{member}", node)
            continue
        assert not is_overload(node), (name, member)
        expect_same(f"{name}.{member}", node, function)
