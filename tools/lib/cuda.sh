# shellcheck shell=bash
# The GPU, the CUDA compiler, and the compiler from PyPI where there is none.

gpu_present() {
    [[ -e /dev/nvidia0 ]] ||
        { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
}

# Prints the path of the nvcc of this machine, if it has one. What is on PATH
# may be a wrapper; nvcc itself knows where its toolkit is.
system_nvcc() {
    local nvcc root
    for nvcc in "${CUDACXX:-}" "$(command -v nvcc || true)" \
        "${FAISS_BITS_CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
        have "${nvcc:-no nvcc}" || continue
        root=$("$nvcc" --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
        if [[ -x $root/bin/nvcc ]]; then
            echo "$(cd "$root" && pwd -P)/bin/nvcc"
            return
        fi
    done
    return 1
}

# without_folders_of <file> <its neighbour> <list>: a list as in PATH, less the
# folders that hold the file, save those of the system, which hold the other
# one too.
without_folders_of() {
    local folder kept=()
    local -a folders
    IFS=: read -ra folders <<<"$3"
    for folder in "${folders[@]}"; do
        if [[ ! -e $folder/$1 || -e $folder/$2 ]]; then
            kept+=("$folder")
        fi
    done
    (IFS=: && echo "${kept[*]}")
}

# hide_cuda: this machine's toolkit is not found from here on.
hide_cuda() {
    local name
    unset CUDACXX CUDA_HOME CUDA_PATH CUDAToolkit_ROOT
    PATH=$(without_folders_of ../include/cuda_runtime_api.h sh "$PATH")
    for name in CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH; do
        if [[ -n ${!name:-} ]]; then
            printf -v "$name" %s \
                "$(without_folders_of cuda_runtime_api.h stdio.h "${!name}")"
        fi
    done
}

# wants_gpu <purpose>: whether to build the GPU part. Left to us, tests cover
# it wherever it compiles, while a first run wants it only where it can run.
wants_gpu() {
    case ${FAISS_BITS_GPU:-auto} in
        on | ON | 1) return 0 ;;
        off | OFF | 0) return 1 ;;
        auto | AUTO) ;;
        *) die "FAISS_BITS_GPU=$FAISS_BITS_GPU is not auto, on or off" ;;
    esac
    gpu_present || { [[ $1 == test ]] && system_nvcc >/dev/null; }
}

# The architectures to build for, in CMake's form: those of the GPUs present,
# else sm_90.
cuda_architectures() {
    local found=""
    if [[ -n ${FAISS_BITS_CUDA_ARCHS:-} ]]; then
        echo "$FAISS_BITS_CUDA_ARCHS"
        return
    fi
    if have nvidia-smi; then
        found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader \
            2>/dev/null | grep -E '^[0-9]+\.[0-9]+$' | tr -d . | sort -un |
            sed 's/$/-real/' | paste -sd ';') || true
    fi
    echo "${found:-90-real}"
}

# install_pypi_cuda: a CUDA compiler in an environment of the project's own.
# Sets BITS_NVCC.
install_pypi_cuda() {
    local env=$BITS_CACHE/cuda-13.0
    if [[ ! -e $env/complete ]]; then
        install_packages python3-venv
        with_lock cuda-13.0 make_pypi_cuda "$env"
    fi
    BITS_NVCC=$(find "$env" -path '*/bin/nvcc' -type f -print -quit)
    [[ -n $BITS_NVCC ]] || die "no nvcc under $env; remove it and start again"
}

make_pypi_cuda() {
    local env=$1 root
    [[ -e $env/complete ]] && return
    say "no nvcc here: installing CUDA 13.0's compiler from PyPI into $env"
    rm -rf "$env"
    "$BITS_PYTHON" -m venv --system-site-packages "$env"
    "$env/bin/python" -m pip install --disable-pip-version-check \
        'cuda-toolkit[nvcc,cudart,cublas,curand,cccl,crt]==13.0.*'
    root=$(find "$env" -path '*/bin/nvcc' -printf '%h' -quit)
    root=${root%/bin}
    complete_toolkit "$root"
    touch "$env/complete"
}

# complete_toolkit <root>: the wheels have what runs, as lib/libX.so.N. Linking
# (and CMake) wants libX.so, and looks in lib64.
complete_toolkit() {
    local root=$1 library
    for library in "$root"/lib/lib*.so.*; do
        [[ -e $library ]] || continue
        [[ -e ${library%%.so.*}.so ]] ||
            ln -s "$(basename "$library")" "${library%%.so.*}.so"
    done
    [[ -e $root/lib64 ]] || ln -s lib "$root/lib64"
}

# find_cuda: sets BITS_NVCC, BITS_CUDA_VERSION and BITS_CUDA_ARCHS.
find_cuda() {
    BITS_NVCC=$(system_nvcc) || install_pypi_cuda
    BITS_CUDA_VERSION=$("$BITS_NVCC" --version |
        sed -nE 's/.*release ([0-9.]+).*/\1/p')
    BITS_CUDA_ARCHS=$(cuda_architectures)
    say "CUDA $BITS_CUDA_VERSION ($BITS_NVCC) for $BITS_CUDA_ARCHS"
    check_driver
}

# A driver older than the toolkit's major version loads nothing built with it.
check_driver() {
    gpu_present && have nvidia-smi || return 0
    local driver
    driver=$(nvidia-smi | sed -nE 's/.*CUDA Version: ([0-9]+).*/\1/p')
    if [[ -n $driver ]] && ((driver < ${BITS_CUDA_VERSION%%.*})); then
        warn "the driver knows CUDA $driver, the compiler is CUDA" \
            "$BITS_CUDA_VERSION: the GPU part will build but not run." \
            "Update the driver, or give an older compiler by CUDACXX."
    fi
}
