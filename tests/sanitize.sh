#!/usr/bin/env bash
# Runs the small GPU tests under compute-sanitizer: memcheck, racecheck,
# initcheck and synccheck. Exit code 0 only if every tool ran tests and found
# nothing.
#
#   tests/sanitize.sh BIN_DIR [LOG_DIR]
#
# BIN_DIR  folder of the test programs (<build>/tests/bin)
# LOG_DIR  one log per tool and program; default: sanitize under the current
#          folder
#
# Environment:
#   FAISS_BITS_SANITIZE_FILTER    gtest filter; default *Small*
#   FAISS_BITS_SANITIZE_TOOLS     default: all four
#   FAISS_BITS_SANITIZE_TIMEOUT   seconds for one program and tool; default 600

set -euo pipefail

bin=${1:?usage: sanitize.sh BIN_DIR [LOG_DIR]}
logs=${2:-sanitize}
filter=${FAISS_BITS_SANITIZE_FILTER:-*Small*}
limit=${FAISS_BITS_SANITIZE_TIMEOUT:-600}
read -ra tools <<<"${FAISS_BITS_SANITIZE_TOOLS:-memcheck racecheck initcheck synccheck}"

sanitizer=$(command -v compute-sanitizer ||
    ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || {
    echo "no compute-sanitizer: it comes with the CUDA toolkit" >&2
    exit 1
}

# initcheck does not see what cuBLAS writes (bulk copies), so a test that reads
# products from memory that nothing else ever wrote looks guilty: here, one
# whose scratch is more than FAISS's temporary memory and comes fresh, one that
# makes cosines of products in such memory, and one that trains centroids.
filter_for() {
    if [[ $1 == initcheck && $filter != *-* ]]; then
        echo "$filter:-GpuFlatValues/*.SmallTiesGoToTheLowerId:BfKnnMetrics.SmallMetricsOfOurs:FlatBFloat16.SmallNoQuantizerOfIVFPQ"
    else
        echo "$filter"
    fi
}

# check <tool> <program>: prints one line of the table.
check() {
    local tool=$1 program=$2 name log status=0 passed skipped verdict
    name=$(basename "$program")
    log=$logs/$tool-$name.log
    # Errors change the exit code; a failed test changes it too.
    timeout "$limit" "$sanitizer" --tool "$tool" --error-exitcode 99 \
        --print-limit 20 "$program" --gtest_filter="$(filter_for "$tool")" \
        </dev/null >"$log" 2>&1 || status=$?
    passed=$(grep -c '^\[       OK \]' "$log") || true
    skipped=$(grep -c '^\[  SKIPPED \] .*ms)$' "$log") || true
    case $status in
        0) verdict=clean ;;
        99) verdict=ERRORS ;;
        124) verdict="TIMED OUT" ;;
        *) verdict="FAILED ($status)" ;;
    esac
    # A tool that ran nothing has found nothing.
    if ((status == 0 && passed == 0)); then
        verdict="NOTHING RAN"
    fi
    printf '%-10s %-20s %7d %8d  %s\n' \
        "$tool" "$name" "$passed" "$skipped" "$verdict"
    [[ $verdict == clean ]]
}

mkdir -p "$logs"
printf '%-10s %-20s %7s %8s\n' tool program passed skipped
failed=0
for tool in "${tools[@]}"; do
    for program in "$bin"/*; do
        # Programs that make no CUDA call are not for here (the sanitizer
        # fails on them), nor are those without a small test.
        case $program in
            *_host | *_no_device | */test_cpu_search | */test_fused_flat) continue ;;
        esac
        list=$("$program" --gtest_list_tests --gtest_filter="$filter" | grep "^  ") || true
        if [[ -n $list ]]; then
            check "$tool" "$program" || failed=1
        fi
    done
done
exit "$failed"
