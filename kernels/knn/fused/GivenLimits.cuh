/// The limits of a scan from distances that the caller gives
/// (FlatKnnProblem::limits).
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/RankedLimit.cuh"

namespace faiss_bits {

constexpr int kGivenLimitThreads = 128;

/// Of one query. One thread calls it.
template <Metric kMetric>
__device__ __forceinline__ void writeGivenLimit(
        const GivenLimitParams& params,
        uint32_t row,
        const RowBound<kMetric>& bound) {
    const float given = params.given[row];
    double key = kIsSimilarity<kMetric> ? -double(given) : double(given);
    if (!(fabs(key) < __longlong_as_double(0x7ff0000000000000ll))) {
        key = __longlong_as_double(0x7ff0000000000000ll); // no limit
    }
    writeLimit(params, row, key, bound);
    // A list that is short of k has all that was asked for.
    if (params.complete[row] == params.complete[row]) {
        params.complete[row] = __uint_as_float(0x7f800000u);
    }
}

/// A thread a query where scans are of images, else a block.
template <Metric kMetric, bool kOfImages>
__global__ __launch_bounds__(kGivenLimitThreads) void givenLimitsKernel(
        const GivenLimitParams params) {
    allowNext();
    waitForPrevious();
    if constexpr (kOfImages) {
        const uint32_t row = blockIdx.x * kGivenLimitThreads + threadIdx.x;
        if (row < params.search.rows) {
            writeGivenLimit(
                    params, row, imageBound<kMetric>(params.search, row));
        }
    } else {
        __shared__ double norms[2 * kGivenLimitThreads / kWarpSize];
        const RowBound<kMetric> bound = rowBound<kMetric, kGivenLimitThreads>(
                params.search, blockIdx.x, norms);
        if (threadIdx.x == 0) {
            writeGivenLimit(params, blockIdx.x, bound);
        }
    }
}

} // namespace faiss_bits
