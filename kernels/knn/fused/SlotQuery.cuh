/// Canonical distances of one query, which eight lanes hold in registers, and
/// vectors of a copy (SlotRows.h).
///
/// A conversion from float32 takes a multiprocessor's 16 units a clock, and
/// those of float64 wait beside it. So a word of the copy becomes the float64
/// that is 2^-896 times the component by moving its bits: the exponent of
/// float32 stays as it is, 896 too low, which is right for zeros and denormals
/// too. The operation that takes the component scales it back, exactly, before
/// it rounds.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

/// 2^-896 times the component of a word.
__device__ __forceinline__ double scaledComponent(uint32_t word) {
    return __hiloint2double(
            int(word & 0x8fffffffu), int((word & 0x70000000u) * 2));
}

/// Terms::add of components of which one is scaled.
template <Metric kMetric>
struct SlotTerms {
    static constexpr double kScale = 0x1p896;

    /// What add() wants of a query's component.
    __device__ __forceinline__ static double prepared(float q) {
        return kMetric == Metric::L2              ? -double(q)
                : kMetric == Metric::InnerProduct ? kScale * double(q)
                                                  : double(q);
    }

    __device__ __forceinline__ static void add(
            double* sums,
            double scaled,
            double q,
            const canonical::Power& power) {
        if constexpr (kMetric == Metric::L2) {
            const double t = __fma_rn(scaled, kScale, q);
            sums[0] = canonical::add(sums[0], canonical::mul(t, t));
        } else if constexpr (kMetric == Metric::InnerProduct) {
            sums[0] = __fma_rn(scaled, q, sums[0]);
        } else {
            canonical::Terms<kMetric>::add(
                    sums, canonical::mul(scaled, kScale), q, power);
        }
    }
};

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
            query_[i] = SlotTerms<kMetric>::prepared(c < d ? query[c] : 0.0f);
        }
    }

    /// Those of kPairs vectors at a time, which have finite components alone;
    /// the lanes of a group get them. rows[p] is the first pack of this lane.
    template <int kPairs>
    __device__ __forceinline__ void distances(
            const uint4* const (&rows)[kPairs],
            const canonical::Power& power,
            double (&result)[kPairs]) const {
        uint4 packs[kPairs][kSteps];
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
                    const uint4& pack = packs[p][s];
                    const uint32_t word = i == 0 ? pack.x
                            : i == 1             ? pack.y
                            : i == 2             ? pack.z
                                                 : pack.w;
                    SlotTerms<kMetric>::add(
                            sums[p],
                            scaledComponent(word),
                            query_[s * kPack + i],
                            power);
                }
            }
        }
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
#pragma unroll
            for (int j = 0; j < Terms::kSums; ++j) {
                // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
                for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
                    const double other =
                            __shfl_xor_sync(kFullWarp, sums[p][j], lanes);
                    sums[p][j] = Terms::join(sums[p][j], other);
                }
            }
            result[p] = Terms::finish(sums[p]);
        }
    }

   private:
    double query_[kSteps * kPack];
};

} // namespace faiss_bits
