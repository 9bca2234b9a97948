/// Which columns of a tile in shared memory are whose: every lane of a row has
/// one of so many neighbours, and the lanes turn from step to step, so that keys
/// at even distances do not meet in one of them.
#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

template <int kLanes>
struct TurnedColumns {
    using Group = LaneGroup<kLanes>;
    /// Keys that a lane loads together, a step.
    static constexpr uint32_t kAhead = 4;
    static constexpr uint32_t kStep = kAhead * kLanes;
    /// By so many places the lanes turn.
    static constexpr uint32_t kTurn = 5;

    /// Bits of this lane's keys, item i of it in column columnOf(i).
    struct Bits {
        uint32_t words[2] = {};

        __device__ __forceinline__ uint32_t count() const {
            return __popc(words[0]) + __popc(words[1]);
        }
        __device__ __forceinline__ bool any() const {
            return (words[0] | words[1]) != 0;
        }
        /// Takes the first away.
        __device__ __forceinline__ uint32_t takeFirst() {
            uint32_t& word = words[0] != 0 ? words[0] : words[1];
            const uint32_t i =
                    (words[0] != 0 ? 0 : 32) + uint32_t(__ffs(word)) - 1;
            word &= word - 1;
            return i;
        }
    };

    /// Of a span.
    __device__ __forceinline__ static uint32_t columnOf(uint32_t i) {
        return i * kLanes + (Group::lane() + i / kAhead * kTurn) % kLanes;
    }

    /// Of the row, the lanes whose item i is in a lower column.
    __device__ __forceinline__ static uint32_t lanesBefore(uint32_t i) {
        const uint32_t turn = i / kAhead * kTurn % kLanes;
        const uint32_t columns =
                (1u << (Group::lane() + turn) % kLanes) - 1;
        if constexpr (kLanes == kWarpSize) {
            return __funnelshift_r(columns, columns, turn);
        }
        return (columns >> turn | columns << (kLanes - turn)) &
                ((1u << kLanes % kWarpSize) - 1);
    }

    /// Of a ballot, the row's lanes.
    __device__ __forceinline__ static uint32_t ofRow(uint32_t lanes) {
        constexpr uint32_t kAll = kFullWarp >> (32 - kLanes);
        return lanes >> threadIdx.x % kWarpSize / kLanes * kLanes & kAll;
    }

    /// The sum of the lanes before this one, and of all. Mostly small numbers.
    __device__ __forceinline__ static uint32_t sumBefore(
            uint32_t value,
            uint32_t& total) {
        uint32_t before = 0;
        if (__any_sync(kFullWarp, value > 7)) {
            before = Group::sumBefore(value);
            total = __shfl_sync(kFullWarp, before + value, kLanes - 1, kLanes);
            return before;
        }
        total = 0;
        const uint32_t lower = (1u << Group::lane()) - 1;
#pragma unroll
        for (int bit = 0; bit < 3; ++bit) {
            const uint32_t lanes = ofRow(
                    __ballot_sync(kFullWarp, (value >> bit & 1) != 0));
            before += uint32_t(__popc(lanes & lower)) << bit;
            total += uint32_t(__popc(lanes)) << bit;
        }
        return before;
    }
};

} // namespace faiss_bits
