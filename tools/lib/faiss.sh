# shellcheck shell=bash
# FAISS: the user's own, Debian's CPU packages, or built from source with GPU
# support into the cache folder.

# user_gave_faiss: did the user name a FAISS? CMake then finds it.
user_gave_faiss() {
    local folder place
    if [[ -n ${faiss_DIR:-}${FETCHCONTENT_SOURCE_DIR_FAISS:-} ]]; then
        return 0
    fi
    local -a folders
    IFS=':;' read -ra folders <<<"${CMAKE_PREFIX_PATH:-}"
    for folder in "${folders[@]}"; do
        for place in 'lib*/cmake' 'lib/*/cmake' share; do
            if compgen -G "$folder/$place/faiss/faiss-config.cmake" >/dev/null
            then
                return 0
            fi
        done
    done
    return 1
}

# use_user_faiss: hands the user's choice on to CMake, which does not read
# these two from the environment, and its Python module, where we know the
# place, to Python.
use_user_faiss() {
    local prefix
    if [[ -n ${FETCHCONTENT_SOURCE_DIR_FAISS:-} ]]; then
        BITS_CMAKE_ARGS+=(
            "-DFETCHCONTENT_SOURCE_DIR_FAISS=$FETCHCONTENT_SOURCE_DIR_FAISS")
        install_packages libopenblas-dev
        say "FAISS: source tree $FETCHCONTENT_SOURCE_DIR_FAISS"
    elif [[ -n ${faiss_DIR:-} ]]; then
        BITS_CMAKE_ARGS+=("-Dfaiss_DIR=$faiss_DIR")
        prefix=${faiss_DIR%/lib*/cmake/faiss*}
        prefix=${prefix%/share/faiss*}
        BITS_FAISS_PYTHON=$prefix/python
        if [[ -n ${FAISS_BITS_FAISS_SOURCE:-} ]]; then
            # The source of that FAISS has FAISS's own tests (tests/faiss).
            BITS_CMAKE_ARGS+=(
                "-DFAISS_BITS_FAISS_TEST_SOURCE=$FAISS_BITS_FAISS_SOURCE")
        fi
        say "FAISS: $faiss_DIR"
    else
        BITS_CMAKE_ARGS+=("-DCMAKE_PREFIX_PATH=${CMAKE_PREFIX_PATH//:/;}")
        BITS_FAISS_PYTHON=${CMAKE_PREFIX_PATH%%[:;]*}/python
        say "FAISS: found by CMAKE_PREFIX_PATH"
    fi
    if [[ ! -d ${BITS_FAISS_PYTHON:-} ]]; then
        BITS_FAISS_PYTHON=""
    fi
}

faiss_source_version() {
    sed -nE 's/^#define FAISS_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)/\2/p' \
        "$1/faiss/Index.h" | paste -sd .
}

# The settings of the FAISS build; what is not in them is not in the key.
faiss_build_flags() {
    local cuda_lib
    cuda_lib=$(dirname "$(dirname "$BITS_NVCC")")/lib64
    printf '%s\n' \
        -DCMAKE_BUILD_TYPE=Release \
        "-DCMAKE_CUDA_COMPILER=$BITS_NVCC" \
        "-DCMAKE_CUDA_ARCHITECTURES=$BITS_CUDA_ARCHS" \
        -DBUILD_SHARED_LIBS=ON \
        -DBUILD_TESTING=OFF \
        -DFAISS_ENABLE_GPU=ON \
        -DFAISS_ENABLE_CUVS=OFF \
        -DFAISS_ENABLE_PYTHON=ON \
        -DFAISS_ENABLE_EXTRAS=OFF \
        -DFAISS_ENABLE_MKL=OFF \
        -DFAISS_OPT_LEVEL=generic \
        "-DPython_EXECUTABLE=$BITS_PYTHON" \
        -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
        "-DCMAKE_INSTALL_RPATH=\$ORIGIN;\$ORIGIN/../../lib;$cuda_lib"
}

# 1.7.3 asks for C++11, where the CUDA 13 headers want C++17.
fetch_faiss_source() {
    fetch_debian_source faiss "$1.fetched"
    find "$1.fetched" -name CMakeLists.txt -exec \
        sed -i 's/set(CMAKE_CXX_STANDARD 11)/set(CMAKE_CXX_STANDARD 17)/' {} +
    mv "$1.fetched" "$1"
}

