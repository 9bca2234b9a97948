#!/usr/bin/env bash
# Packs what a GPU machine needs to run tests, sanitizer, benches, Python tests
# and the quickstart, so that nothing is built or fetched there:
#
#   tools/pack_gpu.sh [--build DIR] [--out FILE] [--split MIB]
#                     [--python EXE] [--data] [--faiss-tests DIR] [--dry-run]
#
#   --build DIR   a finished GPU build (as tools/test.sh leaves it); default:
#                 $FAISS_BITS_BUILD or build/gpu
#   --out FILE    default: dist/faiss_bits_gpu.tar.xz
#   --split MIB   cut the archive into parts FILE.00, FILE.01, ... of this
#                 size; `cat FILE.* | tar xJ` unpacks them
#   --python EXE  build the Python modules for this Python, the GPU machine's
#                 (it needs its headers and NumPy here), and pack pytest and
#                 other packages for it; default: the Python of the build
#   --data        a second archive, FILE with _data before .tar.xz, with the
#                 data sets of the quickstart and of bench_select's order sift;
#                 unpack it beside the first
#   --faiss-tests DIR  FAISS's own GPU tests, built: the programs DIR/TestGpu*,
#                 which run_gpu.sh runs with the drop-in library preloaded
#   --dry-run     only says where everything would come from and go to
#
# Paths may be relative to the folder that this is called from.
#
# A build with FAISS_BITS_BENCH_WHEELS (benchs/README.md) has all rivals.
#
# There: tar xJf FILE && bash faiss_bits_gpu/run_gpu.sh all OUTDIR
# The machine brings the driver and CUDA's libraries; the rest is packed.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/common.sh
source "$tools/lib/common.sh"
# shellcheck source=tools/lib/modules.sh
source "$tools/lib/modules.sh"

build=${FAISS_BITS_BUILD:-$BITS_ROOT/build/gpu}
out=$BITS_ROOT/dist/faiss_bits_gpu.tar.xz
split_mib=0
other_python=""
with_data=0
faiss_tests=""
dry_run=0

read_options() {
    while (($# > 0)); do
        case $1 in
            --build | --out | --split | --python | --faiss-tests)
                [[ -n ${2:-} ]] || die "$1 needs a value"
                ;;&
            --build) build=$2 && shift ;;
            --out) out=$2 && shift ;;
            --split) split_mib=$2 && shift ;;
            --python) other_python=$2 && shift ;;
            --data) with_data=1 ;;
            --faiss-tests) faiss_tests=$2 && shift ;;
            --dry-run) dry_run=1 ;;
            *)
                sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
                exit 2
                ;;
        esac
        shift
    done
}

# Makes every path absolute, since some commands run in other folders, and
# checks what can be checked before the long work.
resolve_options() {
    build=$(realpath -m -- "$build")
    out=$(realpath -m -- "$out")
    [[ $split_mib =~ ^[0-9]+$ ]] || die "--split $split_mib is no number of MiB"
    if [[ -n $other_python ]]; then
        # A path, or a name on PATH. Not realpath: a virtual environment's
        # Python is a link.
        local found
        found=$(type -P -- "$other_python") ||
            die "--python $other_python is no program"
        other_python=$(realpath -s -- "$found")
    fi
    if [[ -n $faiss_tests ]]; then
        faiss_tests=$(realpath -m -- "$faiss_tests")
        local programs=("$faiss_tests"/TestGpu*)
        [[ -e ${programs[0]} ]] ||
            die "$faiss_tests has no programs TestGpu*"
    fi
    [[ -e $build/env.sh ]] ||
        die "$build is no build of tools/test.sh (FAISS_BITS_GPU=on)"
}

# Libraries that a file is linked with and that were found: their paths.
libraries_of() {
    ldd "$1" | sed -nE 's/.* => (\/.+) \(0x[0-9a-f]+\)$/\1/p'
}

# Copies a program or library with the libraries it needs, but for those that
# every Linux has (libc, libstdc++) and those of CUDA and its driver.
copy_with_libraries() {
    local target=$1 file library
    shift
    for file in "$@"; do
        cp "$file" "$target"
        while read -r library; do
            [[ -e $stage/lib/$(basename "$library") ]] ||
                cp -L "$library" "$stage/lib"
        done < <(LD_LIBRARY_PATH=$stage_libraries libraries_of "$file" |
            grep -vE '/(ld-linux|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcu[a-zA-Z]*|libnv[a-zA-Z]*)[-.][^/]*$')
    done
}

# Programs of a folder; libraries that they need go to lib.
copy_programs() {
    local target=$1 file
    shift
    mkdir -p "$target"
    for file in "$@"; do
        if [[ -f $file && -x $file && $file != *.so && $file != *.o ]]; then
            copy_with_libraries "$target" "$file"
        fi
    done
}

