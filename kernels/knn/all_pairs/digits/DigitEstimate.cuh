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

/// A pair's canonical distance, before it is rounded to float32, is within
/// `error` of `value`: that of a sum that is off by what the digits of q and x
/// lack and by the products that are left out, of parts i and j with i + j >=
/// kLevels. docs/bounds.md derives it.
template <Metric kMetric, int kLevels>
struct DigitEstimate {
    static_assert(kLevels == 5 || kLevels == 6);

    double value;
    float error; // infinity or NaN where a row is not finite

    /// relative: EstimateRow::relativeError(), or more.
    __device__ __forceinline__ DigitEstimate(
            double sum,
            const DigitRow& q,
            const DigitRow& x,
            float relative) {
        const double product = sum * (q.scale * x.scale);
        error = lostOf(q, x);
        if constexpr (kMetric == Metric::L2) {
            value = __fma_rn(-2.0, product, q.size + x.size);
            error = __fmaf_ru(
                    relative,
                    __fmaf_ru(
                            q.length, q.length, __fmul_ru(x.length, x.length)),
                    2.0f * error);
        } else if constexpr (kMetric == Metric::InnerProduct) {
            value = product;
            error = hasExactSums(q, x)
                    ? 0.0f
                    : __fmaf_ru(__fmul_ru(relative, q.length), x.length, error);
        } else {
            const double inverse = q.size * x.size; // of the lengths
            value = product * inverse;
            const bool isExact = product == 0 && hasExactSums(q, x);
            // Of zeros the distance is 0. A row that is not finite has that
            // inverse too, and an error that is not.
            error = isExact ? 0.0f
                            : __fmaf_ru(
                                      error,
                                      __double2float_ru(inverse),
                                      inverse == 0 ? 0.0f : relative);
        }
    }

    /// Where all that is within the error rounds alike.
    __device__ __forceinline__ bool isSure() const {
        // From the last bits of `value` that float32 has not, how far the next
        // number is that lies between two of float32: in units of 2^-46 of its
        // power of two, and one less, as bits are cut off. Above a power of two
        // numbers below it are half as far apart.
        constexpr int kCut = 6;
        constexpr float kMiddle = 0x1p22f;
        constexpr float kMost = kMiddle / 2;
        const uint32_t bits =
                uint32_t(__double2loint(value)) << 3 >> (3 + kCut);
        const float place = __uint_as_float(bits | 0x4b000000) - 0x1p23f;
        const float far = fminf(fabsf(place - kMiddle) - 1.0f, kMost);
        const int exponent = __double2hiint(value) >> 20 & 0x7ff;
        const float unit = __int_as_float(
                max(exponent - (1023 + 52 - kCut - 127), 0) << 23);
        return far * unit > error || error == 0;
    }

    /// Whether the distance is known by that a row is not finite. NaN, or of
    /// one infinity infinity, by L2; of two it may be NaN.
    __device__ __forceinline__ static bool isKnown(
            const DigitRow& q,
            const DigitRow& x,
            float& known) {
        if constexpr (kMetric == Metric::L2) {
            const double squares = q.size + x.size;
            known = float(squares);
            return !isFinite(squares) &&
                    (isFinite(q.size) || isFinite(x.size) ||
                     squares != squares);
        }
        known = NAN;
        return kMetric == Metric::Cosine && !(q.rest + x.rest < INFINITY);
    }

   private:
    __device__ __forceinline__ static bool isFinite(double value) {
        return PairEstimate<Metric::L2, true>::isFinite(value);
    }

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
