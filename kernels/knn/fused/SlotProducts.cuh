/// Canonical distances by L2 from sums of products, of one query that eight
/// lanes hold in registers: a third of the float64 operations of squares of
/// differences, and what is in doubt is told.
#pragma once

#include "kernels/device/ReadOnce.cuh"
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/fused/MovedFloat.cuh"
#include "kernels/knn/fused/SlotRows.h"

namespace faiss_bits {

/// All lanes of the warp call each function; each eight have a query of their
/// own, a slot of its components a lane.
///
/// kMoved of each four components become float64 by moves of their bits
/// (MovedFloat.cuh). The query's are multiplied by 2^896, so the product is the
/// same. What moves make of an infinity or NaN is finite, but then the square
/// of the vector's norm is not, and tells.
template <int kSteps, int kMoved>
class SlotProducts {
    static constexpr int kPack = 4; // components of a step and lane
    using Estimate = PairEstimate<Metric::L2, false>;
    using Row = Estimate::Row;

   public:
    static constexpr int kPairs = kPairLanes / 2; // of a row, together
    static constexpr int kRowPacks = kSteps * kPairLanes;

    __device__ __forceinline__ SlotProducts(const float* query, int d)
            : relative_(Row::relativeError(d, false)),
              zero_(uint32_t(d) / (kSteps * kSlotStep + 1)) {
        const int lane = threadIdx.x % kPairLanes;
        float components[kSteps * kPack];
#pragma unroll
        for (int i = 0; i < kSteps * kPack; ++i) {
            const int c = i * kPairLanes + lane;
            components[i] = c < d ? readOnce(query + c) : 0.0f;
        }
        double square = 0;
#pragma unroll
        for (int i = 0; i < kSteps * kPack; ++i) {
            query_[i] = components[i];
            square = __fma_rn(query_[i], query_[i], square);
            // Below 2^1024, as components are below 2^128.
            query_[i] *= i % kPack < kMoved ? 1 / kOfMovedFloat : 1.0;
        }
#pragma unroll
        for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
            square += __shfl_xor_sync(kFullWarp, square, lanes);
        }
        square_ = square;
    }

    /// The square of the query's norm, nearly.
    __device__ __forceinline__ double square() const {
        return square_;
    }

    /// Of vectors that lanes first .. first + kPairs - 1 of the eight have in
    /// `its`: rows is the first pack of this lane of vector 0. The sum of
    /// products of vector first + lane % kPairs, over the four lanes that have
    /// no other bit 4.
    __device__ __forceinline__ double products(
            const float4* rows,
            uint32_t its,
            int first) const {
        float4 packs[kPairs][kSteps];
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            const float4* const row = rows +
                    __shfl_sync(kFullWarp, its, first + p, kPairLanes) *
                            size_t(kRowPacks);
#pragma unroll
            for (int s = 0; s < kSteps; ++s) {
                packs[p][s] = row[s * kPairLanes];
            }
        }
        uint32_t last = 0;
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            last |= __float_as_uint(packs[p][kSteps - 1].w);
        }
        double sums[kPairs];
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            sums[p] = __hiloint2double(0, int(last & zero_));
        }
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
                    sums[p] = __fma_rn(
                            i < kMoved ? movedFloat(x) : double(x),
                            query_[s * kPack + i],
                            sums[p]);
                }
            }
        }
        // Each exchange halves the sums that a lane has.
        const uint32_t lane = threadIdx.x;
        return exchanged(
                exchanged(sums[0], sums[1], lane & 1, 1),
                exchanged(sums[2], sums[3], lane & 1, 1),
                lane & 2,
                2);
    }

    /// What is known of the distance of the lane's vector, from the products of
    /// both fours, and the square of its norm.
    __device__ __forceinline__ Estimate
    estimate(double low, double high, double square) const {
        return {exchanged(low, high, threadIdx.x & 4, 4),
                Row(square_, relative_),
                Row(square, relative_)};
    }

   private:
    /// Of two sums the one that is this lane's, with the other lane's part.
    __device__ __forceinline__ static double exchanged(
            double even,
            double odd,
            bool isOdd,
            int lanes) {
        const double own = isOdd ? odd : even;
        const double other = isOdd ? even : odd;
        return own + __shfl_xor_sync(kFullWarp, other, lanes);
    }

    double query_[kSteps * kPack];
    double square_;
    double relative_;
    /// 0, which the compiler does not know: sums that begin with some of the
    /// last loads begin after all pairs' loads. Else it loads pair by pair, and
    /// each pair's sum is a chain of latencies of its own.
    uint32_t zero_;
};

} // namespace faiss_bits
