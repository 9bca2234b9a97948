/// How ScanAgain appends what it finds to the lists of its slots: the places of
/// many by one atomic operation, as a thread waits for each. Included by
/// ScanAgain.cuh.
#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Whether an entry is within the limit of its slot. kNoEntry is not below the
/// first limit, which is kNoEntry.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::belongs(
        uint32_t slot,
        uint64_t entry) const {
    return entry < shared.limits[slot] && isAllowed(entryColumn(entry));
}

/// To place `at` of a slot's list, if there is room.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::putEntry(
        uint32_t slot,
        uint32_t at,
        uint64_t entry) {
    if (at < params.capacity) {
        params.lists[slot * params.capacity + at] = entry;
    }
}

template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::append(
        uint32_t slot,
        int64_t vector,
        float distance) {
    const uint64_t entry = distanceEntry<kMetric>(distance, uint32_t(vector));
    if (!belongs(slot, entry)) {
        return;
    }
    if (kIsOfProducts<kMetric> && isOne) {
        putNearest(slot, entry);
    } else {
        putEntry(slot, atomicAdd(params.counts + slot, 1u), entry);
    }
}

/// Distances of vectors side by side, of those whose bits are set.
template <Metric kMetric, class Begin>
template <int kCount>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::appendSome(
        uint32_t slot,
        int64_t vector,
        const float (&distances)[kCount],
        uint32_t mask) {
    if (kIsOfProducts<kMetric> && isOne) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            if (mask >> i & 1) {
                append(slot, vector + i, distances[i]);
            }
        }
        return;
    }
    uint32_t within = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        if (mask >> i & 1) {
            within |= belongs(slot,
                              distanceEntry<kMetric>(
                                      distances[i], uint32_t(vector + i)))
                    ? 1u << i
                    : 0;
        }
    }
    if (within == 0) {
        return;
    }
    uint32_t at = atomicAdd(params.counts + slot, __popc(within));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        if (within >> i & 1) {
            putEntry(
                    slot,
                    at++,
                    distanceEntry<kMetric>(distances[i], uint32_t(vector + i)));
        }
    }
}

/// Distances of kDown slots and kAcross vectors, other vectors in each of
/// kWidth lanes side by side, which share the slots and take their places
/// together; NaN are none. All lanes of the warp call it.
template <Metric kMetric, class Begin>
template <int kWidth, int kDown, int kAcross>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::appendLanes(
        uint32_t slot,
        int64_t vector,
        const float (&distances)[kDown][kAcross]) {
    constexpr uint32_t kByte = 0xFF;
    static_assert(kDown <= 4 && kWidth * kAcross <= int(kByte));
    const int lane = threadIdx.x % kWidth;
    const auto entryOf = [&](int a, int b) {
        return distanceEntry<kMetric>(distances[a][b], uint32_t(vector + b));
    };
    uint32_t within = 0;
    uint32_t counts = 0; // a byte a slot
#pragma unroll
    for (int a = 0; a < kDown; ++a) {
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            // Of what is none the slot need not be one.
            const bool is = distances[a][b] == distances[a][b] &&
                    belongs(slot + a, entryOf(a, b));
            within |= is ? 1u << (a * kAcross + b) : 0;
            counts += is ? 1u << 8 * a : 0;
        }
    }
    if (!__any_sync(kFullWarp, within != 0)) {
        return;
    }
    const uint32_t upTo = sumUpToLane<kWidth>(counts);
    const uint32_t all = __shfl_sync(kFullWarp, upTo, kWidth - 1, kWidth);
    const uint32_t mine = lane < kDown ? all >> 8 * lane & kByte : 0;
    const uint32_t begin =
            mine != 0 ? atomicAdd(params.counts + slot + lane, mine) : 0;
#pragma unroll
    for (int a = 0; a < kDown; ++a) {
        uint32_t at = __shfl_sync(kFullWarp, begin, a, kWidth) +
                ((upTo - counts) >> 8 * a & kByte);
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            if (within >> (a * kAcross + b) & 1) {
                putEntry(slot + a, at++, entryOf(a, b));
            }
        }
    }
}

/// Distances of a tile of products: the four lanes that share four queries take
/// the places of a query each.
template <Metric kMetric, class Begin>
template <class Places, int kDown, int kAcross>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::appendTile(
        uint32_t slot,
        int64_t first,
        const float (&distances)[kDown][kAcross][4],
        uint64_t sure) {
    constexpr int kRows = 4; // of a lane
    constexpr uint32_t kByte = 0xFF;
    static_assert(kDown * 2 == kRows && kRows * 2 * kAcross <= int(kByte));
    if (!__any_sync(kFullWarp, sure != 0)) {
        return;
    }
    if (isOne) {
        putNearestOfTile<Places>(slot, first, distances, sure);
        return;
    }
    const auto entryOf = [&](int a, int b, int r) {
        return distanceEntry<kMetric>(
                distances[a][b][r], uint32_t(first + Places::vector(b, r)));
    };
    uint64_t within = 0;
    uint32_t counts = 0; // a byte a row
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const int a = row / 2;
        const uint32_t mine = slot + Places::query(a, row % 2 * 2);
        uint32_t count = 0;
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
#pragma unroll
            for (int r = row % 2 * 2; r < row % 2 * 2 + 2; ++r) {
                const int bit = Places::bitOf(a, b, r);
                if ((sure >> bit & 1) != 0 && belongs(mine, entryOf(a, b, r))) {
                    within |= uint64_t(1) << bit;
                    ++count;
                }
            }
        }
        counts |= count << 8 * row;
    }
    const uint32_t upTo = sumUpToLane<kRows>(counts);
    const int own = Places::lane() % kRows; // row
    const uint32_t all =
            __shfl_sync(kFullWarp, upTo, kRows - 1, kRows) >> 8 * own & kByte;
    const uint32_t ofOwn = slot + Places::query(own / 2, own % 2 * 2);
    const uint32_t begin = all > 0 ? atomicAdd(params.counts + ofOwn, all) : 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const int a = row / 2;
        const uint32_t mine = slot + Places::query(a, row % 2 * 2);
        uint32_t at = __shfl_sync(kFullWarp, begin, row, kRows) +
                ((upTo - counts) >> 8 * row & kByte);
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
#pragma unroll
            for (int r = row % 2 * 2; r < row % 2 * 2 + 2; ++r) {
                if (within >> Places::bitOf(a, b, r) & 1) {
                    putEntry(mine, at++, entryOf(a, b, r));
                }
            }
        }
    }
}

/// What ScanAgain does with the pairs of a tile of which the first are `slot`
/// and `first`.
template <Metric kMetric, class Begin>
struct ScanAgain<kMetric, Begin>::AppendPairs {
    ScanAgain& scan;
    uint32_t slot;
    int64_t first;

    /// As a tile visits some pairs of a query.
    template <int kCount>
    __device__ __forceinline__ void operator()(
            int q,
            int v,
            const float (&distances)[kCount],
            uint32_t mask) const {
        scan.template appendSome<kCount>(slot + q, first + v, distances, mask);
    }

    /// As a tile of products visits all pairs of a warp of which it is sure.
    template <class Places, int kDown, int kAcross>
    __device__ __forceinline__ void ofTile(
            const float (&distances)[kDown][kAcross][4],
            uint64_t sure) const {
        scan.template appendTile<Places, kDown, kAcross>(
                slot, first, distances, sure);
    }
};

} // namespace faiss_bits
