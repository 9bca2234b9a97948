/// Rows to which the first vectors are as near as a vector can be, before the
/// second search: as to cosines that float32 does not tell from 1, of vectors
/// in a narrow cone.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/certified/ScanLimits.cuh"

namespace faiss_bits {

/// Metrics of which that is worth a look at the first vectors.
template <Metric kMetric>
constexpr bool kLooksAtFirst = kMetric == Metric::Cosine;

/// Of more vectors a block has a row.
constexpr uint32_t kMostKeepOfWarp = 64;

/// Of the flagged rows whose `keep` first vectors all have the least key that
/// there is, these are the results, as others that have it come behind them:
/// writes them, and takes the flags away. kTeam threads a row, those of a warp
/// or of the block, look at eight lanes a vector until one is farther. No
/// filter. All threads of the grid call it; others look at no flags meanwhile.
///
/// No part of the caller, whose registers are for tiles.
template <Metric kMetric, int kTeam, int kThreads>
__device__ __noinline__ void takeNearestFirst(
        const CertifiedParams& search,
        uint32_t keep) {
    constexpr uint32_t kVectors = kTeam / kPairLanes; // at a time
    constexpr uint32_t kTeams = kThreads / kTeam;
    const uint32_t lane = threadIdx.x % kTeam;
    for (uint32_t row = blockIdx.x * kTeams + threadIdx.x / kTeam;
         row < search.rows;
         row += gridDim.x * kTeams) {
        uint8_t* const flags = search.flags + 2 * int64_t(row);
        bool areLeast = (flags[0] | flags[1]) != 0;
        for (uint32_t first = 0; first < keep && areLeast; first += kVectors) {
            // Behind the last: it again.
            const uint32_t vector = min(first + lane / kPairLanes, keep - 1);
            uint64_t entry = kNoEntry;
            withVectors(search.vectors, [&](const auto* data) {
                const double distance = pairDistance<kMetric>(
                        data + int64_t(vector) * search.vectors.rowStride,
                        search.vectors.columnStride,
                        search.queries + int64_t(row) * search.d,
                        search.d,
                        search.power);
                entry = distanceEntry<kMetric>(distance, vector);
            });
            const bool isLeast = entryKey(entry) == leastKey<kMetric>();
            areLeast = kTeam == kWarpSize ? __all_sync(kFullWarp, isLeast)
                                          : __syncthreads_and(isLeast);
        }
        if (!areLeast) {
            continue;
        }
        for (uint32_t i = lane; i < uint32_t(search.k); i += kTeam) {
            writePlace<kMetric>(
                    search,
                    row,
                    int(i),
                    i < keep ? makeEntry(leastKey<kMetric>(), i) : kNoEntry);
        }
        if (lane == 0) {
            flags[0] = flags[1] = 0;
        }
    }
}

} // namespace faiss_bits
