#pragma once

#include <cmath>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, by
/// product codes and tensor cores (IvfProductScan.cuh) may be from the
/// canonical one.
///
/// Notation: v = 2^-22; c is the list's centroid, 0 if it has none; y is what a
/// code names, a row of each part of the codebook, and x = c + y, rounded to
/// float32, the vector; s = q - c, rounded to float32, for L2, s = q for inner
/// products. s' and y' are s and y in float16, with scales that are powers of
/// two (ivf_estimate::scaleOf). Y and E are the roots of the sums over parts of
/// the greatest |y|^2 and |y - y'|^2 that a row of the part has: no vector has
/// a longer y, or a greater |y - y'|, whatever its codes. Norms of c, s and
/// s - s' are those of the pair.
///
/// **L2.** q - x is s - y but for what s and x are rounded by, 2^-24 (1 + v) of
/// |s| and of |c| + |y|, and s - y is s' - y' but for |s - s'| + |y - y'|. So
/// |q - x| and |s' - y'| are no more than
///
///     h = |s - s'| + E + 2^-23 (|s| + |c| + Y)
///
/// apart. The estimate is |s'|^2 + |y'|^2 - 2 <s', y'>, of products that are
/// exact and sums that lose (d + 16) v |s'| |y'| and (d + 16) v |y'|^2
/// (kernels/knn/fused/tensor/TensorScanBound.h, Product), of |s'|^2 (d + 8)
/// 2^-24, and four roundings of all that: no more than
///
///     e = (d + 32) v (|s'| + |y'|)^2 + 2^-105
///
/// where the last is for what is below 2^-126. Let k vectors of a query have
/// estimates no greater than t. Their distances are no greater than
/// (sqrt(t + e) + h)^2, canonical ones 2^-23 of it more, and what is as near
/// has an estimate of ((sqrt(t + e) + h) (1 + v) + h)^2 + e at most.
///
/// **Inner product.** It is <c, q> + <y, q> but for 2^-24 |x| |q|, and <y, q>
/// is <y', s'> but for |y| |s - s'| + |s'| |y - y'|. Sums lose (d + 16) v |s'|
/// |y'| and, of C = the sum of |c_i q_i|, (d + 8) 2^-24 C; adding up and the
/// canonical distance's rounding lose less than v (|q| (|c| + |y|) + C). So
///
///     e = |s - s'| Y + |s'| E + (d + 32) v (|s'| (Y + E) + C)
///         + v |q| (|c| + Y) + 2^-105
///
/// and what is as near as k vectors of estimates up to t has one up to t + 2 e.
///
/// A query has one bound, the greatest of its pairs'. Norms are sums in
/// float32, off by far less than 2^-10 of themselves, which all are enlarged
/// by; squares of small numbers are lost to them, which is less than
/// sqrt(d) 2^-74 of a root, and Y has that more: the query's may be much larger
/// and are scaled. |y'| is at most Y + E. Norms whose squares are beyond
/// ivf_estimate::kGreatest, or are no numbers, have no estimate.
namespace faiss_bits::ivf_product {

/// Of norms that are summed in float32.
constexpr float kUp = 1 + 0x1p-10f;

/// Of all vectors: Y and E.
struct CodebookNorms {
    float longest = 0;
    float lost = 0;
};

/// Of a pair, enlarged: |s|, |s'|, |s - s'|, |c| and C.
struct PairNorms {
    float query = 0;
    float rounded = 0;
    float lost = 0;
    float centroid = 0;
    float products = 0;
};

/// What a row keeps: h and e, or 0 and e.
struct Bound {
    float root = 0;
    float square = 0;
};

template <Metric kMetric>
BITS_HOST_DEVICE Bound
boundOf(const CodebookNorms& codes, const PairNorms& pair, int d) {
    constexpr float kUnit = float(ivf_estimate::kUnit);
    const float sums = float(d + 32) * kUnit;
    const float longest = codes.longest + 0x1p-70f; // d is 256 at most
    const float y = longest + codes.lost;
    Bound bound;
    if constexpr (kMetric == Metric::L2) {
        const float both = pair.rounded + y;
        bound.root = kUp *
                (pair.lost + codes.lost +
                 0.5f * kUnit * (pair.query + pair.centroid + longest));
        bound.square = kUp * sums * both * both + ivf_estimate::kLeast;
    } else {
        bound.square = kUp *
                        (pair.lost * longest + pair.rounded * codes.lost +
                         sums * (pair.rounded * y + pair.products) +
                         kUnit * pair.query * (pair.centroid + longest)) +
                ivf_estimate::kLeast;
    }
    return bound;
}

/// An estimate that none of the k nearest is above, where k vectors have `t` or
/// less. Not a number: there is no limit.
template <Metric kMetric>
BITS_HOST_DEVICE double limitOf(double t, const Bound& bound) {
    constexpr double kMore = 1 + 0x1p-40; // than float64 loses here
    if constexpr (kMetric == Metric::L2) {
        const double root =
                (sqrt((t < 0 ? 0 : t) + bound.square) + bound.root) *
                        (1 + ivf_estimate::kUnit) +
                bound.root;
        return (root * root + bound.square) * kMore;
    } else {
        const double limit = t + 2 * double(bound.square);
        return limit + (limit < 0 ? -limit : limit) * 0x1p-40;
    }
}

} // namespace faiss_bits::ivf_product
