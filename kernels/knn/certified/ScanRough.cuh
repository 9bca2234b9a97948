/// What ScanAgain does before it computes distances: where these take long,
/// upper bounds in float32 of some vectors, whose k-th is a limit for all.
/// Included by ScanAgain.cuh.
///
/// Bound by: float32, as ScanFiltered.
#pragma once

#include "kernels/knn/certified/LeastTerms.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Whether products leave many pairs in doubt, as of copies that differ in
/// their last bits: by some pairs, the same in all blocks.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::arePairsNear(
        uint32_t used) const {
    if constexpr (kMetric != Metric::L2) {
        return false;
    } else {
        constexpr uint32_t kGroups = kThreads / kPairLanes;
        constexpr uint32_t kPairs = 4 * kGroups;
        constexpr int kMany = kPairs / 12;
        const CertifiedParams& search = params.search;
        if (used <= kFewFilterQueries) {
            return false; // they are not met by products
        }
        if (used <= Tile::kQueries && params.order.chunks < gridDim.x) {
            return true; // tiles of products are too few
        }
        // The bounds are as far apart, and float32 has 24 bits.
        const float doubt =
                float(EstimateRow<kMetric>::relativeError(search.d, false)) *
                0x1p26f;
        const auto queryOf = [&](uint32_t slot) {
            return search.queries + int64_t(shared.rows[slot]) * search.d;
        };
        int found = 0;
        for (uint32_t base = 0; base < kPairs; base += kGroups) {
            const uint32_t i = base + threadIdx.x / kPairLanes;
            const uint32_t slot = i * used / kPairs;
            const float* q = queryOf(slot);
            const float* center = queryOf(slot - slot % Tile::kQueries);
            const int64_t vector =
                    min(chunkAt(i % params.order.chunks) + i % kChunk,
                        search.n - 1);
            // Distance, sizes less the center and without: some components,
            // as all blocks read the same.
            constexpr int kSome = 64;
            const int some = min(search.d, kSome);
            float sums[3] = {};
            withVectors(search.vectors, [&](const auto* data) {
                data += vector * search.vectors.rowStride;
#pragma unroll 4
                for (int c = threadIdx.x % kPairLanes; c < some;
                     c += kPairLanes) {
                    const float x =
                            toFloat(data[c * search.vectors.columnStride]);
                    const float ofX = x - center[c];
                    const float ofQ = q[c] - center[c];
                    sums[0] += (x - q[c]) * (x - q[c]);
                    sums[1] += ofX * ofX + ofQ * ofQ;
                    sums[2] += x * x + q[c] * q[c];
                }
            });
#pragma unroll
            for (float& sum : sums) {
#pragma unroll
                for (int lane = kPairLanes / 2; lane >= 1; lane /= 2) {
                    sum += __shfl_xor_sync(kFullWarp, sum, lane);
                }
            }
            const bool isInDoubt =
                    sums[0] > 0 && doubt * fminf(sums[1], sums[2]) > sums[0];
            found += __syncthreads_count(
                    isInDoubt && threadIdx.x % kPairLanes == 0);
        }
        return found > kMany;
    }
}

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
