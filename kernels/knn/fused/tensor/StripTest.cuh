/// The least key of every strip, found where the products are.
#pragma once

#include <cuda_fp16.h>

#include "kernels/knn/fused/tensor/PassTest.cuh"

namespace faiss_bits {

/// Has the interface of PassTest, and its fragments. A strip is one of some
/// groups of the columns that a lane meets of a row in an item of work: one
/// operation a value.
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class StripTest {
   public:
    static constexpr int kRows = 2 * kBlocks;
    static constexpr int kLanes = 4; // that share a row
    /// Of a lane's columns; one where a lane has many rows.
    static constexpr int kGroups = kStripGroups<kBlocks>;
    static_assert(kGroups == 1 || kGroups == 4);
    static constexpr int kGroupPairs = kWidth / 8 / kGroups;
    static_assert(kGroupPairs * kGroups * 8 == kWidth);

    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        row_ = row;
        vectors_ = params.numVectors;
        const float inverse = params.facts->inverse;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = rowOf(r);
            factors_[r] = inverse *
                    (i < params.numQueries ? params.inverses[i] : 1.0f);
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                most_[r][g] = -kInfinite;
            }
        }
        facts_ = params.facts;
    }

    /// As PassTest::normFactors.
    __device__ __forceinline__ uint32_t normFactors(int r) const {
        const int lane = threadIdx.x % kLanes;
        const float factor = 0.5f * facts_->normInverse * (1.0f / factors_[r]);
        const uint32_t one = __half_as_ushort(__float2half_rn(-factor));
        return lane == 0 ? one << 16 | one : lane == 1 ? one : 0;
    }

    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column,
            PassedBuffer&) {
        if (column + kWidth > vectors_) {
            take<true>(values, norms, column);
        } else {
            take<false>(values, norms, column);
        }
    }

    /// Writes the item's strips. part: of the row's, in those of four lanes.
    __device__ __forceinline__ void finish(
            const TensorScanParams& params,
            uint32_t part) const {
        const uint32_t lane = threadIdx.x % kLanes;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = rowOf(r);
            if (i >= params.numQueries) {
                continue;
            }
            // Powers of two.
            const float unit = kNorms == ScanNorms::ToBeAdded ? 1.0f
                    : kNorms == ScanNorms::InValues ? 2.0f * factors_[r]
                                                    : factors_[r];
            float* keys = params.strips.keys +
                    size_t(i) * params.strips.perRow +
                    (part * kLanes + lane) * kGroups;
            if constexpr (kGroups == 4) {
                *reinterpret_cast<float4*>(keys) = {
                        -most_[r][0] * unit,
                        -most_[r][1] * unit,
                        -most_[r][2] * unit,
                        -most_[r][3] * unit};
            } else {
                keys[0] = -most_[r][0] * unit;
            }
        }
    }

   private:
    static constexpr float kInfinite = __builtin_huge_valf();

    __device__ __forceinline__ uint32_t rowOf(int r) const {
        return row_ + r / 2 * kRowStep + r % 2 * 8;
    }

    /// NaN is passed over.
    template <bool kCut>
    __device__ __forceinline__ void take(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column) {
        const int lane = threadIdx.x % kLanes;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int j = 0; j < kWidth / 8; ++j) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int at = 8 * j + 2 * lane + i;
                    float v = values[r / 2][4 * j + 2 * (r % 2) + i];
                    if (kNorms == ScanNorms::ToBeAdded) {
                        v = fmaf(2.0f * factors_[r], v, -norms[at]);
                    }
                    if (kCut && column + at >= vectors_) {
                        v = -kInfinite;
                    }
                    float& most = most_[r][j / kGroupPairs];
                    most = fmaxf(most, v);
                }
            }
        }
    }

    float most_[kRows][kGroups];
    float factors_[kRows];
    uint32_t row_;
    uint32_t vectors_;
    const TensorImageFacts* facts_;
};

/// A scan that finds the least key of every strip.
struct FindStripKeys {
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = StripTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits
