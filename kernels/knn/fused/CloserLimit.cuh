/// A closer limit for each query, from what passed the first one in a second
/// and larger sample.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

constexpr int kCloserLimitThreads = 256;

/// A warp a query. Queries whose lists say too little keep their limits; all
/// lists are empty afterwards.
template <Metric kMetric>
__global__ __launch_bounds__(kCloserLimitThreads) void closerLimitKernel(
        const CloserLimitParams params) {
    constexpr int kItems = kMostSecondEntries / kWarpSize; // in registers
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t row = blockIdx.x * (kCloserLimitThreads / kWarpSize) +
            threadIdx.x / kWarpSize;
    if (row >= search.rows) {
        return;
    }
    const uint32_t count = params.counts[row];
    if (lane == 0) {
        params.counts[row] = 0;
    }
    if (count < params.rank ||
        count > min(kMostSecondEntries, uint32_t(search.numCandidates))) {
        return;
    }
    const uint64_t* entries =
            search.entries + int64_t(row) * search.numCandidates;
    uint64_t mine[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
        const uint32_t at = i * kWarpSize + lane;
        mine[i] = at < count ? entries[at] : kNoEntry;
    }
    uint64_t last = 0; // no entry is: its key would be a NaN
    uint64_t own = 0;  // the least of this lane's above it
    for (uint32_t i = 0; i < params.rank; ++i) {
        if (own == last) {
            own = kNoEntry;
#pragma unroll
            for (int j = 0; j < kItems; ++j) {
                own = mine[j] > last && mine[j] < own ? mine[j] : own;
            }
        }
        last = leastOfWarp(own);
    }
    if (lane != 0 || last == kNoEntry) {
        return;
    }
    const double key = keyValue(entryKey(last));
    const RowBound<kMetric> bound = imageBound<kMetric>(search, row);
    // As SampleLimit has it.
    const float limit = __double2float_ru(bound.limitOf(key));
    if (limit < params.limits[row]) {
        params.limits[row] = limit;
        params.complete[row] = float(key);
    }
}

} // namespace faiss_bits
