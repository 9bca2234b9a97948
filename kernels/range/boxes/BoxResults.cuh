/// What kernels that write results share.
#pragma once

#include "kernels/range/boxes/BoxScan.cuh"

namespace faiss_bits {

/// Place `at` of the part.
__device__ __forceinline__ void storeResult(
        const BoxSearch& s,
        int64_t at,
        uint32_t chunk,
        uint32_t id,
        float distance) {
    s.distances[at] = distance;
    s.ids[at] = idx_t(chunk) * s.boxes.chunkIds + id;
}

/// The sum of a warp's values up to the lane's own.
__device__ __forceinline__ uint32_t lanesSum(uint32_t value) {
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t before = __shfl_up_sync(kAllLanes, value, step);
        value += lane >= step ? before : 0;
    }
    return value;
}

/// Without it.
__device__ __forceinline__ uint32_t lanesSumBefore(uint32_t value) {
    return lanesSum(value) - value;
}

} // namespace faiss_bits
