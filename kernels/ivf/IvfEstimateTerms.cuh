/// What bounds of keys have of a vector and of a query (IvfEstimateBound.h):
/// with a product p the bound is V + Q - 2 p for L2, and Q - p + F V for minus
/// the inner product.
#pragma once

#include "kernels/ivf/IvfEstimateBound.h"

namespace faiss_bits::ivf_estimate {

/// Lower: a bound from below.
__device__ __forceinline__ float termOfSquare(
        const Factors& factors,
        float square,
        float slack,
        bool isLower) {
    slack = __fmaf_ru(factors.squares, square, slack);
    return isLower ? __fsub_rd(square, slack) : __fadd_ru(square, slack);
}

/// V: for L2 a term, else a length. greatest: square of the vectors that share
/// a scale. NaN: there is no bound.
__device__ __forceinline__ float ofVector(
        Metric metric,
        const Factors& factors,
        float square,
        float greatest,
        bool isLower) {
    if (!(square <= kGreatest)) {
        return NAN;
    }
    if (metric == Metric::L2) {
        const float slack =
                __fmaf_ru(factors.greatest, greatest, 0.5f * kLeast);
        return termOfSquare(factors, square, slack, isLower);
    }
    return __fmaf_ru(
            factors.greatest,
            __fsqrt_ru(greatest),
            __fadd_ru(__fsqrt_ru(square), factors.lost));
}

/// Of vectors whose squares are no greater than `greatest`: L2, what a bound
/// may be off by; else the greatest V.
__device__ __forceinline__ float slackOfVectors(
        Metric metric,
        const Factors& factors,
        float greatest) {
    const float slack = __fmaf_ru(factors.greatest, greatest, 0.5f * kLeast);
    return metric == Metric::L2
            ? __fmaf_ru(factors.squares, greatest, slack)
            : ofVector(metric, factors, greatest, greatest, false);
}

/// Sums of a query over its components.
struct QuerySums {
    float squares = 0;
    float center = 0;     // <c, q>
    float centerSize = 0; // sum of |c_i q_i|
};

/// Q; and F, of inner products.
__device__ __forceinline__ float ofQuery(
        Metric metric,
        const Factors& factors,
        const QuerySums& sums,
        bool isLower,
        float& factor) {
    factor = 0;
    if (!(sums.squares <= kGreatest && sums.centerSize <= kGreatest)) {
        return NAN;
    }
    if (metric == Metric::L2) {
        return termOfSquare(factors, sums.squares, 0.5f * kLeast, isLower);
    }
    const float length = __fmul_ru(
            factors.squares, __fadd_ru(__fsqrt_ru(sums.squares), factors.lost));
    const float slack = __fmaf_ru(factors.center, sums.centerSize, kLeast);
    factor = isLower ? -length : length;
    return isLower ? __fsub_rd(-sums.center, slack)
                   : __fadd_ru(-sums.center, slack);
}

/// What a bound is off by for a query, whatever the vector; infinite: there is
/// no bound.
__device__ __forceinline__ float slackOfQuery(
        Metric metric,
        const Factors& factors,
        const QuerySums& sums) {
    if (!(sums.squares <= kGreatest && sums.centerSize <= kGreatest)) {
        return INFINITY;
    }
    return metric == Metric::L2
            ? __fmaf_ru(factors.squares, sums.squares, 0.5f * kLeast)
            : __fmaf_ru(factors.center, sums.centerSize, kLeast);
}

/// The canonical key is no more than a lower bound and this
/// (IvfEstimateBound.h, Width). ofVectors, ofQuery: their slack; factor: F.
template <Metric kMetric>
__device__ __forceinline__ float widthOf(
        float ofVectors,
        float ofQuery,
        float factor) {
    return 2 *
            (kMetric == Metric::L2
                     ? __fadd_ru(ofVectors, ofQuery)
                     : __fmaf_ru(fabsf(factor), ofVectors, ofQuery));
}

/// The bound of a pair's key; inverse: of the product's scales.
template <Metric kMetric>
__device__ __forceinline__ float boundOf(
        float product,
        float ofVector,
        float inverse,
        float ofQuery,
        float factor) {
    return kMetric == Metric::L2
            ? __fmaf_rn(-2.0f * inverse, product, ofVector + ofQuery)
            : __fmaf_rn(
                      factor, ofVector, __fmaf_rn(-inverse, product, ofQuery));
}

} // namespace faiss_bits::ivf_estimate