# use_gpu_faiss: builds FAISS with GPU support, once per version, compiler,
# architectures, Python and flags. Sets BITS_FAISS_PREFIX.
use_gpu_faiss() {
    local source=${FAISS_BITS_FAISS_SOURCE:-} version key
    install_packages libopenblas-dev swig
    if [[ -z $source ]]; then
        source=$BITS_CACHE/src/faiss
        mkdir -p "$BITS_CACHE/src"
        [[ -d $source ]] ||
            with_lock src-faiss fetch_faiss_source "$source"
    fi
    [[ -e $source/faiss/Index.h ]] || die "$source is no FAISS source tree"
    version=$(faiss_source_version "$source")
    key=$({
        faiss_build_flags
        # Debian's source is the same wherever the cache lies.
        echo "${FAISS_BITS_FAISS_SOURCE:-debian} $version $BITS_CUDA_VERSION"
        "$BITS_PYTHON" --version
        "${CXX:-c++}" -dumpfullversion
    } | sha256sum | cut -c 1-12)
    BITS_FAISS_PREFIX=$BITS_CACHE/faiss-$version-$key
    if [[ ! -d $BITS_FAISS_PREFIX ]]; then
        with_lock "faiss-$version-$key" \
            build_faiss "$source" "$version" "$BITS_FAISS_PREFIX"
    fi
    BITS_FAISS_PYTHON=$BITS_FAISS_PREFIX/python
    # The source is also where FAISS's own tests are (tests/faiss).
    BITS_CMAKE_ARGS+=(
        "-Dfaiss_DIR=$(find "$BITS_FAISS_PREFIX" -name faiss-config.cmake -printf '%h' -quit)"
        "-DFAISS_BITS_FAISS_TEST_SOURCE=$(cd "$source" && pwd)")
    say "FAISS $version with GPU support: $BITS_FAISS_PREFIX"
}

# build_faiss <source> <version> <prefix>: the build folder is kept until the
# build is complete, so that an interrupted one goes on where it stopped; the
# prefix appears in one step.
build_faiss() {
    local source=$1 version=$2 prefix=$3
    local build=$3.build flags
    [[ -d $prefix ]] && return
    say "building FAISS $version with GPU support for $BITS_CUDA_ARCHS;" \
        "once, 10 to 25 minutes on 2 cores"
    mapfile -t flags < <(faiss_build_flags)
    mkdir -p "$build"
    cmake -S "$source" -B "$build/out" -G Ninja "${flags[@]}" >"$build/cmake.log" ||
        { cat "$build/cmake.log"; die "FAISS: cmake failed"; }
    NINJA_STATUS='[FAISS %f/%t, %es] ' cmake --build "$build/out" \
        --parallel "$(jobs_count)" --target faiss swigfaiss
    install_faiss "$build/out" "$build/prefix"
    mv "$build/prefix" "$prefix"
    rm -rf "$build"
}

# install_faiss <build folder> <prefix>: the library alone, without the demos
# and benches that a plain install wants built, and the Python package.
install_faiss() {
    local out=$1 prefix=$2 package=$2/python/faiss
    rm -rf "$prefix"
    cmake --install "$out/faiss" --prefix "$prefix" >/dev/null
    cmake --install "$out/faiss/gpu" --prefix "$prefix" >/dev/null
    mkdir -p "$package"
    cp "$out"/faiss/python/*.py "$out"/faiss/python/*.so "$package"
    # Newer releases take the mark of a GPU build for one of a wheel, whose
    # CUDA libraries are Python packages.
    rm -f "$package/setup.py" "$package/_gpu_build.py"
    write_faiss_loader "$package"
    cp -r "$out/faiss/python/contrib" "$package"
    # Newer releases look for the library beside their module.
    ln -s "$(realpath --relative-to="$package" \
        "$(find "$prefix"/lib* -name libfaiss.so -print -quit)")" \
        "$package/libfaiss.so"
}

# use_cpu_faiss: Debian's packages, in seconds.
use_cpu_faiss() {
    install_packages libfaiss-dev python3-faiss libopenblas-dev
    # Named, so that an older choice in CMake's cache does not stay.
    local folder
    folder=$(find /usr/lib -maxdepth 3 -path '*/cmake/faiss' -print -quit)
    if [[ -n $folder ]]; then
        BITS_CMAKE_ARGS+=("-Dfaiss_DIR=$folder")
    fi
    say "FAISS: Debian's CPU packages"
}
