/// The rows of a lane's fragment of products, for tests of them.
#pragma once

#include <cuda_fp16.h>

#include "kernels/knn/fused/tensor/TensorScanParams.h"

namespace faiss_bits {

/// Where the norms of vectors are, for L2.
enum class ScanNorms {
    None,     ///< no L2
    InValues, ///< a value is scale (<x, q> - |x|^2 / 2)
    ToBeAdded ///< a value is scale <x, q>
};

/// Lanes that share a row of a fragment (LimitTest).
constexpr int kRowLanes = 4;

/// The queries' side of the norm step (TensorImage::normSteps), of components 0
/// to 2, which the first two of the lanes hold.
__device__ __forceinline__ uint32_t normStepOf(float factor) {
    const int lane = threadIdx.x % kRowLanes;
    const uint32_t one = __half_as_ushort(__float2half_rn(factor));
    return lane == 0 ? one << 16 | one : lane == 1 ? one : 0;
}

/// Whether a half holds the factor of a norm step, or its negative, exactly.
/// Factors are powers of two.
__device__ __forceinline__ bool isNormFactor(float factor) {
    return factor >= 0x1p-24f && factor <= 0x1p15f;
}

/// What tests without limits, of strips, know of their rows.
template <ScanNorms kNorms, int kBlocks, int kRowStep>
class ScanRows {
   public:
    static constexpr int kRows = 2 * kBlocks;

    /// As LimitTest::normFactors.
    __device__ __forceinline__ uint32_t normFactors(int r) const {
        return normStepOf(-normFactor(r));
    }

   protected:
    static constexpr float kInfinite = __builtin_huge_valf();

    /// row: of the fragment's first value in this lane.
    __device__ __forceinline__ void startRows(
            const TensorScanParams& params,
            uint32_t row) {
        row_ = row;
        vectors_ = params.numVectors;
        facts_ = params.facts;
        const float inverse = params.facts->inverse;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = rowOf(r);
            factors_[r] = inverse *
                    (i < params.numQueries ? params.inverses[i] : 1.0f);
        }
    }

    __device__ __forceinline__ uint32_t rowOf(int r) const {
        return row_ + r / 2 * kRowStep + r % 2 * 8;
    }

    /// Half of a norm in the units of the products.
    __device__ __forceinline__ float normFactor(int r) const {
        return 0.5f * facts_->normInverse * (1.0f / factors_[r]);
    }

    /// What a value of the row counts, a power of two: -key / unit, for L2 and
    /// cosine less the query's norm.
    __device__ __forceinline__ float unitOf(int r) const {
        return kNorms == ScanNorms::ToBeAdded   ? 1.0f
                : kNorms == ScanNorms::InValues ? 2.0f * factors_[r]
                                                : factors_[r];
    }

    float factors_[kRows]; // powers of two
    uint32_t row_;
    uint32_t vectors_;
    const TensorImageFacts* facts_;
};

} // namespace faiss_bits
