/// What sums of products in float64 say of a canonical distance.
#pragma once

#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// What a row, x or q, brings to the bounds of its pairs.
template <Metric kMetric>
struct EstimateRow {
    // L2: the square of the norm, at least and at most. Else what the product
    // is multiplied by, of which the norm is a part, and its error.
    double scale;
    double error;

    /// What is kept of a row, from the square of its norm: the square, the
    /// norm, or for cosine what makes the norm 1; 0 of zeros, whose distance is
    /// 0.
    __device__ __forceinline__ static double sizeOf(double square) {
        return kMetric == Metric::L2              ? square
                : kMetric == Metric::InnerProduct ? sqrt(square)
                : square == 0                     ? 0.0
                                                  : 1 / sqrt(square);
    }

    /// From that, and what relativeError() is.
    __device__ __forceinline__ EstimateRow(double size, double relative) {
        if constexpr (kMetric == Metric::L2) {
            scale = size * (1 - relative); // infinity stays
            error = size * (1 + relative);
        } else {
            scale = size;
            error = kMetric == Metric::InnerProduct ? relative * size
                    : size == 0                     ? 0.0
                                                    : relative;
        }
    }

    /// Where x and q are integers and their norms' squares below this, no sum
    /// of L2 or products is rounded.
    static constexpr double kExactSquares = 0x1p50;

    /// For sums of d products d + d / 8 and some would do, for cosine and
    /// squares of differences less than twice that.
    __device__ __forceinline__ static double relativeError(
            int d,
            bool isExact) {
        return isExact && kMetric != Metric::Cosine ? 0.0
                                                    : (2.5 * d + 40) * 0x1p-53;
    }
};

/// A pair's canonical distance, before it is rounded to float32, lies between
/// two bounds that the sum of x q, in whatever order, and the norms of x and q
/// tell; x and q are less a center in L2. docs/bounds.md derives them.
///
/// AllFinite: neither x nor q has an infinity or NaN, and less is to be done.
/// ZerosAreExact: a product of 0 is so in whatever order it is summed. Of
/// sparse rows most are, and 0 between two bounds would be in doubt.
template <Metric kMetric, bool AllFinite, bool ZerosAreExact = false>
struct PairEstimate {
    static_assert(isOfProducts(kMetric));

    double least;
    double most;
    bool isExact = false; // the canonical distance is `least`, NaN too

    using Row = EstimateRow<kMetric>;

    __device__ __forceinline__
    PairEstimate(double product, const Row& q, const Row& x) {
        if constexpr (kMetric == Metric::L2) {
            const double squares = q.scale + x.scale;
            least = __fma_rn(-2.0, product, squares);
            most = __fma_rn(-2.0, product, q.error + x.error);
            if (!AllFinite && !isFinite(squares)) {
                // NaN, or of one infinity infinity; of two it may be NaN.
                least = squares;
                most = squares;
                isExact = isFinite(q.scale) || isFinite(x.scale) ||
                        squares != squares;
            }
        } else {
            const bool isCosine = kMetric == Metric::Cosine;
            const double value = isCosine ? q.scale * x.scale : 1.0;
            double error =
                    isCosine ? fmin(q.error, x.error) : q.error * x.scale;
            if (ZerosAreExact) {
                error = product == 0 ? 0.0 : error;
            }
            least = isCosine ? __fma_rn(product, value, -error)
                             : product - error;
            most = isCosine ? __fma_rn(product, value, error) : product + error;
            if (!AllFinite && !isFinite(product)) {
                // In whatever order, infinities make the same sum.
                least = isCosine ? double(NAN) : product;
                most = least;
                isExact = true;
            }
        }
    }

    /// What the key of a pair is no less than before it is rounded, or NaN, by
    /// fewer operations than the bounds.
    __device__ __forceinline__ static double leastKeyOf(
            double product,
            const Row& q,
            const Row& x) {
        if constexpr (kMetric == Metric::L2) {
            const double squares = q.scale + x.scale;
            const double key = __fma_rn(-2.0, product, squares);
            return AllFinite || isFinite(squares) ? key : squares;
        } else {
            // Of infinities it may be NaN, or minus infinity.
            return kMetric == Metric::Cosine ? -__fma_rn(
                                                       product,
                                                       q.scale * x.scale,
                                                       fmin(q.error, x.error))
                                             : -(product + q.error * x.scale);
        }
    }

    /// The key of a pair is no less, or NaN.
    __device__ __forceinline__ float leastKey() const {
        if constexpr (kIsSimilarity<kMetric>) {
            return -canonical::toFloat32(most);
        }
        const float key = canonical::toFloat32(least);
        return key < 0 ? 0.0f : key; // NaN stays
    }

    /// Where both bounds round alike, so does what is between them.
    __device__ __forceinline__ bool isSure() const {
        return isExact ||
                (canonical::toFloat32(least) == canonical::toFloat32(most) &&
                 (AllFinite || isFinite(least)));
    }

    __device__ __forceinline__ static bool isFinite(double value) {
        return (__double2hiint(value) & 0x7ff00000) != 0x7ff00000;
    }
};

} // namespace faiss_bits
