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
        uint32_t base;
        if (!baseOf(min(entryKey(low), entryKey(high)),
                    max(keyOrZero(low), keyOrZero(high)),
                    base)) {
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
        if (hasEqual(a, beyond)) {
            return false;
        }
        const int from = int(a % kWarpSize);
        const uint32_t idLow = __shfl_sync(kFullWarp, entryColumn(low), from);
        const uint32_t idHigh = __shfl_sync(kFullWarp, entryColumn(high), from);
        least = unpacked(a, base, a % kMost < kWarpSize ? idLow : idHigh);
        return true;
    }

    /// The same of one entry a lane.
    __device__ __forceinline__ static bool run(
            uint64_t entry,
            uint64_t& sorted) {
        uint32_t base;
        if (!baseOf(entryKey(entry), keyOrZero(entry), base)) {
            return false;
        }
        const uint32_t lane = threadIdx.x % kWarpSize;
        uint32_t a = packed(entry, base, lane);
#pragma unroll
        for (int size = 2; size <= kWarpSize; size *= 2) {
            const bool ascending = size == kWarpSize || (lane & size) == 0;
#pragma unroll
            for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
                if (lanes < size) {
                    a = exchanged(a, lanes, ascending);
                }
            }
        }
        if (hasEqual(a, kNone)) {
            return false;
        }
        sorted = unpacked(
                a,
                base,
                __shfl_sync(kFullWarp, entryColumn(entry), int(a % kWarpSize)));
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

    /// The least key; whether the greatest one is near it.
    __device__ __forceinline__ static bool baseOf(
            uint32_t least,
            uint32_t most,
            uint32_t& base) {
        base = __reduce_min_sync(kFullWarp, least);
        const uint32_t last = __reduce_max_sync(kFullWarp, most);
        return last >= base && last - base < kMostApart;
    }

    /// Of sorted ones; next: behind the last.
    __device__ __forceinline__ static bool hasEqual(uint32_t a, uint32_t next) {
        const uint32_t other = __shfl_down_sync(kFullWarp, a, 1);
        next = threadIdx.x % kWarpSize + 1 < kWarpSize ? other : next;
        return __any_sync(
                kFullWarp, a != kNone && a >> kPlaceBits == next >> kPlaceBits);
    }

    __device__ __forceinline__ static uint64_t unpacked(
            uint32_t a,
            uint32_t base,
            uint32_t column) {
        return a == kNone ? kNoEntry
                          : makeEntry(base + (a >> kPlaceBits), column);
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
