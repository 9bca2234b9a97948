/// What ScanAgain does before it computes distances: where these take long,
/// upper bounds in float32 of some vectors, whose k-th is a limit for all.
/// Included by ScanAgain.cuh.
///
/// Bound by: float32, as ScanFiltered.
#pragma once

#include "kernels/knn/certified/LeastTerms.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Chunks whose upper bounds set the limits of all, 0: none. They take less
/// than canonical distances do; the more they are, the fewer pairs pass.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::roughChunks(uint32_t used) const {
    if constexpr (kHasMostTerms<kMetric>) {
        if (areNear || (kHasLongTerms<kMetric> && mayFilter(used))) {
            const float vectors =
                    4 * sqrtf(float(params.search.n) * float(params.keep));
            return min(uint32_t(vectors) / kChunk + 1, params.order.chunks);
        }
    }
    return 0;
}

/// Entries that are upper bounds, from the blocks that cut the lists: k vectors
/// are no farther than the limit, which may be one of them, and are met again.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::forgetRough(
        uint32_t used) {
    const uint32_t first = blockIdx.x + threadIdx.x * gridDim.x;
    for (uint32_t s = first; s < used; s += kThreads * gridDim.x) {
        params.counts[s] = shared.counts[s] = 0;
        params.limits[s] += params.limits[s] != kNoEntry;
    }
}

} // namespace faiss_bits
