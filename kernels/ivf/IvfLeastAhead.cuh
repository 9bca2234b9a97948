/// What the finish of a direct search reads before it knows how many columns a
/// row has: one wait less.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/ivf/IvfDirectParams.h"

namespace faiss_bits {

/// Groups of 32 columns of a row that may be read so.
constexpr uint32_t kIvfLeastAhead = 4096;
/// Queries: the blocks of more wait side by side.
constexpr uint32_t kIvfRowsAhead = 256;

/// Whether groups behind a row's last have no keys, up to kIvfLeastAhead:
/// launchIvfCentroids has seen to that.
BITS_HOST_DEVICE bool hasIvfLeastAhead(const IvfDirectParams& params) {
    return params.centroids && params.least &&
            params.search.rows <= kIvfRowsAhead;
}

/// No keys in some rows, by the blocks of a grid's first dimension; before the
/// scan writes those that are there.
__device__ __forceinline__ void clearIvfLeastAhead(
        const IvfDirectParams& params,
        uint32_t firstRow,
        uint32_t rows) {
    const auto stride = uint32_t(params.search.stride / kIvfGroup);
    const uint32_t groups = min(stride, kIvfLeastAhead);
    for (uint32_t row = firstRow; row < firstRow + rows; ++row) {
        uint32_t* least = params.least + int64_t(row) * stride;
        for (uint32_t g = blockIdx.x * blockDim.x + threadIdx.x; g < groups;
             g += gridDim.x * blockDim.x) {
            least[g] = kNanKey;
        }
    }
}

} // namespace faiss_bits
