"""The FAISS package of the Python that runs pip, without importing it.

pip builds in an environment of its own, in which the packages that are
installed cannot be seen; so the same interpreter is asked once more, outside
of it. FAISS_BITS_FAISS_PACKAGE names another folder of a `faiss` package, or
says "off": then no package is looked for.

CMake runs this file as a program (cmake/PythonFaiss.cmake) and reads the
lines it prints, `name=value`; no lines: there is none.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

_VARIABLE = "FAISS_BITS_FAISS_PACKAGE"
_ASK = (
    "import importlib.util as u; spec = u.find_spec('faiss'); "
    "print(spec.origin if spec and spec.origin else '')"
)


@dataclasses.dataclass(frozen=True)
class PythonFaiss:
    """A `faiss` package.

    folder        that holds its __init__.py
    distribution  name and version of what pip installed, "" if it was not pip
    version
    library       the shared library in the package: wheels have one, other
                  builds of FAISS have it elsewhere (then "")
    openmp        the OpenMP runtime that came with that library, or ""
    swig_runtime  which table of types SWIG gave its module, such as "4";
                  modules share types only within one
    has_gpu
    cuda          major version of the CUDA runtime that the library is linked
                  with, such as "12", or ""
    """

    folder: str
    distribution: str
    version: str
    library: str
    openmp: str
    swig_runtime: str
    has_gpu: bool
    cuda: str

    @property
    def is_wheel(self):
        return bool(self.library and self.distribution)


def find(environ=os.environ, python=sys.executable):
    """The package that `import faiss` finds, or None.

    Raises ValueError where FAISS_BITS_FAISS_PACKAGE names no such folder.
    """
    given = environ.get(_VARIABLE, "")
    if given == "off":
        return None
    if given:
        folder = pathlib.Path(given).absolute()
        if not (folder / "__init__.py").is_file():
            raise ValueError(
                f"{_VARIABLE} = {given!r} is no folder of a Python package, "
                "nor 'off'"
            )
    else:
        folder = _imported_folder(environ, python)
        if folder is None:
            return None
    distribution, version = _distribution(folder)
    library = folder / "libfaiss.so"
    is_wheel = bool(distribution) and library.is_file()
    return PythonFaiss(
        folder=str(folder),
        distribution=distribution,
        version=version,
        library=str(library) if is_wheel else "",
        openmp=_openmp(folder) if is_wheel else "",
        swig_runtime=_swig_runtime(folder),
        has_gpu=_has_gpu(folder),
        cuda=_number_in(library, rb"libcudart\.so\.(\d+)") if is_wheel else "",
    )


def _imported_folder(environ, python):
    # PYTHONPATH and this one are how pip hides what is installed.
    environ = {
        name: value
        for name, value in environ.items()
        if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")
    }
    answer = subprocess.run(
        [python, "-c", _ASK],
        env=environ,
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # The last line: site hooks of the user's may print others.
    origin = answer.stdout.rstrip("\n").rpartition("\n")[2].strip()
    return pathlib.Path(origin).parent if origin else None


def _distribution(folder):
    """Name and version by the notes that pip leaves beside a package."""
    for notes in sorted(folder.parent.glob("faiss*.dist-info")):
        record = notes / "RECORD"
        if not record.is_file() or "faiss/__init__.py," not in record.read_text():
            continue
        head = (notes / "METADATA").read_text().partition("\n\n")[0]
        fields = dict(re.findall(r"^(Name|Version): *(\S+)", head, re.M))
        return fields["Name"], fields["Version"]
    return "", ""


def _openmp(folder):
    """Where the wheel brings one OpenMP runtime, ours must be the same:
    omp_set_num_threads() would speak to one of two otherwise."""
    found = sorted(folder.parent.glob("faiss*.libs/libgomp*.so*"))
    return str(found[0]) if len(found) == 1 else ""


def _swig_runtime(folder):
    for module in sorted(folder.glob("_swigfaiss*.so")):
        found = _number_in(module, rb"swig_runtime_data(\d+)")
        if found:
            return found
    return ""


def _number_in(path, pattern):
    found = re.search(pattern, path.read_bytes())
    return found.group(1).decode() if found else ""


def _has_gpu(folder):
    module = folder / "swigfaiss.py"
    return module.is_file() and "class GpuIndexFlat(" in module.read_text(
        encoding="utf-8"
    )


def main():
    try:
        found = find()
    except ValueError as error:
        sys.exit(str(error))
    if found is not None:
        for name, value in dataclasses.asdict(found).items():
            print(f"{name}={value}")


if __name__ == "__main__":
    main()
