# shellcheck shell=bash
# Set-up, configure and build, as the commands of tools/ share them.

# set_up <purpose>: runs setup.sh and takes over what it found.
set_up() {
    local note
    note=$(mktemp)
    BITS_ENV_FILE=$note bash "$BITS_ROOT/tools/setup.sh" "$1" </dev/null
    # shellcheck source=/dev/null
    source "$(cat "$note")"
    rm -f "$note"
}

# configure <cmake arguments...>
configure() {
    local log=$BITS_BUILD/configure.log
    say "configuring $BITS_BUILD"
    if ! cmake -S "$BITS_ROOT" -B "$BITS_BUILD" "${BITS_CMAKE_ARGS[@]}" "$@" \
        >"$log" 2>&1; then
        cat "$log"
        die "configuring failed"
    fi
    grep -E '^-- (faiss_bits|FAISS_BITS)' "$log" || true
}

# build <target...>
build() {
    local targets=()
    if (($# > 0)); then
        targets=(--target "$@")
    fi
    say "building with $(jobs_count) jobs"
    NINJA_STATUS='[%f/%t, %es] ' cmake --build "$BITS_BUILD" \
        --parallel "$(jobs_count)" "${targets[@]}" ||
        die "the build failed"
}

# check_no_cuda: fails if a file of the finished build has read a header of
# CUDA's, wherever this machine keeps them.
check_no_cuda() {
    local found
    found=$(ninja -C "$BITS_BUILD" -t deps |
        grep -E '/(cuda|cublas|curand|nv)[a-z0-9_]*\.(h|hpp)$' | sort -u) || true
    [[ -z $found ]] || die "the CPU part includes headers of CUDA:"$'\n'"$found"
}
