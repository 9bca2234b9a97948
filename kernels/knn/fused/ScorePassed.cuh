/// Canonical distances of what passed a fused scan, and the proof that nothing
/// that belongs to the results did not.
#pragma once

#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Several blocks a row (y): entries of the listed vectors, to memory.
template <Metric kMetric>
__global__ __launch_bounds__(kRescoreThreads) void scorePassedKernel(
        const PassedParams params) {
    constexpr int kPerBlock = kRescoreThreads / kPairLanes;
    waitForPrevious();
    const CertifiedParams& search = params.search;
    for (uint32_t row = blockIdx.y; row < search.rows; row += gridDim.y) {
        const int count =
                int(min(params.counts[row], uint32_t(search.numCandidates)));
        uint64_t* entries =
                search.entries + int64_t(row) * search.numCandidates;
        for (int first = blockIdx.x * kPerBlock; first < count;
             first += gridDim.x * kPerBlock) {
            rescoreCandidates<kMetric>(
                    search, row, first, min(first + kPerBlock, count), entries);
        }
    }
}

constexpr int kProofThreads = 128;

/// A block a row, after the results were written: whether they are proved.
template <Metric kMetric>
__global__ __launch_bounds__(kProofThreads) void provePassedKernel(
        const PassedParams params) {
    __shared__ double norms[2 * kProofThreads / kWarpSize];
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t row = blockIdx.x;
    const auto bound = rowBound<kMetric, kProofThreads>(search, row, norms);
    if (threadIdx.x != 0) {
        return;
    }
    const double limit = params.limits[row];
    const uint32_t count = params.counts[row];
    // A query that is not a number has no neighbours, and its places are empty.
    bool proved = bound.norm != bound.norm;
    if (!proved && count <= uint32_t(search.numCandidates)) {
        if (isinf(limit) && limit > 0) {
            proved = true; // all vectors passed
        } else if (count >= uint32_t(search.k)) {
            const int64_t at = int64_t(row) * search.k + search.k - 1;
            const int64_t id = search.ids64
                    ? static_cast<const int64_t*>(search.outIds)[at]
                    : static_cast<const int32_t*>(search.outIds)[at];
            const double distance = search.outDistances[at];
            const double key = kIsSimilarity<kMetric> ? -distance : distance;
            const double above = key + bound.at(key);
            proved = id >= 0 && isfinite(above) && above <= limit;
        }
    }
    search.flags[2 * int64_t(row)] = !proved;
    search.flags[2 * int64_t(row) + 1] = 0;
}

} // namespace faiss_bits
