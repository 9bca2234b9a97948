#!/usr/bin/env bash
# Runs on a GPU machine what tools/pack_gpu.sh packed: call it from the folder
# that was unpacked, which holds everything else it needs.
#
#   run_gpu.sh tests|sanitize|bench|python|quickstart|all [OUTDIR]
#
# OUTDIR (default: results) gets one log per program, JUnit files of the tests
# and the JSON of the benches. A table comes last. Exit code 0 only if all
# that ran passed.
#
# Environment:
#   FAISS_BITS_PYTHON         Python to use; default: the first on PATH whose
#                             version is the one the modules were built for
#   FAISS_BITS_BENCH_SECONDS  limit per bench; default: none
#   FAISS_BITS_BENCH_ARGS     more options for the benches
#   FAISS_BITS_CUDA_HOME      default /usr/local/cuda
#   FAISS_BITS_DATA           default: the folder data beside this script
#   FAISS_BITS_SANITIZE_*     see tests/sanitize.sh

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
what=${1:-}
mkdir -p "${2:-results}"
out=$(cd "${2:-results}" && pwd)
table=()
failed=0

# add_row <name> <result> <seconds>
add_row() {
    table+=("$(printf '%-26s %6ss  %s' "$1" "$3" "$2")")
}

# record <name> <command...>: the output goes to OUTDIR/<name>.log.
record() {
    local name=$1 start=$SECONDS status=0 result=passed counts
    shift
    echo "== $name"
    "$@" </dev/null >"$out/$name.log" 2>&1 || status=$?
    if ((status != 0)); then
        failed=1
        result="FAILED ($status)"
        tail -n 15 "$out/$name.log"
    fi
    # The counts that GoogleTest and pytest print at their ends.
    counts=$(grep -hE '^\[ +(PASSED|SKIPPED|FAILED) +\] [0-9]+ test|^[= ]*[0-9]+ (passed|failed|skipped).* in ' \
        "$out/$name.log" | sed -E 's/^\[ *([A-Z]+) *\] ([0-9]+) tests?.*/\2 \L\1/; s/^[= ]*//; s/[= ]*$//' |
        paste -sd ,) || true
    # Skipped is not passed.
    if [[ $result == passed && $counts == "0 passed"* ]]; then
        result="ALL SKIPPED"
    fi
    add_row "$name" "$result${counts:+ ($counts)}" $((SECONDS - start))
}

use_libraries() {
    local cuda=${FAISS_BITS_CUDA_HOME:-/usr/local/cuda} folder
    export LD_LIBRARY_PATH=$here/lib:$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    # CUDA's libraries may also come with a Python package.
    for folder in "${VIRTUAL_ENV:-/usr}"/lib/python3*/site-packages/nvidia/cu1?/lib; do
        if [[ -d $folder ]]; then
            LD_LIBRARY_PATH+=:$folder
        fi
    done
    export PATH=$PATH:$cuda/bin
}

# find_python: sets python to one that the modules fit; fails where none is.
find_python() {
    local wanted candidate
    wanted=$(cat "$here/python_version")
    for candidate in "${FAISS_BITS_PYTHON:-}" python3 "python$wanted" \
        "/usr/bin/python$wanted"; do
        if [[ -n $candidate ]] && [[ $("$candidate" -c \
            'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) == "$wanted" ]]; then
            python=$candidate
            use_python_path
            return
        fi
    done
    echo "The Python modules are for Python $wanted, which this machine lacks" \
        "(python3 is $(python3 --version 2>&1)): nothing of Python runs."
    return 1
}

use_python_path() {
    local module
    export PYTHONPATH=$here/python${PYTHONPATH:+:$PYTHONPATH}
    export FAISS_BITS_DATA=${FAISS_BITS_DATA:-$here/data}
    # Packages that were packed serve where the machine's own are missing.
    for module in pytest hypothesis h5py tqdm matplotlib; do
        if ! "$python" -c "import $module" 2>/dev/null; then
            PYTHONPATH+=:$here/site
            return
        fi
    done
}

run_tests() {
    local program name
    for program in "$here"/tests/bin/*; do
        name=$(basename "$program")
        record "$name" "$program" --gtest_output="xml:$out/$name.xml"
    done
}

run_sanitize() {
    record sanitize bash "$here/tests/sanitize.sh" "$here/tests/bin" \
        "$out/sanitize"
    cat "$out/sanitize.log"
}

run_bench() {
    local kind args=()
    FAISS_BITS_COMMIT=$(cat "$here/commit")
    export FAISS_BITS_COMMIT
    if [[ -n ${FAISS_BITS_BENCH_SECONDS:-} ]]; then
        args+=(--max-seconds "$FAISS_BITS_BENCH_SECONDS")
    fi
    # shellcheck disable=SC2206  # words, as the user wrote them
    args+=(${FAISS_BITS_BENCH_ARGS:-})
    for kind in select flat; do
        record "bench_$kind" "$here/benchs/bin/bench_$kind" \
            --out "$out/$kind.json" "${args[@]}"
    done
}

run_python() {
    if ! find_python; then
        failed=1
        add_row python "NOT RUN: no Python $(cat "$here/python_version")" 0
        return
    fi
    record python "$python" -m pytest "$here/tests/python" -q -rs \
        -p no:cacheprovider --junitxml="$out/python.xml"
}

run_quickstart() {
    if ! find_python; then
        failed=1
        add_row quickstart "NOT RUN: no Python $(cat "$here/python_version")" 0
        return
    fi
    record quickstart "$python" "$here/contrib/quickstart.py" \
        --out "$out" --json "$out/quickstart.json"
    cat "$out/quickstart.log"
}

main() {
    use_libraries
    case $what in
        tests | sanitize | bench | python | quickstart) "run_$what" ;;
        all)
            run_tests
            run_python
            run_quickstart
            run_sanitize
            run_bench
            ;;
        *)
            sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 2
            ;;
    esac
    echo
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    printf '%s\n' "${table[@]}"
    exit "$failed"
}

main
