/// The least key of every strip, found where the products are.
#pragma once

#include "kernels/knn/fused/tensor/LimitTest.cuh"

namespace faiss_bits {

/// Has the interface of LimitTest, and its fragments. A strip is one of some
/// groups of the columns that a lane meets of a row in an item of work: one
/// operation a value.
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class StripTest : public ScanRows<kNorms, kBlocks, kRowStep> {
    using Rows = ScanRows<kNorms, kBlocks, kRowStep>;
    using Rows::factors_;
    using Rows::kInfinite;
    using Rows::vectors_;

   public:
    using Rows::kRows;
    /// Of a lane's columns; one where a lane has many rows.
    static constexpr int kGroups = kStripGroups<kBlocks>;
    static_assert(kGroups == 1 || kGroups == 4);
    static constexpr int kGroupPairs = kWidth / 8 / kGroups;
    static_assert(kGroupPairs * kGroups * 8 == kWidth);

    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        Rows::startRows(params, row);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                most_[r][g] = -kInfinite;
            }
        }
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
        const uint32_t lane = threadIdx.x % kRowLanes;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = Rows::rowOf(r);
            if (i >= params.numQueries) {
                continue;
            }
            const float unit = Rows::unitOf(r);
            float* keys = params.strips.keys +
                    size_t(i) * params.strips.perRow +
                    (part * kRowLanes + lane) * kGroups;
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
    /// NaN is passed over.
    template <bool kCut>
    __device__ __forceinline__ void take(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column) {
        const int lane = threadIdx.x % kRowLanes;
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
};

/// A scan that finds the least key of every strip.
struct FindStripKeys {
    using Buffer = PassedBuffer; // stays empty
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = StripTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits
