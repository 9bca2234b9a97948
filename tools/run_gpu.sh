#!/usr/bin/env bash
# Runs on a GPU machine what tools/pack_gpu.sh packed: call it from the folder
# that was unpacked, which holds everything else it needs.
#
#   run_gpu.sh PART[,PART...] [OUTDIR]
#
#   tests       the test programs
#   python      pytest: the module, and the drop-in library with the wheel
#   dropin      FAISS's own GPU tests with the drop-in library preloaded (where
#               they were packed), and bench_dropin.py
#   quickstart  contrib/quickstart.py
#   sanitize    the small tests under compute-sanitizer
#   select, flat, filters, ivf, many, metrics, queues
#               one bench each; select goes on with torch.topk, and says which
#               targets were reached
#   select_sweep
#               bench_select_sweep, and torch.topk in its cells
#   rivals      flat_rivals.py: adds to OUTDIR/flat.json, which flat has made
#   ivf_rivals  ivf_rivals.py
#   sweep       bench_flat_sweep.py
#   bench       all benches
#   all         everything, in this order
#
# OUTDIR (default: results) gets one log per program, JUnit files of the tests
# and the JSON of the benches. A table comes last. Exit code 0 only if all
# that ran passed.
#
# Environment:
#   FAISS_BITS_TEST_JOBS      test programs at a time, see gpu_tests.sh
#   FAISS_BITS_PYTHON         Python to use; default: the first on PATH whose
#                             version is the one the modules were built for
#   FAISS_BITS_BENCH_SECONDS  limit per bench; default: none
#   FAISS_BITS_BENCH_ARGS     more options for select and flat
#   FAISS_BITS_RIVALS_ARGS    more options for rivals
#   FAISS_BITS_IVF_RIVALS_ARGS  more options for ivf_rivals, such as --env
#   FAISS_BITS_SWEEP_ARGS     more options for sweep
#   FAISS_BITS_SELECT_SWEEP_ARGS  more options for select_sweep
#   FAISS_BITS_BENCH_SIFT     vectors for the order sift (.fvecs, .bvecs);
#                             default: written from sift100K.h5 of the data
#   FAISS_BITS_TEST_WHEEL     folder of the official faiss-gpu wheel, see
#                             tests/dropin; without it, its tests are skipped
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

# shellcheck source=tools/lib/gpu_benchs.sh
source "$here/gpu_benchs.sh"
# shellcheck source=tools/lib/gpu_tests.sh
source "$here/gpu_tests.sh"

# FAISS's own GPU tests that the drop-in library has to pass.
faiss_tests=(TestGpuSelect TestGpuDistance TestGpuIndexFlat TestGpuIndexIVFFlat
    TestGpuIndexIVFPQ TestGpuIndexBinaryFlat TestGpuIndexIVFScalarQuantizer)

# add_row <name> <result> <seconds>
add_row() {
    table+=("$(printf '%-38s %6ss  %s' "$1" "$3" "$2")")
}

# record <name> <command...>: the output goes to OUTDIR/<name>.log.
record() {
    echo "== $1"
    run_logged "$@"
    report "$1"
}

# run_logged <name> <command...>: leaves exit code and seconds in
# OUTDIR/<name>.status as well.
run_logged() {
    local name=$1 start=$SECONDS status=0
    shift
    "$@" </dev/null >"$out/$name.log" 2>&1 || status=$?
    echo "$status $((SECONDS - start))" >"$out/$name.status"
}

