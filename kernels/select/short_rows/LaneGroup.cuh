#pragma once

#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

/// kLanes lanes side by side: sums, least and greatest, in each of them. All
/// lanes of the warp call it.
template <int kLanes>
struct LaneGroup {
    __device__ static int lane() {
        return threadIdx.x % kLanes;
    }

    template <class Value, class Join>
    __device__ __forceinline__ static Value join(Value value, Join join) {
#pragma unroll
        for (int distance = kLanes / 2; distance >= 1; distance /= 2) {
            value = join(value, __shfl_xor_sync(kFullWarp, value, distance));
        }
        return value;
    }

    __device__ __forceinline__ static uint32_t sum(uint32_t value) {
        if constexpr (kLanes == kWarpSize) {
            return __reduce_add_sync(kFullWarp, value);
        }
        return join(value, [](uint32_t a, uint32_t b) { return a + b; });
    }
    __device__ __forceinline__ static uint32_t least(uint32_t value) {
        if constexpr (kLanes == kWarpSize) {
            return __reduce_min_sync(kFullWarp, value);
        }
        return join(value, [](uint32_t a, uint32_t b) { return min(a, b); });
    }
    __device__ __forceinline__ static uint32_t greatest(uint32_t value) {
        if constexpr (kLanes == kWarpSize) {
            return __reduce_max_sync(kFullWarp, value);
        }
        return join(value, [](uint32_t a, uint32_t b) { return max(a, b); });
    }

    /// Of the lanes before this one.
    __device__ __forceinline__ static uint32_t sumBefore(uint32_t value) {
        uint32_t sum = value;
#pragma unroll
        for (int distance = 1; distance < kLanes; distance *= 2) {
            const uint32_t other =
                    __shfl_up_sync(kFullWarp, sum, distance, kLanes);
            sum += lane() >= distance ? other : 0;
        }
        return sum - value;
    }
};

} // namespace faiss_bits
