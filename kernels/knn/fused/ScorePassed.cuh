/// Canonical distances of what passed a fused scan.
#pragma once

#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Whether a row's list is left, with empty places. All blocks of the row call
/// it.
__device__ __forceinline__ bool leaveList(
        const PassedParams& params,
        uint32_t row) {
    const CertifiedParams& search = params.search;
    const uint32_t room = uint32_t(search.numCandidates);
    if (!params.leavesOverfull || params.counts[row] <= room) {
        return false;
    }
    uint64_t* entries = search.entries + int64_t(row) * room;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < room;
         i += gridDim.x * blockDim.x) {
        entries[i] = kNoEntry;
    }
    return true;
}

/// Several blocks a row (y): entries of the listed vectors, to memory.
template <Metric kMetric>
__global__ __launch_bounds__(kRescoreThreads) void scorePassedKernel(
        const PassedParams params) {
    constexpr int kPerBlock = kRescoreThreads / kPairLanes;
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    for (uint32_t row = blockIdx.y; row < search.rows; row += gridDim.y) {
        if (leaveList(params, row)) {
            continue;
        }
        const int count =
                int(min(params.counts[row], uint32_t(search.numCandidates)));
        if (search.numRescored && blockIdx.x == 0 && threadIdx.x == 0) {
            atomicAdd(search.numRescored, (unsigned long long)count);
        }
        uint64_t* entries =
                search.entries + int64_t(row) * search.numCandidates;
        for (int first = blockIdx.x * kPerBlock; first < count;
             first += gridDim.x * kPerBlock) {
            rescoreCandidates<kMetric>(
                    search, row, first, min(first + kPerBlock, count), entries);
        }
    }
}

} // namespace faiss_bits
