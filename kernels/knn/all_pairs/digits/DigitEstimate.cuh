/// What sums of products of digits say of a canonical distance.
#pragma once

#include "kernels/knn/all_pairs/digits/DigitImage.h"
#include "kernels/knn/certified/PairEstimate.cuh"

namespace faiss_bits {

/// Sums of products of digits i and j with i + j = 0 to 4 as one number, whose
/// unit is that of i + j = 4. Up to 2048 components, so that it has 58 bits; it
/// is rounded if it has more than 53.
__device__ __forceinline__ double digitSum(
        int32_t s0,
        int32_t s1,
        int32_t s2,
        int32_t s3,
        int32_t s4) {
    return double(
            int64_t(s0) * (int64_t(1) << 32) + int64_t(s1) * (1 << 24) +
            int64_t(s2) * (1 << 16) + int64_t(s3) * (1 << 8) + s4);
}

/// As PairEstimate, of a sum that is off by what the digits of q and x lack and
/// by the products that are left out: of parts i and j with i + j >= kLevels.
/// docs/bounds.md derives it.
template <Metric kMetric, int kLevels>
struct DigitEstimate {
    static_assert(kLevels == 5 || kLevels == 6);

    double least;
    double most;
    bool isExact = false; // the canonical distance is `least`, NaN too

    using Row = EstimateRow<kMetric>;

    __device__ __forceinline__ DigitEstimate(
            double sum,
            const DigitRow& q,
            const Row& qRow,
            const DigitRow& x,
            const Row& xRow) {
        const double product = sum * (q.scale * x.scale);
        const double off = lostOf(q, x);
        if constexpr (kMetric == Metric::L2) {
            const double squares = qRow.scale + xRow.scale;
            least = __fma_rn(-2.0, product, squares) - 2.0 * off;
            most = __fma_rn(-2.0, product, qRow.error + xRow.error) + 2.0 * off;
            if (!isFinite(squares)) {
                // NaN, or of one infinity infinity; of two it may be NaN.
                least = squares;
                isExact = isFinite(q.size) || isFinite(x.size) ||
                        squares != squares;
            }
        } else if constexpr (kMetric == Metric::InnerProduct) {
            const double error = hasExactSums(q, x)
                    ? 0.0
                    : __fma_rn(qRow.error, xRow.scale, off);
            least = product - error;
            most = product + error;
        } else {
            const double value = qRow.scale * xRow.scale;
            const double rounded = product == 0 && hasExactSums(q, x)
                    ? 0.0
                    : fmin(qRow.error, xRow.error);
            const double error = __fma_rn(off, value, rounded);
            least = __fma_rn(product, value, -error);
            most = __fma_rn(product, value, error);
            if (!isFinite(q.rest) || !isFinite(x.rest)) { // so is a row
                least = double(NAN);
                isExact = true;
            }
        }
    }

    /// Where both bounds round alike, so does what is between them.
    __device__ __forceinline__ bool isSure() const {
        return isExact ||
                (canonical::toFloat32(least) == canonical::toFloat32(most) &&
                 isFinite(least));
    }

    __device__ __forceinline__ static bool isFinite(double value) {
        return PairEstimate<Metric::L2, true>::isFinite(value);
    }

   private:
    /// Whether float64 has room for all sums of products, in whatever order,
    /// and nothing is lost.
    __device__ __forceinline__ static bool hasExactSums(
            const DigitRow& q,
            const DigitRow& x) {
        return __fmul_ru(q.ones, x.ones) <= 0x1p53f;
    }

    /// What the sum is off by, at most. Infinity or NaN where a row is not
    /// finite.
    __device__ __forceinline__ static float lostOf(
            const DigitRow& q,
            const DigitRow& x) {
        // The products that are left out.
        float lost;
        if constexpr (kLevels == 5) {
            lost = __fmul_ru(q.parts[0], x.parts[3]);
            lost = __fmaf_ru(q.parts[3], x.parts[0], lost);
            lost = __fmaf_ru(q.parts[1], x.parts[2], lost);
            lost = __fmaf_ru(q.parts[2], x.parts[1], lost);
        } else {
            lost = __fmul_ru(q.parts[1], x.parts[3]);
            lost = __fmaf_ru(q.parts[3], x.parts[1], lost);
            lost = __fmaf_ru(q.parts[2], x.parts[2], lost);
        }
        lost = __fmaf_ru(q.length, x.rest, lost);
        return __fmaf_ru(q.rest, x.length, lost);
    }
};

} // namespace faiss_bits
