/// What scans keep of estimates in float32 (IvfFloors.h).
#pragma once

#include <cfloat>

#include "kernels/ivf/IvfDirectSums.cuh"

namespace faiss_bits {

/// As keepIvfKey(), of estimates of keys: what is not finite may be the
/// nearest.
template <Metric kMetric>
__device__ __forceinline__ void keepIvfEstimate(
        const IvfDirectParams& params,
        uint32_t row,
        uint32_t columns,
        float estimate,
        bool isThere) {
    const bool isFinite = fabsf(estimate) <= FLT_MAX;
    keepIvfKey<kMetric>(
            params,
            row,
            columns,
            orderedKey(isFinite ? estimate : -INFINITY),
            isThere);
}

} // namespace faiss_bits
