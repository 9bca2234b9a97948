/// Sorts of up to 64 entries by eight lanes, four rows a warp: most steps are
/// between the eight that a lane has, and the others serve four rows at once.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// All lanes of the warp call each function; each eight have entries of their
/// own, those of slots 8 i + lane in item i before, and of places 8 lane + i
/// afterwards.
struct SortRows {
    static constexpr int kLanes = 8;
    static constexpr int kItems = 8;
    static constexpr uint32_t kMost = kLanes * kItems;
    static constexpr uint32_t kNone = ~0u;

    /// Ascending: the first exchanges of each size meet mirrored, and so all
    /// are of one direction.
    template <class T>
    __device__ __forceinline__ static void sort(T (&items)[kItems]) {
        mirrorOwn<2>(items);
        mirrorOwn<4>(items);
        halveOwn<1>(items);
        mirrorOwn<8>(items);
        halveOwn<2>(items);
        mirrorLanes<2>(items);
        halveOwn<4>(items);
        mirrorLanes<4>(items);
        halveLanes<1>(items);
        halveOwn<4>(items);
        mirrorLanes<8>(items);
        halveLanes<2>(items);
        halveOwn<4>(items);
    }

    /// The slots of the 32 least in order, kNone where there is no entry, to
    /// the first four lanes; false: keys are equal, or too far apart, and
    /// nothing is known. Of all rows of the warp, or none.
    __device__ __forceinline__ static bool order(
            const uint64_t (&entries)[kItems],
            uint32_t (&slots)[kItems]) {
        constexpr int kSlotBits = 6;
        constexpr uint32_t kMostApart = (1u << (32 - kSlotBits)) - 1;
        static_assert(kMost == 1 << kSlotBits);
        const uint32_t lane = threadIdx.x % kLanes;
        uint32_t least = kNone;
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t key = entryKey(entries[i]);
            least = min(least, key);
            most = max(most, entries[i] == kNoEntry ? 0 : key);
        }
#pragma unroll
        for (int lanes = 1; lanes < kLanes; lanes *= 2) {
            least = min(least, __shfl_xor_sync(kFullWarp, least, lanes));
            most = max(most, __shfl_xor_sync(kFullWarp, most, lanes));
        }
        bool isAmiss = most >= least && most - least >= kMostApart;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            slots[i] = entries[i] == kNoEntry
                    ? kNone
                    : (entryKey(entries[i]) - least) << kSlotBits |
                            (kLanes * i + lane);
        }
        sort(slots);
        const uint32_t after = __shfl_down_sync(kFullWarp, slots[0], 1, kLanes);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t next =
                    i + 1 < kItems ? slots[(i + 1) % kItems] : after;
            // Of the first 32, and the one behind them.
            isAmiss |= lane < kLanes / 2 && slots[i] != kNone &&
                    slots[i] >> kSlotBits == next >> kSlotBits;
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            slots[i] = slots[i] == kNone ? kNone : slots[i] % kMost;
        }
        return !__any_sync(kFullWarp, isAmiss);
    }

   private:
    template <class T>
    __device__ __forceinline__ static void exchange(T& low, T& high) {
        const T least = min(low, high);
        high = max(low, high);
        low = least;
    }

    /// Of sizes within a lane.
    template <int kSize, class T>
    __device__ __forceinline__ static void mirrorOwn(T (&items)[kItems]) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if ((i ^ (kSize - 1)) > i) {
                exchange(items[i], items[i ^ (kSize - 1)]);
            }
        }
    }

    /// Distances from kDistance down to 1.
    template <int kDistance, class T>
    __device__ __forceinline__ static void halveOwn(T (&items)[kItems]) {
#pragma unroll
        for (int distance = kDistance; distance >= 1; distance /= 2) {
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                if ((i & distance) == 0) {
                    exchange(items[i], items[i + distance]);
                }
            }
        }
    }

    template <class T>
    __device__ __forceinline__ static T kept(T own, T other, bool isLow) {
        return isLow ? min(own, other) : max(own, other);
    }

    /// Of so many lanes.
    template <int kOfLanes, class T>
    __device__ __forceinline__ static void mirrorLanes(T (&items)[kItems]) {
        const bool isLow = (threadIdx.x & (kOfLanes / 2)) == 0;
        T others[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            others[i] = __shfl_xor_sync(
                    kFullWarp, items[kItems - 1 - i], kOfLanes - 1);
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            items[i] = kept(items[i], others[i], isLow);
        }
    }

    template <int kDistance, class T>
    __device__ __forceinline__ static void halveLanes(T (&items)[kItems]) {
#pragma unroll
        for (int distance = kDistance; distance >= 1; distance /= 2) {
            const bool isLow = (threadIdx.x & distance) == 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                items[i] =
                        kept(items[i],
                             T(__shfl_xor_sync(kFullWarp, items[i], distance)),
                             isLow);
            }
        }
    }
};

} // namespace faiss_bits
