/// The 32 least of up to 64 entries, in order, by sorts of 32 bits: keys that
/// are no more than some powers of two apart leave room for a place beside
/// them.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Entries of places lane and lane + 32 of a warp, kNoEntry where there are
/// none; all lanes call each function.
class SortFew {
   public:
    static constexpr uint32_t kMost = 2 * kWarpSize;

    /// Whether it has an answer: neighbours in the order are not equal, as ids
    /// would decide, and keys are near each other. Then `least` of lane i is
    /// the i-th entry.
    __device__ __forceinline__ static bool run(
            uint64_t low,
            uint64_t high,
            uint64_t& least) {
        const uint32_t base = __reduce_min_sync(
                kFullWarp, min(entryKey(low), entryKey(high)));
        const uint32_t last = __reduce_max_sync(
                kFullWarp, max(keyOrZero(low), keyOrZero(high)));
        if (last < base || last - base >= kMostApart) {
            return false;
        }
        const uint32_t lane = threadIdx.x % kWarpSize;
        uint32_t a = packed(low, base, lane);
        uint32_t b = packed(high, base, lane + kWarpSize);
#pragma unroll
        for (int size = 2; size <= kWarpSize; size *= 2) {
            const bool ascending = size == kWarpSize || (lane & size) == 0;
#pragma unroll
            for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
                if (lanes < size) {
                    a = exchanged(a, lanes, ascending);
                    // The other way round: the lesser of each two are the
                    // least of both, and bitonic, as are the greater.
                    b = exchanged(b, lanes, !ascending);
                }
            }
        }
        const uint32_t beyond = __reduce_min_sync(kFullWarp, max(a, b));
        a = min(a, b);
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            a = exchanged(a, lanes, true);
        }
        uint32_t next = __shfl_down_sync(kFullWarp, a, 1);
        next = lane + 1 < kWarpSize ? next : beyond;
        const bool isEqual =
                a != kNone && a >> kPlaceBits == next >> kPlaceBits;
        if (__any_sync(kFullWarp, isEqual)) {
            return false;
        }
        const uint32_t place = a % kMost;
        const uint32_t idLow = __shfl_sync(
                kFullWarp, entryColumn(low), int(place % kWarpSize));
        const uint32_t idHigh = __shfl_sync(
                kFullWarp, entryColumn(high), int(place % kWarpSize));
        least = a == kNone ? kNoEntry
                           : makeEntry(
                                     base + (a >> kPlaceBits),
                                     place < kWarpSize ? idLow : idHigh);
        return true;
    }

   private:
    static constexpr int kPlaceBits = 6;
    static_assert(kMost == 1 << kPlaceBits);
    static constexpr uint32_t kNone = ~0u;
    static constexpr uint32_t kMostApart = (1u << (32 - kPlaceBits)) - 1;

    __device__ __forceinline__ static uint32_t keyOrZero(uint64_t entry) {
        return entry == kNoEntry ? 0 : entryKey(entry);
    }

    __device__ __forceinline__ static uint32_t packed(
            uint64_t entry,
            uint32_t base,
            uint32_t place) {
        return entry == kNoEntry
                ? kNone
                : (entryKey(entry) - base) << kPlaceBits | place;
    }

    __device__ __forceinline__ static uint32_t exchanged(
            uint32_t value,
            int lanes,
            bool ascending) {
        const uint32_t other = __shfl_xor_sync(kFullWarp, value, lanes);
        const bool first = (threadIdx.x & lanes) == 0;
        return first == ascending ? min(value, other) : max(value, other);
    }
};

} // namespace faiss_bits
