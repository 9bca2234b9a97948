/// What ScanAgain does for k = 1 by tiles of products: a slot's limit is the
/// nearest vector that is known, and goes down with every one that is nearer.
/// So there are no lists to overflow or to cut, and one step has all vectors.
/// Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Not for slots that mayFilter() may take, though they are not few where
/// components are apart: it asks whether there are limits, and blocks that come
/// late would find what others have lowered, and share the step in another way.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::takesOne(
        uint32_t used) const {
    return kIsOfProducts<kMetric> && params.search.k == 1 && numGroups == 0 &&
            used > kFewSlots<kMetric> && !areNear;
}

/// The limits of a tile's slots from `slot` on, and which vectors are behind
/// them, as they are now. All threads of the block call it; what others find
/// meanwhile may be read or not.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::readNearest(
        uint32_t slot,
        uint32_t used) {
    __syncthreads(); // the tile before is done with
    if (threadIdx.x < kWarpSize) {
        uint32_t end = 0;
#pragma unroll
        for (uint32_t i = 0; i < kEndSlots; i += kWarpSize) {
            const uint32_t s = slot + i + threadIdx.x;
            if (s < used) {
                end = max(end, readLimit(s));
            }
        }
        end = __reduce_max_sync(kFullWarp, end);
        // Tiles of kinds may begin within the slots of an end.
        if (threadIdx.x == 0 && slot % kEndSlots == 0) {
            shared.ends[slot / kEndSlots] = end;
        }
    }
    __syncthreads();
}

/// An entry that belongs().
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::putNearest(
        uint32_t slot,
        uint64_t entry) {
    atomicMin(
            reinterpret_cast<unsigned long long*>(params.limits + slot),
            (unsigned long long)entry);
}

/// As appendTile(): the nearest of the four lanes that share a query.
template <Metric kMetric, class Begin>
template <class Places, int kDown, int kAcross>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::putNearestOfTile(
        uint32_t slot,
        int64_t first,
        const float (&distances)[kDown][kAcross][4],
        uint64_t sure) {
    constexpr int kRows = 4; // of a lane
    static_assert(kDown * 2 == kRows);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const int a = row / 2;
        const uint32_t mine = slot + Places::query(a, row % 2 * 2);
        uint64_t nearest = kNoEntry;
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
#pragma unroll
            for (int r = row % 2 * 2; r < row % 2 * 2 + 2; ++r) {
                const uint64_t entry = distanceEntry<kMetric>(
                        distances[a][b][r],
                        uint32_t(first + Places::vector(b, r)));
                if ((sure >> Places::bitOf(a, b, r) & 1) != 0 &&
                    entry < nearest && belongs(mine, entry)) {
                    nearest = entry;
                }
            }
        }
#pragma unroll
        for (int lanes = kRows / 2; lanes >= 1; lanes /= 2) {
            nearest = min(nearest, __shfl_xor_sync(kFullWarp, nearest, lanes));
        }
        if (Places::lane() % kRows == row && nearest != kNoEntry) {
            putNearest(mine, nearest);
        }
    }
}

/// Results of a turn, behind a barrier of the grid.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::writeNearest(
        uint32_t used) {
    for (uint32_t s = blockIdx.x * kThreads + threadIdx.x; s < used;
         s += gridDim.x * kThreads) {
        writePlace<kMetric>(
                params.search,
                shared.rows[s],
                0,
                __ldcg(reinterpret_cast<const unsigned long long*>(
                        params.limits + s)));
    }
}

} // namespace faiss_bits
