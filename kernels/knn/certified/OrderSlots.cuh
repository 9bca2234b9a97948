/// Which slots of ScanAgain make a tile. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Tiles of the slots 0 to used - 1. L2 subtracts the first query of a tile
/// from all, and tells vectors apart that are near it: so queries that are
/// alike stand together, by a sum of some components, and where those sums have
/// a gap a tile ends. Every block finds the same order.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::orderSlots(
        uint32_t used) {
    constexpr uint32_t kWarps = kThreads / kWarpSize;
    uint32_t* const ends = &shared.ends[0]; // bits: a tile ends before it
    __syncthreads();
    if (threadIdx.x < kMaxScanSlots / kWarpSize) {
        ends[threadIdx.x] = 0;
    }
    if (kMetric == Metric::L2 && used > uint32_t(Tile::kQueries)) {
        uint64_t* const entries = shared.lists.sort;
        for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
            const uint32_t row = shared.rows[s];
            entries[s] = makeEntry(orderedKey(placeOnLine(row)), row);
        }
        __syncthreads();
        Pieces{shared.lists.pieces}.sort(entries, entries, 0, used);
        const float first = keyValue(entryKey(entries[0]));
        const float last = keyValue(entryKey(entries[used - 1]));
        const float gap = (last - first) / kMostGaps;
        const uint32_t lane = threadIdx.x % kWarpSize;
        for (uint32_t w = threadIdx.x / kWarpSize; w * kWarpSize < used;
             w += kWarps) {
            const uint32_t s = w * kWarpSize + lane;
            bool isEnd = false;
            if (s < used) {
                shared.rows[s] = entryColumn(entries[s]);
                isEnd = s > 0 &&
                        keyValue(entryKey(entries[s])) -
                                        keyValue(entryKey(entries[s - 1])) >
                                gap;
            }
            const uint32_t bits = __ballot_sync(kFullWarp, isEnd);
            if (lane == 0) {
                ends[w] = bits;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t tiles = 0;
        uint32_t begin = 0;
        const auto endAt = [&](uint32_t end) {
            for (; begin < end; begin = min(begin + Tile::kQueries, end)) {
                shared.tileSlots[tiles++] = begin;
            }
        };
        for (uint32_t w = 0; w < kMaxScanSlots / kWarpSize; ++w) {
            for (uint32_t bits = ends[w]; bits != 0; bits &= bits - 1) {
                endAt(w * kWarpSize + __ffs(bits) - 1);
            }
        }
        endAt(used);
        shared.tileSlots[tiles] = used;
        shared.numTiles = tiles;
    }
    __syncthreads();
}

/// A sum of up to 16 components of a query, from all over it.
template <Metric kMetric, class Begin>
__device__ __forceinline__ float ScanAgain<kMetric, Begin>::placeOnLine(
        uint32_t row) const {
    constexpr int kComponents = 16;
    const float* query = params.search.queries + int64_t(row) * params.search.d;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kComponents; ++j) {
        // Weights that no usual data is orthogonal to.
        const float weight = 1.0f + float(j * 5 % kComponents) / kComponents;
        sum += weight * query[int64_t(j) * params.search.d / kComponents];
    }
    return sum;
}

} // namespace faiss_bits
