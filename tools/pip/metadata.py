"""What pip is told of a wheel: its version, what it depends on, and what
building it takes. scikit-build-core asks (pyproject.toml).

A wheel that is linked with the libfaiss.so of another wheel works beside that
one alone. It names it as a dependency, and in its version:
0.1.0+faiss.cpu.1.15.1 is for faiss-cpu 1.15.1.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from python_faiss import find  # noqa: E402

_ROOT = pathlib.Path(__file__).resolve().parents[2]

#: SWIG's releases by the table of types that their modules share.
_SWIG = {"4": "swig>=4.0.2,<4.4", "5": "swig>=4.4"}


def _version():
    text = (_ROOT / "faiss_bits" / "Version.h").read_text()
    return ".".join(
        re.search(rf"FAISS_BITS_VERSION_{part} (\d+)", text).group(1)
        for part in ("MAJOR", "MINOR", "PATCH")
    )


def dynamic_metadata(settings, project):
    faiss = find()
    if faiss is None or not faiss.is_wheel:
        return {"version": _version(), "dependencies": ["numpy"]}
    label = f"{faiss.distribution}.{faiss.version}"
    return {
        "version": f"{_version()}+{re.sub('[^a-z0-9]+', '.', label.lower())}",
        "dependencies": ["numpy", f"{faiss.distribution}=={faiss.version}"],
    }


def get_requires_for_dynamic_metadata(settings):
    """The SWIG whose modules share their types with FAISS's."""
    faiss = find()
    runtime = faiss.swig_runtime if faiss else ""
    return [_SWIG.get(runtime, "swig>=4.0.2")]
