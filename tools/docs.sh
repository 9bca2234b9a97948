#!/usr/bin/env bash
# Makes the reference of the C++ and Python API: build/docs/html/index.html. It
# fetches what is missing and builds the Python module first, whose docstrings it
# reads; the CPU part is enough, unless FAISS_BITS_GPU is on. A mistake in a
# comment, a name or a link is an error.
#
#   tools/docs.sh [--linkcheck]     also asks for the pages on the network that
#                                   ours name
#
# tools/setup.sh lists the environment variables that it heeds.

set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/common.sh
source "$tools/lib/common.sh"
# shellcheck source=tools/lib/build.sh
source "$tools/lib/build.sh"

case ${1:-} in
    "" | --linkcheck) ;;
    *) die "what is '$1'? --linkcheck is the only option" ;;
esac

export FAISS_BITS_GPU=${FAISS_BITS_GPU:-off}
set_up docs
options=()
# A build folder that already has the tests keeps them.
if [[ ! -e $BITS_BUILD/CMakeCache.txt ]]; then
    options=(-DBUILD_TESTING=OFF -DFAISS_BITS_BENCHS=OFF)
fi
configure "${options[@]}"
build swigfaiss_bits faiss_bits_python_files
say "making the reference"
"$BITS_PYTHON" "$BITS_ROOT/docs/reference/make.py" "$BITS_ROOT/build/docs" "$@" ||
    die "the reference has mistakes, see above"
say "the reference: $BITS_ROOT/build/docs/html/index.html"
