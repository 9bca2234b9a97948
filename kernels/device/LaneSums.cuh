/// Sums over the lanes of a warp that come before one.
#pragma once

#include "kernels/device/Bitonic.cuh"

namespace faiss_bits {

/// The sum of the values of the lanes up to this one, of its group of kWidth
/// neighbours. All lanes of the warp call it; threads count in x.
template <int kWidth = kWarpSize>
__device__ __forceinline__ uint32_t sumUpToLane(uint32_t value) {
    const int lane = threadIdx.x % kWidth;
#pragma unroll
    for (int distance = 1; distance < kWidth; distance *= 2) {
        const uint32_t before =
                __shfl_up_sync(kFullWarp, value, distance, kWidth);
        value += lane >= distance ? before : 0;
    }
    return value;
}

} // namespace faiss_bits
