#!/usr/bin/env bash
# Fetches what the project needs and this machine lacks, and writes what it
# found to <build>/env.sh. quickstart.sh, test.sh and docs.sh call it; a second
# run takes about a second and needs no network.
#
#   tools/setup.sh [quickstart|words|test|docs]    what for (test needs more
#                                                  packages, words word lists)
#
# Read from the environment:
#   FAISS_BITS_GPU           auto (default), on or off: the GPU part. auto is
#                            on where there is an NVIDIA GPU; for tests, also
#                            where there is nvcc
#   FAISS_BITS_CUDA_HOME     CUDA toolkit, where nvcc is not on PATH; default
#                            /usr/local/cuda. None there, though a GPU part is
#                            wanted: a compiler from PyPI, in the cache
#   FAISS_BITS_CUDA_ARCHS    e.g. "80-real;90-real"; default: the GPUs present
#   FAISS_BITS_CACHE         default ~/.cache/faiss_bits
#   FAISS_BITS_BUILD         build folder; default build/cpu or build/gpu
#   FAISS_BITS_DATA          folder of data sets; default: in the cache
#   FAISS_BITS_PYTHON        default /usr/bin/python3
#   FAISS_BITS_JOBS          compile jobs; default: cores, as memory allows
#   FAISS_BITS_FAISS_SOURCE  FAISS source tree to build with GPU support, in
#                            place of Debian's source package; its own tests
#                            are built with our classes too (tests/faiss)
#   FAISS_BITS_TEST_WHEEL    folder with the official faiss-gpu wheel for the
#                            tests of a GPU build (docs/design/dropin.md);
#                            default: in the cache, fetched from PyPI, 570 MB;
#                            off: none, and the tests with it are skipped
#   faiss_DIR, CMAKE_PREFIX_PATH, FETCHCONTENT_SOURCE_DIR_FAISS
#                            a FAISS of your own, as CMake knows them
#
# env.sh sets: BITS_BUILD, BITS_GPU (ON or OFF), BITS_PYTHON, BITS_CMAKE_ARGS
# (an array), and exports PYTHONPATH, FAISS_BITS_DATA and, where there is the
# wheel, FAISS_BITS_TEST_WHEEL.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in common apt cuda modules faiss data wheel; do
    # shellcheck source=/dev/null
    source "$tools/lib/$part.sh"
done

purpose=${1:-test}
case $purpose in
    quickstart | words | test | docs) ;;
    *) die "what for? quickstart, words, test or docs, not '$purpose'" ;;
esac

BITS_CMAKE_ARGS=(-G Ninja "-DPython_EXECUTABLE=$BITS_PYTHON")
BITS_FAISS_PYTHON=""
BITS_NVCC=""
BITS_WHEEL=""

install_tools() {
    local packages=(g++ cmake ninja-build swig libhwy-dev python3 python3-dev
        python3-numpy python3-h5py python3-matplotlib python3-tqdm)
    if [[ $purpose == test ]]; then
        packages+=(libgtest-dev libgmock-dev libbenchmark-dev python3-pytest
            python3-pytest-timeout python3-hypothesis python3-scipy python3-venv
            python3-yaml ccache)
    fi
    if [[ $purpose == words ]]; then
        packages+=(wbritish-huge wspanish)
    fi
    if [[ $purpose == test || $purpose == docs ]]; then
        # The reference imports the package, with what needs Dask.
        packages+=(python3-distributed
            doxygen python3-sphinx python3-breathe python3-myst-parser furo)
    fi
    install_packages "${packages[@]}"
}

choose_gpu() {
    if wants_gpu "$purpose"; then
        BITS_GPU=ON
        BITS_BUILD=${FAISS_BITS_BUILD:-$BITS_ROOT/build/gpu}
        find_cuda
        BITS_CMAKE_ARGS+=("-DCMAKE_CUDA_COMPILER=$BITS_NVCC"
            "-DCMAKE_CUDA_ARCHITECTURES=$BITS_CUDA_ARCHS")
    else
        BITS_GPU=OFF
        BITS_BUILD=${FAISS_BITS_BUILD:-$BITS_ROOT/build/cpu}
        say "building the CPU part alone (FAISS_BITS_GPU=on for the GPU part)"
    fi
    BITS_CMAKE_ARGS+=("-DFAISS_BITS_GPU=$BITS_GPU")
}

choose_faiss() {
    if user_gave_faiss; then
        use_user_faiss
    elif [[ $BITS_GPU == ON ]]; then
        use_gpu_faiss
    else
        use_cpu_faiss
    fi
}

# The tests build the library twice, with CMake and with pip: ccache makes the
# second time short. CMake reads the launchers when it first configures a folder.
write_ccache() {
    if [[ $purpose != test ]] || ! have ccache; then
        return
    fi
    local language
    for language in C CXX CUDA; do
        echo "export CMAKE_${language}_COMPILER_LAUNCHER=ccache"
    done
    # Objects of two build folders are the same: paths count from the root.
    # shellcheck disable=SC2016  # expands when env.sh is read
    printf 'export CCACHE_DIR=${CCACHE_DIR:-%q}\n' "$BITS_CACHE/ccache"
    # shellcheck disable=SC2016
    printf 'export CCACHE_BASEDIR=${CCACHE_BASEDIR:-%q}\n' "$BITS_ROOT"
    echo 'export CCACHE_NOHASHDIR=1'
}

write_env() {
    local path=$BITS_BUILD/python
    if [[ -n $BITS_FAISS_PYTHON ]]; then
        path+=:$BITS_FAISS_PYTHON
    fi
    mkdir -p "$BITS_BUILD"
    {
        echo "# Written by tools/setup.sh; source it from bash."
        # Global also where a function sources it.
        declare -p BITS_BUILD BITS_GPU BITS_PYTHON BITS_CMAKE_ARGS |
            sed 's/^declare /declare -g /'
        printf 'export FAISS_BITS_DATA=%q\n' "$BITS_DATA"
        # shellcheck disable=SC2016  # expands when env.sh is read
        printf 'export PYTHONPATH=%q${PYTHONPATH:+:$PYTHONPATH}\n' "$path"
        write_ccache
        if [[ -n $BITS_WHEEL ]]; then
            printf 'export FAISS_BITS_TEST_WHEEL=%q\n' "$BITS_WHEEL"
        else
            echo 'unset FAISS_BITS_TEST_WHEEL'
        fi
    } >"$BITS_BUILD/env.sh"
}

# In a function, so that this file may change while it runs.
main() {
    install_tools
    choose_gpu
    choose_faiss
    if [[ $purpose == quickstart || $purpose == test ]]; then
        fetch_data
    fi
    if [[ $purpose == test && $BITS_GPU == ON ]]; then
        fetch_wheel
    fi
    write_env
    say "set up: $BITS_BUILD/env.sh"
    # For the scripts that call this one.
    if [[ -n ${BITS_ENV_FILE:-} ]]; then
        echo "$BITS_BUILD/env.sh" >"$BITS_ENV_FILE"
    fi
    exit
}

main