# report <name>: the row of what run_logged has run.
report() {
    local name=$1 status seconds result=passed counts
    read -r status seconds <"$out/$name.status"
    rm "$out/$name.status"
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
    add_row "$name" "$result${counts:+ ($counts)}" "$seconds"
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

# find_any_python: for scripts that need none of the modules.
find_any_python() {
    python=${FAISS_BITS_PYTHON:-$(command -v python3)}
    [[ -n $python ]]
}

use_python_path() {
    local module
    if [[ ${python_path_is_set:-} ]]; then
        return
    fi
    python_path_is_set=1
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

# run_programs <at a time> <programs...>
run_programs() {
    local jobs=$1 program name
    shift
    for program in "$@"; do
        name=$(basename "$program")
        while (($(jobs -rp | wc -l) >= jobs)); do
            wait -n || true
        done
        echo "== $name"
        run_logged "$name" "$program" --gtest_output="xml:$out/$name.xml" &
    done
    wait
    for program in "$@"; do
        name=$(basename "$program")
        report "$name"
        sed -nE 's/^\[  SKIPPED \] ([^ ]+) \(.*/   skipped: \1/p' \
            "$out/$name.log"
    done
}

run_tests() {
    # FAISS's own train with OpenMP, each thread of which calls BLAS.
    local -x OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
    local program many=() large=()
    for program in "$here"/tests/bin/*; do
        # These want most of the memory.
        if [[ $program == *_large ]]; then
            large+=("$program")
        else
            many+=("$program")
        fi
    done
    start_mps "$here/tests/bin/test_device"
    echo "programs at a time: $gpu_jobs"
    run_programs "$gpu_jobs" "${many[@]}"
    stop_mps
    if ((${#large[@]})); then
        run_programs 1 "${large[@]}"
    fi
}

run_sanitize() {
    record sanitize bash "$here/tests/sanitize.sh" "$here/tests/bin" \
        "$out/sanitize"
    cat "$out/sanitize.log"
}

# not_run <name>: of what needs the modules' Python.
not_run() {
    failed=1
    add_row "$1" "NOT RUN: no Python $(cat "$here/python_version")" 0
}

# run_faiss_python <name> [<variable>=<value>]: FAISS's own tests.
run_faiss_python() {
    record "$1" env OPENBLAS_NUM_THREADS=1 \
        FAISS_BITS_TEST_FAISS_SOURCE="$here/tests/faiss_source" "${@:2}" \
        "$python" -m pytest "$here/tests/faiss_python/test_python.py" -q -rs \
        -p no:cacheprovider --junitxml="$out/$1.xml"
}

run_python() {
    if ! find_python; then
        not_run python
        return
    fi
    record python "$python" -m pytest "$here/tests/python" -q -rs \
        -p no:cacheprovider --junitxml="$out/python.xml"
    if [[ -d $here/tests/faiss_source ]]; then
        run_faiss_python faiss_python
        run_faiss_python faiss_python_dropin FAISS_BITS_TEST_WITH_DROPIN=1
    fi
    if [[ -n ${FAISS_BITS_TEST_WHEEL:-} ]]; then
        record dropin_wheel env \
            FAISS_BITS_TEST_DROPIN="$here/lib/libfaiss_bits_dropin.so" \
            "$python" -m pytest "$here/tests/dropin" -q -rs \
            -p no:cacheprovider --junitxml="$out/dropin_wheel.xml"
    fi
}

run_dropin() {
    local name program args
    for name in "${faiss_tests[@]}"; do
        program=$here/tests/faiss/$name
        if [[ -x $program ]]; then
            record "dropin_$name" env FAISS_BITS_DROPIN=log \
                LD_PRELOAD="$here/lib/libfaiss_bits_dropin.so" \
                "$program" --gtest_output="xml:$out/$name.xml"
        elif [[ -d $here/tests/faiss ]]; then
            failed=1
            add_row "dropin_$name" "NOT RUN: not in the archive" 0
        else
            add_row "dropin_$name" "NOT RUN: packed without --faiss-tests" 0
        fi
    done
    if ! find_python; then
        not_run bench_dropin
        return
    fi
    use_bench_args
    record bench_dropin "$python" "$here/benchs/bench_dropin.py" \
        --out "$out/dropin.json" "${args[@]}"
}

run_quickstart() {
    if ! find_python; then
        not_run quickstart
        return
    fi
    record quickstart "$python" "$here/contrib/quickstart.py" \
        --out "$out" --json "$out/quickstart.json"
    cat "$out/quickstart.log"
}

# run_part <name>: as in the list above.
run_part() {
    case $1 in
        tests | sanitize | bench | python | quickstart | dropin | \
            select | select_sweep | flat | rivals | sweep | filters | \
            ivf | ivf_rivals | many | metrics | queues)
            "run_$1"
            ;;
        all)
            run_tests
            run_python
            run_dropin
            run_quickstart
            run_sanitize
            run_bench
            ;;
        *)
            sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 2
            ;;
    esac
}

main() {
    local parts part
    trap stop_mps EXIT
    use_libraries
    IFS=, read -ra parts <<<"${what:-?}"
    for part in "${parts[@]}"; do
        run_part "$part"
    done
    echo
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
    printf '%s\n' "${table[@]}"
    exit "$failed"
}

main
