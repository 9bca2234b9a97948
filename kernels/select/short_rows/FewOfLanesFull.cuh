/// What FewOfLanes has of a row so far, and what it does where more keys are
/// within its limit than there is room for, or NaN is among the best.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"
#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// What a row has come to: columns in its room.
struct HeldColumns {
    uint32_t count = 0;
    uint32_t limit = kNanKey; // k keys so far are not above it
    uint32_t most = kNanKey;  // later keys above it are of no more use
};

/// All lanes of the warp call everything, for a row of theirs, which has room
/// for kEach columns of each.
template <class T, int kEach>
class FewOfLanesFull {
    using Group = LaneGroup<kWarpSize>;

   public:
    /// Columns that there is room for; k and 32 more are fewer.
    static constexpr uint32_t kRoom = kEach * kWarpSize;

    __device__ __forceinline__ static const T* keysOf(
            const SelectParams& params,
            uint32_t row) {
        return static_cast<const T*>(params.keys) +
                params.rowStride * int64_t(row);
    }

    /// The greatest key of a number below one; zero is one number.
    __device__ __forceinline__ static uint32_t below(uint32_t key) {
        constexpr uint32_t kInfinity = 0xFF800000u; // its key
        return key == kNanKey ? kInfinity : key == kZeroKey ? key - 2 : key - 1;
    }

    /// Of the columns that are held, 32 at a time; kNoEntry behind them.
    template <int kOfLane>
    __device__ __forceinline__ static void load(
            uint64_t (&entries)[kOfLane],
            const T* keys,
            uint32_t signMask,
            const uint32_t* room,
            uint32_t count) {
        uint32_t columns[kOfLane];
        T loaded[kOfLane];
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const uint32_t place = i * kWarpSize + Group::lane();
            columns[i] = place < count ? room[place] : 0;
            loaded[i] = __ldg(keys + columns[i]);
        }
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const uint32_t place = i * kWarpSize + Group::lane();
            entries[i] = place < count
                    ? makeEntry(keyOf(loaded[i], signMask), columns[i])
                    : kNoEntry;
        }
    }

    /// The k best of what is held, which is k or more. Out of line, as take(),
    /// so that they cost the others no registers.
    __device__ __noinline__ static HeldColumns
    narrow(const SelectParams& params,
           uint32_t row,
           uint32_t* room,
           HeldColumns held) {
        const int k = params.k;
        uint64_t all[kEach];
        __syncwarp();
        load(all, keysOf(params, row), params.signMask, room, held.count);
        GroupSort<kWarpSize, kEach>::sortAgain(all);
        __syncwarp();
        uint32_t last = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int place = Group::lane() * kEach + i;
            if (place < k) {
                room[place] = entryColumn(all[i]);
            }
            last = place == k - 1 ? entryKey(all[i]) : last;
        }
        __syncwarp();
        last = __shfl_sync(kFullWarp, last, (k - 1) / kEach);
        held.count = uint32_t(k);
        held.limit = min(held.limit, last);
        held.most = min(held.most, below(last));
        return held;
    }

    /// What is within the limit of what is held, in any order.
    __device__ __noinline__ static HeldColumns keepWithin(
            const SelectParams& params,
            uint32_t row,
            uint32_t* room,
            HeldColumns held) {
        uint64_t all[kEach];
        load(all, keysOf(params, row), params.signMask, room, held.count);
        __syncwarp();
        uint32_t kept = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const bool stays =
                    all[i] != kNoEntry && entryKey(all[i]) <= held.limit;
            const uint32_t lanes = __ballot_sync(kFullWarp, stays);
            if (stays) {
                const uint32_t before = lanes & ((1u << Group::lane()) - 1);
                room[kept + __popc(before)] = entryColumn(all[i]);
            }
            kept += __popc(lanes);
        }
        __syncwarp();
        held.count = kept;
        return held;
    }

    /// Takes columns from `begin` to `end` in their order, so that equal keys
    /// fall to the lower one.
    __device__ __noinline__ static HeldColumns
    take(const SelectParams& params,
         uint32_t row,
         uint32_t* room,
         HeldColumns held,
         uint32_t begin,
         uint32_t end) {
        const T* keys = keysOf(params, row);
        for (uint32_t first = begin; first < end; first += kWarpSize) {
            const uint32_t column = first + Group::lane();
            const bool isThere = column < end;
            const uint32_t key = isThere
                    ? keyOf(__ldg(keys + column), params.signMask)
                    : kNanKey;
            uint32_t all =
                    __ballot_sync(kFullWarp, isThere && key <= held.most);
            if (held.count + __popc(all) > kRoom) {
                held = narrow(params, row, room, held);
                all = __ballot_sync(kFullWarp, isThere && key <= held.most);
            }
            if ((all >> Group::lane() & 1) != 0) {
                const uint32_t before = all & ((1u << Group::lane()) - 1);
                room[held.count + __popc(before)] = column;
            }
            held.count += __popc(all);
        }
        __syncwarp();
        return held;
    }

   private:
    __device__ __forceinline__ static uint32_t keyOf(T key, uint32_t signMask) {
        const uint32_t bits = __float_as_uint(toFloat(key));
        return orderedKey(__uint_as_float(bits ^ signMask));
    }
};

} // namespace faiss_bits
