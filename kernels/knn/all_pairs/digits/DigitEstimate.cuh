/// What sums of products of digits say of a canonical distance.
#pragma once

#include "kernels/knn/all_pairs/digits/DigitImage.h"
#include "kernels/knn/certified/PairEstimate.cuh"

namespace faiss_bits {

/// Sums of products of digits i and j with i + j = 0 to 4 as one number, 2^24
/// units of the last digit's product each: exact but for half of a one where
/// the last sum is no multiple of 2^8. Up to 2048 components, so that it has 51
/// bits.
__device__ __forceinline__ double digitSum(
        int32_t s0,
        int32_t s1,
        int32_t s2,
        int32_t s3,
        int32_t s4) {
    // The bits of 1.5 2^52, whose last one is 1, and an integer added to them.
    constexpr int64_t kWhole = 0x4338000000000000;
    const int64_t sum = kWhole + int64_t(s0) * (1 << 24) +
            int64_t(s1) * (1 << 16) + int64_t(s2) * (1 << 8) +
            (int64_t(s3) + ((s4 + 128) >> 8));
    return __longlong_as_double(sum) - 0x1.8p52;
}

/// As PairEstimate of L2, of a sum that is off by what the digits of q and x
/// lack and by the products that are left out; docs/bounds.md derives it.
struct DigitEstimate {
    double least;
    double most;
    bool isExact = false; // the canonical distance is `least`, NaN too

    using Row = EstimateRow<Metric::L2>;

    __device__ __forceinline__ DigitEstimate(
            double sum,
            const DigitRow& q,
            const Row& qRow,
            const DigitRow& x,
            const Row& xRow) {
        const double product = sum * (q.scale * x.scale);
        // Of parts i and j with i + j > 4 the products are left out.
        float lost = __fmul_ru(q.parts[0], x.parts[3]);
        lost = __fmaf_ru(q.parts[3], x.parts[0], lost);
        lost = __fmaf_ru(q.parts[1], x.parts[2], lost);
        lost = __fmaf_ru(q.parts[2], x.parts[1], lost);
        lost = __fmaf_ru(q.length, x.rest, lost);
        const double off = __fmaf_ru(q.rest, x.length, lost);
        const double squares = qRow.scale + xRow.scale;
        least = __fma_rn(-2.0, product, squares) - 2.0 * off;
        most = __fma_rn(-2.0, product, qRow.error + xRow.error) + 2.0 * off;
        if (!isFinite(squares)) {
            // NaN, or of one infinity infinity; of two it may be NaN.
            least = squares;
            isExact =
                    isFinite(q.size) || isFinite(x.size) || squares != squares;
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
};

} // namespace faiss_bits
