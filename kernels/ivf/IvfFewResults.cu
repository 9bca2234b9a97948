// Results of rows with few candidates: a warp a row.
//
// Bound by: the sort, some 1,200 instructions of a warp for 256 candidates.

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfFewResults.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

template <int kItems>
__global__ __launch_bounds__(kThreads) void fewResultsKernel(
        const __grid_constant__ IvfResultParams params) {
    __shared__ typename FewResults<kItems>::Storage storage[kWarps];
    allowNext();
    waitForPrevious();
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t row = blockIdx.x * kWarps + warp;
    if (row < params.search.rows) {
        FewResults<kItems>{params, storage[warp], row}.run();
    }
}

} // namespace

void launchIvfFewResults(const IvfResultParams& params, cudaStream_t stream) {
    withFewItems(params, [&](auto items) {
        launchAfterPrevious(
                fewResultsKernel<items()>,
                dim3((params.search.rows + kWarps - 1) / kWarps),
                kThreads,
                0,
                stream,
                params);
    });
}

} // namespace faiss_bits
