/// Canonical distances of one query, which eight lanes hold in registers.
#pragma once

#include "kernels/device/ReadOnce.cuh"
#include "kernels/knn/certified/JoinSlots.cuh"
#include "kernels/knn/fused/MovedFloat.cuh"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

/// A query, widened once for all vectors. Each eight lanes of a warp hold it,
/// a slot a lane; all lanes of the warp call each function.
template <Metric kMetric, int kSteps>
class SlotQuery {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kPack = 4; // components of a step and lane

   public:
    static constexpr int kRowPacks = kSteps * kPairLanes;

    __device__ __forceinline__ SlotQuery(const float* query, int d) {
        const int lane = threadIdx.x % kPairLanes;
#pragma unroll
        for (int i = 0; i < kSteps * kPack; ++i) {
            const int c = i * kPairLanes + lane;
            query_[i] = c < d ? readOnce(query + c) : 0.0f;
        }
    }

    /// Those of kPairs vectors at a time; the lanes of a group get them.
    /// rows[p] is the first pack of this lane.
    template <int kPairs>
    __device__ __forceinline__ void distances(
            const float4* const (&rows)[kPairs],
            const canonical::Power& power,
            double (&result)[kPairs]) const {
        sum<kPairs, 0>(rows, power, result);
    }

    /// The same by L2, where kMoved of each four components become float64 by
    /// moves of their bits: a multiprocessor has 16 lanes that convert, and 64
    /// that move. What moves make of an infinity or NaN is finite, and then the
    /// distance is 2^208 or more whatever the query: one that is infinite in
    /// float32 has to be computed again.
    template <int kMoved, int kPairs>
    __device__ __forceinline__ void distancesByMoves(
            const float4* const (&rows)[kPairs],
            const canonical::Power& power,
            double (&result)[kPairs]) const {
        static_assert(kMetric == Metric::L2);
        sum<kPairs, kMoved>(rows, power, result);
    }

   private:
    template <int kPairs, int kMoved>
    __device__ __forceinline__ void sum(
            const float4* const (&rows)[kPairs],
            const canonical::Power& power,
            double (&result)[kPairs]) const {
        float4 packs[kPairs][kSteps];
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                packs[p][s] = rows[p][s * kPairLanes];
            }
        }
        double sums[kPairs][Terms::kSums] = {};
#pragma unroll
        for (int s = 0; s < kSteps; ++s) {
#pragma unroll
            for (int i = 0; i < kPack; ++i) {
#pragma unroll
                for (int p = 0; p < kPairs; ++p) {
                    const float4& pack = packs[p][s];
                    const float x = i == 0 ? pack.x
                            : i == 1       ? pack.y
                            : i == 2       ? pack.z
                                           : pack.w;
                    const double q = query_[s * kPack + i];
                    if constexpr (kMetric == Metric::L2 && kMoved > 0) {
                        if (i < kMoved) {
                            // x - q, rounded once.
                            const double t = __fma_rn(
                                    movedFloat(x), 1 / kOfMovedFloat, -q);
                            sums[p][0] = __dadd_rn(sums[p][0], __dmul_rn(t, t));
                            continue;
                        }
                    }
                    Terms::add(sums[p], double(x), q, power);
                }
            }
        }
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            joinSlots<Terms>(sums[p]);
            result[p] = Terms::finish(sums[p]);
        }
    }

    double query_[kSteps * kPack];
};

} // namespace faiss_bits
