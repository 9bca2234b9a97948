# shellcheck shell=bash
# The official faiss-gpu wheel, for the tests of the drop-in library.

BITS_WHEEL_VERSION=1.15.1

# fetch_wheel: sets BITS_WHEEL, or leaves it empty, and says so, where the wheel
# is not wanted or cannot be had; its tests are then skipped by name.
fetch_wheel() {
    local folder python
    BITS_WHEEL=${FAISS_BITS_TEST_WHEEL:-}
    if [[ $BITS_WHEEL == off ]]; then
        BITS_WHEEL=""
        return
    elif [[ -n $BITS_WHEEL ]]; then
        [[ -d $BITS_WHEEL ]] ||
            die "FAISS_BITS_TEST_WHEEL=$BITS_WHEEL is no folder, nor off"
        return
    fi
    python=$("$BITS_PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    folder=$BITS_CACHE/faiss-gpu-$BITS_WHEEL_VERSION-python$python
    if [[ ! -e $folder/complete ]]; then
        with_lock "$(basename "$folder")" make_wheel "$folder" ||
            warn "the faiss-gpu wheel could not be fetched:" \
                "tests with it are skipped"
    fi
    if [[ -e $folder/complete ]]; then
        BITS_WHEEL=$folder
        say "faiss-gpu wheel: $folder"
    fi
}

# 570 MB to fetch, 1 GB on disk: CUDA 12's cuBLAS is most of it.
# docs/design/dropin.md names the same versions. Chained, as `set -e` does not
# reach into a list with ||.
make_wheel() {
    local folder=$1
    [[ -e $folder/complete ]] && return
    "$BITS_PYTHON" -m pip --version >/dev/null 2>&1 ||
        install_packages python3-pip
    say "fetching the faiss-gpu wheel from PyPI, once, 570 MB"
    rm -rf "$folder"
    PIP_ROOT_USER_ACTION=ignore "$BITS_PYTHON" -m pip install \
        --disable-pip-version-check --quiet \
        --retries 1 --no-cache-dir --no-deps --only-binary :all: \
        --target "$folder" "faiss-gpu==$BITS_WHEEL_VERSION" \
        nvidia-cuda-runtime-cu12==12.6.77 nvidia-cublas-cu12==12.6.4.1 \
        nvidia-curand-cu12==10.3.10.19 </dev/null &&
        touch "$folder/complete"
}
