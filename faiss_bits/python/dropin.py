"""Puts our searches and k-selection under an unmodified FAISS.

    import faiss_bits.dropin   # before FAISS
    import faiss

From then on the flat GPU indexes of the process search float vectors with our
kernels, GpuIndexIVFFlat, GpuIndexIVFScalarQuantizer and GpuIndexIVFPQ their
lists, and all select with them. docs/dropin.md has what stays FAISS's. A script
can be left as it is, too:

    python -m faiss_bits.dropin script.py arguments...
    python -m faiss_bits.dropin -m module arguments...

The environment variable FAISS_BITS_DROPIN turns it off ("off"), has it replace
the k-selection alone ("select"), or say on stderr what was replaced ("log",
"log,select"). It needs neither the FAISS that faiss_bits was built with nor
faiss_bits's own compiled module.
"""

import ctypes
import importlib.abc
import importlib.util
import os
import re
import runpy
import sys
import threading

#: The library, beside this file.
LIBRARY = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "libfaiss_bits_dropin.so"
)
#: Libraries of FAISS, as it names them for the processor; none of ours.
_FAISS_FILE = re.compile(
    r"(libfaiss(_avx\w*|_sve|_gpu|_c)?(-[0-9a-f]{8})?|_swigfaiss\w*)\."
)
#: Finding::State::None of the library (faiss_bits/dropin/LoadedFaiss.h).
_NONE = 1


def _is_off():
    words = (os.environ.get("FAISS_BITS_DROPIN") or "on").split(",")
    for word in words:
        if word not in ("", "on", "off", "select", "log"):
            raise ImportError(
                f"FAISS_BITS_DROPIN = {word!r} is none of 'on', 'off', 'select' "
                "and 'log'"
            )
    return "off" in words


def _loaded_earlier():
    """The library if it is in the process already (LD_PRELOAD, or linked)."""
    try:
        return ctypes.CDLL(
            os.path.basename(LIBRARY), mode=os.RTLD_NOLOAD | ctypes.RTLD_GLOBAL
        )
    except OSError:
        return None


def _loaded_faiss():
    """What of FAISS this process has loaded, or None."""
    module = sys.modules.get("faiss")
    if module is not None:
        return getattr(module, "__file__", None) or "the module faiss"
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if _FAISS_FILE.match(os.path.basename(path)):
                return path
    return None


def _load():
    library = _loaded_earlier()
    if library is None:
        faiss = _loaded_faiss()
        if faiss is not None:
            raise ImportError(
                "faiss_bits.dropin was imported too late: FAISS is loaded "
                f"already ({faiss}), and its calls can no longer be replaced. "
                "Put 'import faiss_bits.dropin' before the first 'import "
                "faiss', or run the script with 'python -m faiss_bits.dropin'"
            )
        if not os.path.exists(LIBRARY):
            raise ImportError(
                f"{LIBRARY} is missing: this build of faiss_bits has no GPU "
                "part (FAISS_BITS_GPU=ON builds it)"
            )
        # Global, so that FAISS's calls find our functions first.
        library = ctypes.CDLL(LIBRARY, mode=ctypes.RTLD_GLOBAL)
    inspect = library.faissBitsDropinInspect
    inspect.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
    inspect.restype = ctypes.c_int
    return library


def _inspect(tell=False):
    text = ctypes.create_string_buffer(4096)
    state = _library.faissBitsDropinInspect(text, len(text), tell)
    return state, os.fsdecode(text.value)


def status():
    """One line on what of FAISS is replaced, and in which file.

    Looks at the libraries that are loaded; makes no CUDA call.
    """
    if _library is None:
        return "off (FAISS_BITS_DROPIN)"
    return _inspect()[1]


def _check_after_import():
    """Says so if the FAISS that was imported is none that we can replace."""
    state, text = _inspect(tell=True)
    if state != _NONE:
        return
    faiss = sys.modules["faiss"]
    if hasattr(faiss, "GpuIndexFlat"):
        text = (
            "this FAISS is not known: none of its libraries shows the "
            f"functions to replace ({faiss.__file__}); it runs as it was"
        )
    print(f"faiss_bits dropin: {text}", file=sys.stderr, flush=True)


class _CheckFaiss(importlib.abc.MetaPathFinder):
    """Has _check_after_import run when FAISS is imported, wherever that is."""

    _busy = threading.local()

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "faiss" or getattr(self._busy, "yes", False):
            return None
        self._busy.yes = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.yes = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            original = spec.loader.exec_module

            def exec_module(module):
                original(module)
                _check_after_import()

            spec.loader.exec_module = exec_module
        return spec


def _search_first(folder):
    """What `python` puts first on the search path."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def main(arguments):
    """Runs a script or a module, as `python` would."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.partition("\n\n")[2].strip())
        return 0 if arguments else 2
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("faiss_bits.dropin: -m needs a module", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        _search_first(os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if arguments[0].startswith("-"):
        print(
            f"faiss_bits.dropin: {arguments[0]} is no option; pass a script, or "
            "-m and a module",
            file=sys.stderr,
        )
        return 2
    if not os.path.exists(arguments[0]):
        print(f"faiss_bits.dropin: {arguments[0]}: no such file", file=sys.stderr)
        return 2
    sys.argv = list(arguments)
    _search_first(os.path.dirname(os.path.realpath(arguments[0])))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # The module proper, which scripts that import it as well will find.
    from faiss_bits import dropin

    sys.exit(dropin.main(sys.argv[1:]))

_library = None if _is_off() else _load()
if _library is not None and "faiss" not in sys.modules:
    sys.meta_path.insert(0, _CheckFaiss())
