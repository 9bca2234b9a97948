# shellcheck shell=bash
# GPU tests side by side; read by tools/test.sh and by run_gpu.sh, which finds
# it in its own folder.
#
# Processes that share a GPU take turns, a slice of time each, and a test waits
# for the GPU some thousand times. 16 programs side by side got slower by that:
# one that takes 4.6 s alone took 130 (H200). With CUDA's multi-process service
# (MPS) their work runs at the same time. Its server is private to this script.
#
# FAISS_BITS_TEST_JOBS  GPU tests at a time; default: one per core, but 4 GiB of
#                       GPU memory each, at most 32 (a server takes 48 clients),
#                       and one where MPS does not work

# count_gpu_jobs: prints how many fit.
count_gpu_jobs() {
    local cores mib most=32
    if [[ -n ${FAISS_BITS_TEST_JOBS:-} ]]; then
        echo "$FAISS_BITS_TEST_JOBS"
        return
    fi
    cores=$(nproc)
    mib=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits \
        2>/dev/null | sort -n | head -n 1)
    [[ $mib =~ ^[0-9]+$ ]] || mib=0
    ((cores < most)) && most=$cores
    ((mib / 4096 < most)) && most=$((mib / 4096))
    echo $((most < 1 ? 1 : most))
}

# start_mps <probe>: starts the server and sets gpu_jobs. The probe is a
# GoogleTest program with GPU tests: if it does not pass with the server, there
# is none, and gpu_jobs is 1.
start_mps() {
    gpu_jobs=$(count_gpu_jobs)
    if ((gpu_jobs == 1)); then
        return
    fi
    # Its sockets' names must be short. A server sees all devices: a list of
    # visible ones counts from the server's for its clients.
    mps_folder=$(mktemp -d /tmp/faiss_bits_mps.XXXXXX)
    export CUDA_MPS_PIPE_DIRECTORY=$mps_folder CUDA_MPS_LOG_DIRECTORY=$mps_folder
    if env -u CUDA_VISIBLE_DEVICES nvidia-cuda-mps-control -d \
        >/dev/null 2>&1 && probe_mps "$1"; then
        return
    fi
    stop_mps
    gpu_jobs=1
}

# probe_mps <probe>: skipped is not passed.
probe_mps() {
    local text
    text=$(timeout 120 "$1" 2>&1) &&
        [[ $text == *"  PASSED  "* && $text != *"  SKIPPED "* ]]
}

stop_mps() {
    if [[ -n ${mps_folder:-} ]]; then
        echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
        rm -rf "$mps_folder"
        unset mps_folder CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
}
