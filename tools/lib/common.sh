# shellcheck shell=bash disable=SC2034
# Shared by the scripts of tools/: messages, privileges, jobs, locks.

# The root of the project, wherever the scripts are called from.
BITS_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BITS_CACHE=${FAISS_BITS_CACHE:-$HOME/.cache/faiss_bits}
# Debian's own Python, since its packages (numpy, faiss, h5py) belong to it.
BITS_PYTHON=${FAISS_BITS_PYTHON:-/usr/bin/python3}

# Seconds since the first script of this run started.
export BITS_STARTED=${BITS_STARTED:-$(date +%s)}

say() {
    printf '[faiss_bits %4ds] %s\n' $(($(date +%s) - BITS_STARTED)) "$*"
}

warn() {
    say "warning: $*" >&2
}

die() {
    say "error: $*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# as_root <command...>: runs it as root; fails where that cannot be had.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif have sudo && [[ -t 0 ]]; then
        sudo "$@"
    elif have sudo; then
        sudo -n "$@"
    else
        return 1
    fi
}

# Compile jobs: one per core, but 3 GB of memory each, which nvcc may take.
jobs_count() {
    if [[ -n ${FAISS_BITS_JOBS:-} ]]; then
        echo "$FAISS_BITS_JOBS"
        return
    fi
    local by_memory cores
    by_memory=$(awk '/MemAvailable/ {print int($2 / 3e6)}' /proc/meminfo)
    cores=$(nproc)
    ((by_memory < 1)) && by_memory=1
    echo $((cores < by_memory ? cores : by_memory))
}

# with_lock <name> <command...>: one process at a time in this cache folder.
with_lock() {
    local file=$BITS_CACHE/$1.lock
    shift
    mkdir -p "$BITS_CACHE"
    (
        if ! flock -n 9; then
            say "waiting for another set-up to finish ($file)"
            flock 9
        fi
        "$@"
    ) 9>"$file"
}
