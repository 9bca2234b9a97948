"""The modules of the package form layers: none imports one that imports it,
at the top or inside a function, and no import hides in a function."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import faiss_bits

PACKAGE = Path(faiss_bits.__file__).parent
# Modules as their names below the package; "" is the package itself.
FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    .replace("__init__", "")
    .rstrip("."): path
    for folder in ("", "contrib/", "distributed/")
    for path in PACKAGE.glob(f"{folder}*.py")
}


def is_main_block(node):
    """`if __name__ == "__main__"`: there the file is another module."""
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__"
        for part in ast.walk(node.test)
    )


def imports(tree, inside=False):
    """(import statement, whether it stands inside a function) of a tree."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, inside
        elif not is_main_block(node):
            in_function = isinstance(
                node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
            )
            yield from imports(node, inside or in_function)


def absolute(name, module, level):
    """The full name of what a module imports, or None outside the package."""
    if level:
        parts = ("faiss_bits." + module).rstrip(".").split(".")
        if FILES[module].name == "__init__.py":
            parts.append("")
        parts = parts[: len(parts) - level]
        return ".".join([*parts, name] if name else parts)
    return name if (name + ".").startswith("faiss_bits.") else None


def targets(node, module):
    """Modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        names = [absolute(alias.name, module, 0) for alias in node.names]
    else:
        home = absolute(node.module or "", module, node.level)
        names = home and [
            full if full.partition(".")[2] in FILES else home
            for full in (f"{home}.{alias.name}" for alias in node.names)
        ]
    return {name.partition(".")[2] for name in names or [] if name}


def graph(files=None):
    """{module: {imported module: [is the import inside a function]}}."""
    edges = {}
    for module, path in FILES.items():
        edges[module] = found = {}
        source = (files or {}).get(module) or path.read_text()
        for node, inside in imports(ast.parse(source)):
            for target in targets(node, module):
                found.setdefault(target, []).append(inside)
    return edges


def cycle(edges):
    """Some modules that import each other in a circle, or None."""
    done, path = set(), []

    def visit(module):
        if module in path:
            return path[path.index(module) :] + [module]
        if module in done:
            return None
        path.append(module)
        for target in edges.get(module, ()):
            found = visit(target)
            if found:
                return found
        path.pop()
        done.add(module)
        return None

    return next(filter(None, map(visit, edges)), None)


def test_reads_the_package():
    edges = graph()
    assert {"functions", "classes", "contrib.quickstart"} <= set(edges)
    assert "compiled" in edges["devices"] and "arrays" in edges["fused"]
    assert "contrib.datasets" in edges["contrib.quickstart_plot"]


def test_no_circle():
    assert cycle(graph()) is None


def test_no_import_hides_in_a_function():
    hidden = [
        (module, target)
        for module, found in graph().items()
        for target, places in found.items()
        # What only the programs of contrib need is theirs to delay.
        if any(places) and not module.startswith("contrib.")
    ]
    assert hidden == []


@pytest.mark.parametrize(
    # dropin does more than to be there, and has tests of its own.
    "module",
    sorted(m for m in FILES if m and "." not in m and m != "dropin"),
)
def test_any_module_can_be_the_first(module):
    source = f"import faiss_bits.{module}"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60
    )
    if module == "distributed" and "needs Dask" in done.stderr:
        pytest.skip("Dask is not installed")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "source, partner",
    [
        ("from .functions import knn", "functions"),
        ("from . import functions", "functions"),
        ("import faiss_bits.functions", "functions"),
        ("def f():\n    from .fused import knn", "fused"),
        ("class C:\n    def f(self):\n        from . import fused", "fused"),
        ("from . import arrays", "arrays"),
        ("from .torch_interop import is_tensor", None),
        ("if __name__ == '__main__':\n    from . import functions", None),
    ],
)
def test_finds_circles(source, partner):
    """Of a package whose arrays.py, at the bottom, imports what is above it."""
    found = cycle({"arrays": None, **graph({"arrays": source})})
    if partner is None:
        assert found is None
    else:
        assert found[0] == found[-1] and {"arrays", partner} <= set(found)
