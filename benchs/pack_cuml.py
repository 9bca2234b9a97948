#!/usr/bin/env python3
"""cuML for one GPU architecture, small enough to carry to a machine that can
fetch nothing: an archive of about 41 MiB in place of 650 MB of wheels.

    pip download --no-deps -d wheels cuml-cu13 libcuml-cu13 libcuvs-cu13 \\
        libraft-cu13 pylibraft-cu13 librmm-cu13 rmm-cu13 nvforest-cu13 \\
        libnvforest-cu13 libkvikio-cu13 rapids-logger treelite
    benchs/pack_cuml.py wheels cuml --arch 90
    tar cf - cuml | xz -6 >cuml.tar.xz

There, with the CUDA 13 libraries, CuPy, numba, pandas and scikit-learn:

    PYTHONPATH=cuml/py LD_LIBRARY_PATH=cuml/lib:$LD_LIBRARY_PATH \\
        LD_PRELOAD=cuml/lib/libnvjitlink_standin.so python ...

Machine code of other architectures is overwritten by zeros, PTX and what is
linked at run time too: cuML's classes that need the latter fail. cuDF is not
packed: a stand-in of empty classes lets cuML be imported, and arrays of CuPy are
what its classes then take. Another stand-in has the names of the linker of CUDA
13.3, which an older CUDA lacks; its functions return an error.
"""

import argparse
import mmap
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MAGIC = struct.pack("<I", 0xBA55ED50)
HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this, bytes after it
#: An entry: kind, flags, bytes of this, bytes of the payload, ..., architecture.
ENTRY = struct.Struct("<HHIQ12xI")
MACHINE_CODE = 2

LIBRARIES = ("libcuvs", "libcuml", "libnvforest", "libraft", "libkvikio", "librmm",
             "librapids_logger")
MODULES = ("cuml", "pylibraft", "rmm", "rapids_logger", "nvforest", "treelite")
SOURCES = (".pyx", ".pxd", ".hpp", ".h", ".cuh")

CUDF = {
    "__init__": '''"""Stands for cuDF, of which nothing is used."""


class DataFrame:
    pass


class Series:
    pass


class Index:
    pass


class CategoricalDtype:
    pass
''',
    "pandas/__init__": '''LOADED = False


def as_proxy_object(value):
    return value
''',
}

LINKER = ["AddData", "Complete", "Create", "Destroy", "GetErrorLogSize",
          "GetErrorLog", "GetLinkedCubinSize", "GetLinkedCubin"]


def prune(path, arch):
    """Overwrites the payloads of a library that are not machine code of the
    architecture. Gives the bytes that stay and that went."""
    stays, gone = 0, 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        at = data.find(MAGIC)
        while at >= 0:
            end = at + len(MAGIC)
            if at + HEADER.size <= len(data):
                _, version, header, size = HEADER.unpack_from(data, at)
                if version == 1 and header == HEADER.size and (
                    at + header + size <= len(data)
                ):
                    end = at + header + size
                    for first, last, keep in entries(data, at + header, end, arch):
                        if keep:
                            stays += last - first
                        else:
                            data[first:last] = bytes(last - first)
                            gone += last - first
            at = data.find(MAGIC, end)
    return stays, gone


def entries(data, at, end, arch):
    """(first byte, last byte, whether it stays) of each payload."""
    while at + ENTRY.size <= end:
        kind, _, header, size, of = ENTRY.unpack_from(data, at)
        if header < ENTRY.size or at + header + size > end:
            raise ValueError(f"no entry of machine code at byte {at}")
        yield (at + header, at + header + size,
               kind == MACHINE_CODE and of == arch)
        at += header + size


def standins(out):
    for name, text in CUDF.items():
        path = out / "py" / "cudf" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with tempfile.TemporaryDirectory() as folder:
        source, names = Path(folder, "linker.c"), Path(folder, "linker.map")
        source.write_text("".join(
            f"int __nvJitLink{name}_13_3(void) {{ return 1; }}\n" for name in LINKER))
        names.write_text("libnvJitLink.so.13 { global: __nvJitLink*; };\n")
        subprocess.run(
            ["cc", "-shared", "-fPIC", source, f"-Wl,--version-script={names}",
             "-o", out / "lib" / "libnvjitlink_standin.so"], check=True)


def pack(wheels, out, arch):
    (out / "lib").mkdir(parents=True)
    (out / "py").mkdir()
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder)
        for wheel in sorted(wheels.glob("*.whl")):
            zipfile.ZipFile(wheel).extractall(unpacked)
        for name in LIBRARIES:
            found = list(unpacked.glob(f"*/lib64/{name}.so"))
            if not found:
                raise FileNotFoundError(f"{wheels} has no wheel with {name}.so")
            shutil.copy(found[0], out / "lib")
        for extra in unpacked.glob("*.libs/*.so*"):
            shutil.copy(extra, out / "lib")
        for name in MODULES:
            shutil.copytree(unpacked / name, out / "py" / name, ignore=skipped)
    libraries = sorted((out / "lib").glob("*.so"))
    for library in libraries:
        library.chmod(0o755)
        stays, gone = prune(library, arch)
        if stays + gone:
            print(f"{library.name}: {stays >> 10} KiB of machine code stay, "
                  f"{gone >> 10} go", flush=True)
    for library in [*out.rglob("*.so"), *out.rglob("*.so.*")]:
        subprocess.run(["strip", "--strip-unneeded", library], check=True)
    standins(out)


def skipped(folder, names):
    return {name for name in names
            if name.endswith(SOURCES) or name in ("include", "lib64", "tests")}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, help="folder of the wheels")
    parser.add_argument("out", type=Path, help="folder to make")
    parser.add_argument("--arch", type=int, default=90, help="such as 90")
    options = parser.parse_args(arguments)
    if options.out.exists():
        parser.error(f"{options.out} is there already")
    pack(options.wheels, options.out, options.arch)


if __name__ == "__main__":
    sys.exit(main())
