#!/usr/bin/env bash
# Sets up, builds the library and its Python module, and finds exact nearest
# neighbours on real data. A second run starts within seconds.
#
#   tools/quickstart.sh [--help | options of contrib/quickstart.py]
#   tools/quickstart.sh words [--help | options of contrib/words.py]
#       nearest words of a dictionary, and a spell check
#
# tools/setup.sh lists the environment variables that it heeds.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/common.sh
source "$tools/lib/common.sh"
# shellcheck source=tools/lib/build.sh
source "$tools/lib/build.sh"

program=quickstart
if [[ ${1:-} == words ]]; then
    program=words
    shift
fi
set_up "$program"
options=()
# A build folder that already has the tests keeps them.
if [[ ! -e $BITS_BUILD/CMakeCache.txt ]]; then
    options=(-DBUILD_TESTING=OFF -DFAISS_BITS_BENCHS=OFF)
fi
configure "${options[@]}"
build swigfaiss_bits faiss_bits_python_files
say "running contrib/$program.py"
exec "$BITS_PYTHON" "$BITS_ROOT/contrib/$program.py" "$@"
