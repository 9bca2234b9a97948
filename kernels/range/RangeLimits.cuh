/// From the radius to the limits of a scan.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/range/RangeParams.h"

namespace faiss_bits {

constexpr int kRangeLimitThreads = 128;

/// A block a row.
template <Metric kMetric>
__global__ __launch_bounds__(kRangeLimitThreads) void rangeLimitsKernel(
        const __grid_constant__ RangeLimitParams params) {
    __shared__ double norms[2 * kRangeLimitThreads / kWarpSize];
    constexpr float kInfinity = __builtin_huge_valf();
    waitForPrevious();
    for (uint32_t row = blockIdx.x; row < params.search.rows;
         row += gridDim.x) {
        const RowBound<kMetric> bound = rowBound<kMetric, kRangeLimitThreads>(
                params.search, row, norms);
        if (threadIdx.x != 0) {
            continue;
        }
        const float key =
                kIsSimilarity<kMetric> ? -params.radius : params.radius;
        float limit = __double2float_ru(bound.limitOf(key));
        if (!(limit < kInfinity)) {
            limit = kInfinity; // nothing is proved
        }
        const bool isEmpty = key == -kInfinity ||
                (kMetric == Metric::L2 && !(key > 0)) ||
                bound.norm != bound.norm;
        params.limits[row] = isEmpty ? -kInfinity : limit;
    }
}

} // namespace faiss_bits
