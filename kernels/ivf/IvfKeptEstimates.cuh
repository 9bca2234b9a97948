/// What scans keep of estimates in float32 (IvfFloors.h).
#pragma once

#include <cfloat>

#include "kernels/ivf/IvfDirectSums.cuh"

namespace faiss_bits {

/// The key of an estimate: what is not finite may be the nearest.
__device__ __forceinline__ uint32_t ivfEstimateKey(float estimate) {
    const bool isFinite = fabsf(estimate) <= FLT_MAX;
    return orderedKey(isFinite ? estimate : -INFINITY);
}

/// As keepIvfKey(), of estimates of keys.
template <Metric kMetric>
__device__ __forceinline__ void keepIvfEstimate(
        const IvfDirectParams& params,
        uint32_t row,
        uint32_t columns,
        float estimate,
        bool isThere) {
    keepIvfKey<kMetric>(
            params, row, columns, ivfEstimateKey(estimate), isThere);
}

/// The same of a row, whose places a warp keeps.
struct IvfKeptRow {
    uint32_t* keys; // this lane's
    uint32_t* least;

    __device__ __forceinline__
    IvfKeptRow(const IvfDirectParams& params, uint32_t row) {
        const int64_t stride = params.search.stride;
        keys = params.keys + int64_t(row) * stride + threadIdx.x % kWarpSize;
        least = params.least + int64_t(row) * (stride / kListGroup);
        // Else they are made again, of constants that come in a wait.
        asm volatile("" : "+l"(keys), "+l"(least));
    }

    __device__ __forceinline__ void keep(
            uint32_t columns,
            float estimate,
            bool isThere) const {
        const uint32_t key = isThere ? ivfEstimateKey(estimate) : kNanKey;
        keys[uint64_t(columns) * kListGroup] = key;
        const uint32_t ofAll = __reduce_min_sync(kFullWarp, key);
        if (threadIdx.x % kWarpSize == 0) {
            least[columns] = ofAll;
        }
    }
};

} // namespace faiss_bits
