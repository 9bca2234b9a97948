/// Products of a query and a vector against the query's limit.
#pragma once

#include <limits>

#include "kernels/knn/fused/tensor/FragmentParts.cuh"

namespace faiss_bits {

/// The rows of a lane's fragment: their constants, and what passes.
///
/// A fragment holds kBlocks blocks of 16 rows (of a warp) with kWidth columns:
/// of lane l the rows l / 4 and l / 4 + 8 of every block, and the columns
/// 8 j + 2 (l mod 4) and the next of each j; value [block][4 j + 2 half + odd].
template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
class LimitTest : public FragmentParts<float, kBlocks, kWidth, kRowStep> {
    using Base = FragmentParts<float, kBlocks, kWidth, kRowStep>;
    using Base::appendPart;
    using Base::kGroups;
    using Base::kPairs;
    using Base::maskOf;

   public:
    using Base::kRows;

    /// row: of the fragment's first value in this lane.
    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        row_ = row;
        const float inverse = params.facts->inverse;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = row + r / 2 * kRowStep + r % 2 * 8;
            const bool present = i < params.numQueries;
            const float limit = present ? params.passed.limits[i] : 0.0f;
            // Powers of two within 2^-120 and 2^120.
            const float factor =
                    inverse * (present ? params.inverses[i] : 1.0f);
            if (kNorms == ScanNorms::None) {
                limits_[r] = -limit * (1.0f / factor);
            } else if (present) {
                limits_[r] = params.queryNorms[i] - limit;
                if (kNorms == ScanNorms::InValues) {
                    limits_[r] *= 0.5f / factor;
                }
            }
            // Infinity is for rows that take nothing; NaN stays.
            constexpr float kMost = 3.402823466e+38f;
            limits_[r] = !present        ? kTakesNothing
                    : limits_[r] > kMost ? kMost
                                         : limits_[r];
            factors_[r] = kNorms == ScanNorms::InValues
                    ? coefficient(params, factor, present, limits_[r])
                    : 2.0f * factor;
        }
    }

    /// The queries' side of the norm step: minus half of the norm in the units
    /// of the products.
    __device__ __forceinline__ uint32_t normFactors(int r) const {
        return normStepOf(factors_[r]);
    }

    /// Tests a fragment and appends what passed. A row whose list is found to
    /// be full, as are thousands where all vectors are alike, takes nothing
    /// from then on: it is searched again all the same.
    ///
    /// norms    of the fragment's columns, shared: to be added
    /// column   of the fragment's first value in lane 0
    template <class Buffer>
    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column,
            Buffer& buffer) {
        bool hit[kGroups];
        bool any = false;
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            hit[g] = false;
#pragma unroll
            for (int j = g * kPairs; j < (g + 1) * kPairs; ++j) {
                const float2 norm = normsOf(norms, j);
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    const float* v = &values[r / 2][4 * j + 2 * (r % 2)];
                    hit[g] = hit[g] | passes(v[0], norm.x, r);
                    hit[g] = hit[g] | passes(v[1], norm.y, r);
                }
            }
            any = any | hit[g];
        }
        // Rare, so tested again to find out which, a part at a time.
        if (!__any_sync(kFullWarp, any)) {
            return;
        }
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            if (!__any_sync(kFullWarp, hit[g])) {
                continue;
            }
            uint32_t mask = maskOf(
                    values,
                    g,
                    [&](int j) { return normsOf(norms, j); },
                    [&](float value, float norm, int r) {
                        return passes(value, norm, r);
                    });
            // NaN passes all the same.
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                constexpr uint32_t kOfRow = (2u << (2 * kPairs - 1)) - 1;
                mask &= limits_[r] == kTakesNothing
                        ? ~(kOfRow << r * 2 * kPairs)
                        : ~0u;
            }
            appendPart(
                    buffer,
                    g,
                    mask,
                    row_,
                    column,
                    limits_,
                    kTakesNothing,
                    [&](uint32_t bit) {
                        return Base::valueOf(values, g, bit);
                    });
        }
    }

    /// At the end of an item: nothing is left to write.
    __device__ __forceinline__ void finish(const TensorScanParams&, uint32_t) {}

   protected:
    static constexpr float kTakesNothing =
            std::numeric_limits<float>::infinity();

    /// Exact, as image and norm scales suit each other; where they do not,
    /// nothing is decided: the limit becomes NaN, and all passes.
    static __device__ __forceinline__ float coefficient(
            const TensorScanParams& params,
            float factor,
            bool present,
            float& limit) {
        const float out = present
                ? 0.5f * params.facts->normInverse * (1.0f / factor)
                : 0.0f;
        if (present && !isNormFactor(out)) {
            limit = __int_as_float(0x7fc00000);
        }
        return -out;
    }

    static __device__ __forceinline__ float2
    normsOf(const float* norms, int j) {
        if (kNorms != ScanNorms::ToBeAdded) {
            return {};
        }
        return *reinterpret_cast<const float2*>(
                norms + 8 * j + 2 * (threadIdx.x % 4));
    }

    /// One or two instructions a value. NaN passes.
    __device__ __forceinline__ bool passes(float value, float norm, int r)
            const {
        if (kNorms == ScanNorms::ToBeAdded) {
            return !(fmaf(factors_[r], value, -norm) < limits_[r]);
        }
        return !(value < limits_[r]);
    }

    float limits_[kRows];
    float factors_[kRows];
    uint32_t row_;
};

/// A scan that appends what passes to lists.
struct FindPassing {
    using Buffer = PassedBuffer;
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = LimitTest<kNorms, kBlocks, kWidth, kRowStep>;
};

} // namespace faiss_bits