fill_stage() {
    mkdir -p "$stage"/{lib,python,site,tests,benchs/bin}
    stage_libraries=$BITS_FAISS_LIB:$build/faiss_bits:$build/kernels
    stage_libraries+=:$build/python/faiss_bits
    copy_programs "$stage/tests/bin" "$build"/tests/bin/*
    if [[ -n $faiss_tests ]]; then
        copy_programs "$stage/tests/faiss" "$faiss_tests"/TestGpu*
    fi
    fill_benchs
    fill_python
    find "$stage" -type f \( -name '*.so*' -o -path '*/bin/*' -o \
        -name 'TestGpu*' \) -exec strip --strip-unneeded {} +
    fill_scripts
    git -C "$BITS_ROOT" describe --always --dirty --abbrev=12 \
        >"$stage/commit" 2>/dev/null || echo unknown >"$stage/commit"
    find "$stage" -name __pycache__ -prune -exec rm -r {} +
}

fill_benchs() {
    copy_programs "$stage/benchs/bin" "$build"/benchs/bin/*
    # Python loads this one by its path.
    copy_with_libraries "$stage/benchs/bin" \
        "$build/benchs/bin/libbench_keys.so"
    cp "$BITS_ROOT"/benchs/*.py "$BITS_ROOT"/benchs/*.json "$stage/benchs"
}

# Scripts keep the places that they have in the project: some look for others.
fill_scripts() {
    cp -r "$BITS_ROOT/tests/python" "$stage/tests"
    mkdir -p "$stage"/tests/dropin "$stage"/faiss_bits/python "$stage/docs"
    cp "$BITS_ROOT"/docs/*.md "$stage/docs" # examples and words of tests
    cp "$BITS_ROOT"/tests/dropin/*.py "$stage/tests/dropin"
    cp "$BITS_ROOT"/faiss_bits/python/{__init__,dropin}.py \
        "$stage/faiss_bits/python"
    fill_faiss_tests
    cp "$BITS_ROOT/tests/sanitize.sh" "$stage/tests"
    cp -r "$BITS_ROOT/contrib" "$stage"
    cp "$BITS_ROOT/README.md" "$BITS_ROOT/tools/run_gpu.sh" \
        "$BITS_ROOT"/tools/lib/gpu_{benchs,tests}.sh "$stage"
}

# FAISS's own tests in Python, where the build knows FAISS's source.
fill_faiss_tests() {
    local source target=$stage/tests/faiss_source
    source=$(sed -n 's/^FAISS_BITS_FAISS_TEST_SOURCE:PATH=//p' \
        "$build/CMakeCache.txt" 2>/dev/null) || true
    if [[ ! -d $source/faiss/gpu/test ]]; then
        return
    fi
    mkdir -p "$target"/{faiss/gpu/test,tests} "$stage/tests/faiss_python"
    cp "$source"/faiss/gpu/test/*.py "$target/faiss/gpu/test"
    cp "$source/tests/common_faiss_tests.py" "$target/tests"
    cp "$BITS_ROOT"/tests/faiss/*.py "$stage/tests/faiss_python"
}

# The packages faiss and faiss_bits, of this build or for another Python.
fill_python() {
    local version=$BITS_PYTHON faiss
    # libfaiss.so is in lib.
    cp -r "$build/python/faiss_bits" "$stage/python"
    faiss=$("$BITS_PYTHON" -c 'import importlib.util as util
print(*util.find_spec("faiss").submodule_search_locations)')
    cp -r "$faiss" "$stage/python"
    rm -f "$stage/python/faiss/libfaiss.so"
    # One copy is enough: the tests are linked with it.
    ln -sf ../../lib/libfaiss_bits_dropin.so "$stage/python/faiss_bits"
    if [[ -n $other_python ]]; then
        version=$other_python
        build_modules "$other_python" "$build" "$stage/python"
        pack_packages "$other_python" "$stage/site"
    fi
    "$version" -c 'import sys; print("%d.%d" % sys.version_info[:2])' \
        >"$stage/python_version"
}

# write_archive <folder> <file>
write_archive() {
    local folder=$1 file=$2
    mkdir -p "$(dirname "$file")"
    rm -f "$file" "$file".[0-9][0-9]
    tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" |
        xz -T0 -6 >"$file"
    say "$file: $(du -m "$file" | cut -f1) MiB," \
        "$(du -sm "$folder" | cut -f1) MiB unpacked"
    if ((split_mib > 0)); then
        split -b "${split_mib}M" -d -a 2 "$file" "$file."
        rm "$file"
        local parts=("$file".[0-9][0-9])
        say "parts: ${parts[*]}"
    fi
}

pack_data() {
    local data=$work/data/faiss_bits_gpu
    mkdir -p "$data/data/fashion-mnist"
    cp "$FAISS_BITS_DATA/sift100K.h5" "$data/data"
    cp /usr/share/datasets/fashion-mnist/*.gz "$data/data/fashion-mnist"
    write_archive "$data" "${out%.tar.xz}_data.tar.xz"
}

main() {
    read_options "$@"
    resolve_options
    # shellcheck source=/dev/null
    source "$build/env.sh"
    [[ $BITS_GPU == ON ]] || die "$build has no GPU part"
    if ((dry_run)); then
        say "build: $build"
        say "out: $out"
        say "python: ${other_python:-$BITS_PYTHON}"
        say "FAISS's tests: ${faiss_tests:-none}"
        return
    fi
    local faiss
    faiss=$(libraries_of "$build/faiss_bits/libfaiss_bits.so" |
        grep -E '/libfaiss\.so[^/]*$') ||
        die "$build/faiss_bits/libfaiss_bits.so is linked with no libfaiss.so"
    BITS_FAISS_LIB=$(dirname "$faiss")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    stage=$work/faiss_bits_gpu
    say "packing $build"
    fill_stage
    write_archive "$stage" "$out"
    if ((with_data)); then
        pack_data
    fi
}

main "$@"
