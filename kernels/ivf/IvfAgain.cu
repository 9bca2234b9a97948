// Rows of an IVF search that are searched again: side by side, and back.

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfAgain.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 128;

/// A block a row.
__global__ __launch_bounds__(kThreads) void gatherKernel(
        const __grid_constant__ IvfAgainParams params) {
    allowNext();
    waitForPrevious();
    const int64_t to = blockIdx.x;
    const int64_t from = params.rows[to];
    for (int i = threadIdx.x; i < params.d; i += kThreads) {
        params.someQueries[to * params.d + i] =
                params.queries[from * params.d + i];
    }
    for (int i = threadIdx.x; i < params.nprobe; i += kThreads) {
        params.someProbes[to * params.nprobe + i] =
                params.probes[from * params.nprobe + i];
    }
}

__global__ __launch_bounds__(kThreads) void scatterKernel(
        const __grid_constant__ IvfAgainParams params) {
    allowNext();
    waitForPrevious();
    const int64_t from = blockIdx.x;
    const int64_t to = params.rows[from];
    for (int i = threadIdx.x; i < params.k; i += kThreads) {
        params.outDistances[to * params.k + i] =
                params.someDistances[from * params.k + i];
        params.outIds[to * params.k + i] = params.someIds[from * params.k + i];
    }
}

/// A thread a row.
__global__ __launch_bounds__(kThreads) void limitsKernel(
        const __grid_constant__ IvfAgainLimits params) {
    allowNext();
    waitForPrevious();
    const uint32_t to = blockIdx.x * kThreads + threadIdx.x;
    if (to < params.count) {
        const int64_t from = params.rows[to];
        const float distance = params.outDistances[(from + 1) * params.k - 1];
        params.keys[to] = params.largest ? -distance : distance;
        params.places[to] = isnan(distance) ? -1 : 0;
    }
}

} // namespace

void launchIvfAgainLimits(const IvfAgainLimits& params, cudaStream_t stream) {
    launchAfterPrevious(
            limitsKernel,
            dim3((params.count + kThreads - 1) / kThreads),
            kThreads,
            0,
            stream,
            params);
}

void launchIvfGather(const IvfAgainParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            gatherKernel, dim3(params.count), kThreads, 0, stream, params);
}

void launchIvfScatter(const IvfAgainParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            scatterKernel, dim3(params.count), kThreads, 0, stream, params);
}

} // namespace faiss_bits
