#!/usr/bin/env bash
# Sets up, builds everything, and runs every test: ctest (labels cpu and gpu)
# and pytest. The CPU part comes first, alone, with any CUDA toolkit of this
# machine hidden; then the GPU build where one is wanted (tools/setup.sh). GPU
# tests skip where there is no device; the summary at the end counts and names
# them. Exit code 0 only if all that ran passed.
#
#   tools/test.sh
#
# tools/setup.sh lists the environment variables that it heeds, and
# tools/lib/gpu_tests.sh one for GPU tests. With a GPU build FAISS_BITS_BUILD is
# its folder, and the CPU part's is that name with -cpu.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in common build cuda gpu_tests; do
    # shellcheck source=/dev/null
    source "$tools/lib/$part.sh"
done

# run_ctest <label> <jobs>: results to ctest-<label>.xml.
run_ctest() {
    say "ctest, label $1"
    ctest --test-dir "$BITS_BUILD" -L "^$1\$" -j "$2" --output-on-failure \
        --output-junit "$BITS_BUILD/ctest-$1.xml" </dev/null || failed=1
}

# run_pytest <arguments...>
run_pytest() {
    say "pytest"
    "$BITS_PYTHON" -m pytest "$BITS_ROOT/tests/python" -q \
        -p no:cacheprovider --junitxml="$BITS_BUILD/pytest.xml" "$@" \
        </dev/null || failed=1
}

build_tests() {
    set_up test
    configure -DBUILD_TESTING=ON -DFAISS_BITS_BENCHS=ON
    build all
    rm -f "$BITS_BUILD"/{ctest-cpu,ctest-gpu,pytest}.xml
    echo "$BITS_BUILD" >"$folders/$1"
}

# Each in a subshell, as their environments differ.
test_cpu() (
    set -e
    failed=0
    hide_cuda
    export FAISS_BITS_GPU=off
    if [[ $1 == also && -n ${FAISS_BITS_BUILD:-} ]]; then
        export FAISS_BITS_BUILD+=-cpu
    fi
    build_tests cpu
    check_no_cuda
    run_ctest cpu "$(nproc)"
    run_pytest
    exit "$failed"
)

test_gpu() (
    set -e
    failed=0
    export FAISS_BITS_GPU=on
    build_tests gpu
    run_ctest cpu "$(nproc)"
    trap stop_mps EXIT
    start_mps "$BITS_BUILD/tests/bin/test_device"
    say "GPU tests at a time: $gpu_jobs"
    OMP_WAIT_POLICY=passive run_ctest gpu "$gpu_jobs"
    stop_mps
    # Long tests of the CPU index have run.
    run_pytest -m "not long_cpu"
    exit "$failed"
)

# run_part <function> <arguments...>: not in a list with ||, in which `set -e`
# would do nothing.
run_part() {
    local status
    set +e
    "$@"
    status=$?
    set -e
    ((status == 0)) || failed=1
}

# take_reports <build> <name=file...>
take_reports() {
    local report folder
    folder=$(cat "$folders/$1" 2>/dev/null || echo "no $1 build")
    for report in "${@:2}"; do
        reports+=("$1 ${report%%=*}=$folder/${report#*=}")
    done
}

failed=0
reports=()
folders=$(mktemp -d)
trap 'rm -rf "$folders"' EXIT
if wants_gpu test; then
    run_part test_cpu also
    run_part test_gpu
else
    run_part test_cpu alone
fi
take_reports cpu ctest=ctest-cpu.xml pytest=pytest.xml
if wants_gpu test; then
    take_reports gpu "ctest cpu=ctest-cpu.xml" "ctest gpu=ctest-gpu.xml" \
        pytest=pytest.xml
fi
"$BITS_PYTHON" "$tools/summary.py" "${reports[@]}" || failed=1
say "$(if ((failed)); then echo FAILED; else echo passed; fi)"
exit "$failed"
