# shellcheck shell=bash
# FAISS's Python package, and the Python modules of a finished build compiled
# again for another Python.

# write_faiss_loader <package folder>: FAISS's own loader asks NumPy for the
# processor's instruction sets, in ways that some NumPy and Python versions
# lack. We build one, so there is nothing to choose.
write_faiss_loader() {
    cat >"$1/loader.py" <<'PYTHON'
"""Written by faiss_bits: this FAISS is built for one instruction set."""

from .swigfaiss import *
PYTHON
}

# build_modules <python> <build folder> <package folder>: replaces the
# compiled parts of <package folder>/{faiss,faiss_bits}.
build_modules() {
    local python=$1 build=$2 packages=$3
    say "compiling the Python modules for $("$python" --version)"
    build_faiss_module "$python" "$build" "$packages/faiss"
    build_bits_module "$python" "$build" "$packages/faiss_bits"
}

# cached_value <build folder> <name>: a variable of CMake's cache.
cached_value() {
    sed -nE "s/^$2:[A-Z]+=(.*)/\1/p" "$1/CMakeCache.txt"
}

# FAISS's Python folder is a project of its own, beside an installed library.
build_faiss_module() {
    local python=$1 build=$2 package=$3 source version cuda here
    source=${FAISS_BITS_FAISS_SOURCE:-$BITS_CACHE/src/faiss}
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    cuda=$(dirname "$(dirname "$(cached_value "$build" CMAKE_CUDA_COMPILER)")")
    here=$build/faiss-python-$version
    cmake -S "$source/faiss/python" -B "$here" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release \
        "-Dfaiss_DIR=$(cached_value "$build" faiss_DIR)" \
        -DFAISS_ENABLE_GPU=ON -DFAISS_OPT_LEVEL=generic -DBUILD_SHARED_LIBS=ON \
        "-DCUDAToolkit_ROOT=$cuda" "-DPython_EXECUTABLE=$python" \
        -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DCMAKE_INSTALL_RPATH=\$ORIGIN" \
        >"$here.log" 2>&1 || { cat "$here.log"; die "FAISS's Python: cmake"; }
    NINJA_STATUS='[FAISS Python %f/%t, %es] ' cmake --build "$here" \
        --target swigfaiss
    rm -f "$package"/*.so
    cp "$here"/_swigfaiss.so "$here"/libfaiss_python_callbacks.so "$package"
    cp "$here/swigfaiss.py" "$package"
    write_faiss_loader "$package"
}

# Ours needs nothing but another Python.h: the compiler's command as CMake
# wrote it, with that folder in place of the other.
build_bits_module() {
    local python=$1 build=$2 package=$3 include command object
    include=$("$python" -c \
        'import sysconfig; print(sysconfig.get_paths()["include"])')
    command=$("$BITS_PYTHON" - "$build/compile_commands.json" <<'PYTHON'
import json, sys

for entry in json.load(open(sys.argv[1])):
    if entry["file"].endswith("swigfaiss_bitsPYTHON_wrap.cxx"):
        print(entry["command"])
PYTHON
    )
    object=$build/swigfaiss_bits-$(basename "$include").o
    # The last -o counts; an earlier -I wins over the build's own Python.
    (cd "$build" && eval "${command/ -o / -I'$include' -o }" -o "'$object'")
    "${CXX:-c++}" -shared -o "$package/_swigfaiss_bits.so" "$object" \
        -L"$build/faiss_bits" -lfaiss_bits -L"$BITS_FAISS_LIB" -lfaiss \
        -L"$build/kernels" -lbits_kernels
}

# Packages of the tests and the quickstart that the machine may lack.
pack_packages() {
    local python=$1 site=$2
    "$python" -m pip install --quiet --disable-pip-version-check \
        --target "$site" pytest hypothesis tqdm
    # NumPy is the machine's own, so that there are not two of it.
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$site" h5py
    rm -rf "${site:?}/bin"
}
