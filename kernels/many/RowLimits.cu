#include "kernels/many/RowLimits.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

__global__ void rowLimitsKernel(
        const float* distances,
        const idx_t* ids,
        idx_t rows,
        idx_t k,
        float none,
        float* limits) {
    const idx_t step = idx_t(gridDim.x) * kThreads;
    for (idx_t row = idx_t(blockIdx.x) * kThreads + threadIdx.x; row < rows;
         row += step) {
        const idx_t last = row * k + k - 1;
        limits[row] = ids[last] < 0 ? none : distances[last];
    }
}

} // namespace

void runRowLimits(
        const float* distances,
        const idx_t* ids,
        idx_t rows,
        idx_t k,
        bool largest,
        float* limits,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            rows >= 0, "rows = %lld is negative", (long long)rows);
    BITS_THROW_IF_NOT_FMT(k >= 1, "k = %lld is below 1", (long long)k);
    if (rows == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(distances, "distances = nullptr");
    BITS_THROW_IF_NOT_FMT(ids, "ids = nullptr");
    BITS_THROW_IF_NOT_FMT(limits, "limits = nullptr");
    constexpr float kInfinity = __builtin_huge_valf();
    constexpr idx_t kMostBlocks = 1 << 14;
    const idx_t blocks = (rows + kThreads - 1) / kThreads;
    rowLimitsKernel<<<
            unsigned(std::min(blocks, kMostBlocks)),
            kThreads,
            0,
            stream>>>(
            distances, ids, rows, k, largest ? -kInfinity : kInfinity, limits);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
