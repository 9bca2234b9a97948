#!/usr/bin/env bash
# Sets up, builds everything, and runs every test: ctest (labels cpu and gpu)
# and pytest. GPU tests skip where there is no device; the summary at the end
# counts and names them. Exit code 0 only if all that ran passed.
#
#   tools/test.sh
#
# tools/setup.sh lists the environment variables that it heeds.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/common.sh
source "$tools/lib/common.sh"
# shellcheck source=tools/lib/build.sh
source "$tools/lib/build.sh"

# run_ctest <label> <jobs>: results to ctest-<label>.xml.
run_ctest() {
    say "ctest, label $1"
    ctest --test-dir "$BITS_BUILD" -L "^$1\$" -j "$2" --output-on-failure \
        --output-junit "$BITS_BUILD/ctest-$1.xml" </dev/null || failed=1
}

run_pytest() {
    say "pytest"
    "$BITS_PYTHON" -m pytest "$BITS_ROOT/tests/python" -q \
        -p no:cacheprovider --junitxml="$BITS_BUILD/pytest.xml" \
        </dev/null || failed=1
}

failed=0
set_up test
configure -DBUILD_TESTING=ON -DFAISS_BITS_BENCHS=ON
build all
rm -f "$BITS_BUILD"/{ctest-cpu,ctest-gpu,pytest}.xml
run_ctest cpu "$(nproc)"
reports=(cpu="$BITS_BUILD/ctest-cpu.xml")
if [[ $BITS_GPU == ON ]]; then
    # One at a time: they would take each other's memory and time.
    run_ctest gpu 1
    reports+=(gpu="$BITS_BUILD/ctest-gpu.xml")
fi
run_pytest
reports+=(python="$BITS_BUILD/pytest.xml")
"$BITS_PYTHON" "$tools/summary.py" "${reports[@]}" || failed=1
say "$(if ((failed)); then echo FAILED; else echo passed; fi)"
exit "$failed"
