/// How far the key of a tensor-core scan may be from the exact one.
///
/// Notation: u = 2^-24, g(m) = m u / (1 - m u) (Higham 2002, lemma 3.1);
/// x' = image / scale, r_x = |x - x'| and r_q = |q - q'|, which the images come
/// with as upper bounds; |x'| <= |x| + r_x. Scales and their products are
/// powers of two within 2^-120 and 2^120, and multiplying by them is exact.
///
/// **Conversion.** <x, q> - <x', q'> = <x - x', q'> + <x, q - q'>, in size at
/// most r_x (|q| + r_q) + |x| r_q, by Cauchy and Schwarz.
///
/// **Product.** Products of float16 numbers are exact in float32. In a step of
/// 16 components, tensor cores align 16 products and the sum so far to the
/// largest of these 17 and cut off what is below its last bit. Assumed is that
/// at least 24 bits of the largest are kept, as in every measurement that was
/// published (Fasi et al. 2021 up to the A100, later ones of the H100: at least
/// two bits more). With S = sum of |x'_i q'_i| <= |x'| |q'|, none of the 17 is
/// larger than S (1 + what the steps before were off), each loses less than
/// 2^-23 of that, and so does the rounding of the result: 18 2^-23 S a step,
/// and there are at most d / 16 + 1. That is (1.125 d + 18) 2^-23 S = (0.5625 d
/// + 9) 2^-22 S; taken are d + 16 units of kTensorCoreUnit = 2^-22, in the form
/// m v / (1 - m v). Adding zeros, which pad images, loses nothing. The sums are
/// below 2^30 d < 2^53 (no overflow), and multiples of 2^-48, so that no
/// product is lost below 2^-126.
///
/// **L2.** With F = 2 / scales, key = n_q - F a. Two ways to a:
/// - wgmma: the norm is a step more (TensorImage::normSteps). Three float16
///   numbers hold n_x but for normError; their products with a power of two are
///   exact; the sums' sizes are now at most S' = |x'| |q'| + n_x / 2 in the
///   units of x' and q', with at most d / 16 + 2 steps: the error of the
///   product becomes (d + 32) v S'. Longer vectors than the scale is for are
///   cut to a smaller norm: they seem nearer, and pass.
/// - mma.sync: a = fl(F <x', q'> - n_x): u |a|, and 2^-150 if it is subnormal.
/// A value passes if not a < t, t = fl(n_q - limit), scaled exactly. t needs no
/// term for what must pass: rounding is monotone, so from a >= n_q - limit
/// follows a = fl(a) >= t. What passes has n_q - limit <= a + u |a| (1 + 2 u).
/// n_x and n_q are sums of squares in float32 in any order: g(d + 1) of |x|^2
/// and |q|^2, and d 2^-149 for squares below 2^-126. So |key - D| <= g(d + 3)
/// (|x|^2 + |q|^2) + normError + 4 u |x'| |q'| + 2 (conversion + product) + 2 d
/// 2^-149; g(d + 8) covers it and products of small terms.
///
/// - bytes, beyond 512 components: as mma.sync, with an exact product, but F is
///   rounded, by u of itself: 2 u |x'| |q'|, of which the error of the product
///   above is far more. Up to 512 all is in integers: docs/bounds.md.
///
/// **Centers.** For L2 x and q stand for both less the center c; what the
/// subtractions were rounded by is in r_x and r_q. For inner products x stands
/// for x - c alone, and the exact key is -<x - c, q> - <c, q>: CenterProduct.
///
/// **Inner product.** Compared is -<x', q'> with limit scale, both as they are
/// in the accumulator: conversion + product, and 2 u |x'| |q'| for the rounding
/// of the limit (as above; subnormal limits: 2^-150 2^120 would be too much,
/// but an accumulator is 0 or at least 2^-48, and rounding is monotone: a limit
/// that goes to zero, or beyond the range, meets no accumulator that it would
/// decide otherwise than a limit within 2^-100 |x'| |q'| of it, or 0).
///
/// **Cosine.** Normalised rows scanned as L2 does, as for unit vectors s and t
/// C = |s - t|^2 = 2 - 2 cos: neither the center nor an error along a row, such
/// as that of its norm, counts in full. Rows are multiplied by inverse norms in
/// float32, off by R = g(d + 8) at most (docs/bounds.md), and rounded by u:
/// they are (1 + m) (s + e), |m| <= R, |e| <= u. Of two such rows, as
/// <s - t, m s - m' t> = (m + m') C / 2,
///     | |difference|^2 - C |
///         <= 2 R C + (2 R + 2 u (1 + R))^2 + 4 u (1 + R) sqrt(C),
/// of which the code takes more; and the difference is no longer than
/// sqrt(C) (1 + R) + 2 R + 2 u (1 + R), for the length of x.
/// Zeros have no direction, and a cosine of 0: C = 2. Their rows are zeros,
/// which is 1 from a unit vector, 0 from zeros; so 1 is added to the squared
/// norm of each. That is in the lengths: with x a row of zeros and q none,
/// |x - c|^2 + 1 <= (|q - c| + 1 + R + 2 u)^2 + 1 <= the square of
/// |q - c| + sqrt(2) (1 + 2 R); with q zeros |q - c|^2 + 1 is in queryNorm.
///
/// **Range.** The bound is infinite where a term could leave the range of
/// float32: where (|x| + |q|)^2, or |x| |q|, is above 2^120. L2: if x belongs
/// into the result and is as near as the distance c, then |x| <= |q| + sqrt(c);
/// hand that as vectorNorm, so that vectors far away do not matter.
///
/// **Components that are not finite** are kept in images. A vector with one has
/// an L2 distance of infinity or NaN, and no finite limit wants it. Its product
/// with a finite query is infinite or NaN; where it is +infinity, the product
/// of the images is +infinity or NaN too (no factor changes its sign, at most
/// it becomes 0, and 0 times infinity is NaN), and passes. So residuals of
/// vectors leave such rows out. A query with one has no finite bound.
#pragma once

#include <cmath>

#include "kernels/knn/ErrorBound.h"

#if defined(__CUDACC__)
#define BITS_BOUND __host__ __device__ inline
#else
#define BITS_BOUND inline
#endif

namespace faiss_bits {

/// |approximate key - exact key| of a query and a vector, at most, for key =
/// squared distance or -<x, q>; infinity where nothing is proved. A vector of
/// exact key <= limit - error has passed; one that has passed has an exact key
/// <= limit + error, or components that are not finite.
///
/// queryNorm       |q|, at least
/// queryResidual   TensorImage::residuals
/// vectorNorm      at least |x|: L2 |q| + sqrt(c) (see Range above), inner
///                 product the greatest of all
/// vectorResidual  TensorImageFacts::residual
/// normError       TensorImageFacts::normError; L2 alone
BITS_BOUND double tensorScanError(
        Metric metric,
        int d,
        double queryNorm,
        double queryResidual,
        double vectorNorm,
        double vectorResidual,
        double normError) {
    constexpr double kSafe = 0x1p120;
    // Of these very operations.
    constexpr double kUp = 1 + 0x1p-40;
    const double rounding = bounds::gamma(double(d) + 8);
    const double cut =
            (double(d) + (metric == Metric::L2 ? 32 : 16)) * kTensorCoreUnit;
    if (!(cut < 0.5) || !(rounding < 0.5)) {
        return bounds::kInfinity;
    }
    const double q = queryNorm;
    const double x = vectorNorm;
    const double imageQ = q + queryResidual;
    const double imageX = x + vectorResidual;
    const double lengths = (imageQ + imageX) * (imageQ + imageX);
    if (!(lengths <= kSafe)) {
        // Products alone may be small where a factor is large.
        if (metric != Metric::InnerProduct || !(imageQ * imageX <= kSafe)) {
            return bounds::kInfinity;
        }
    }
    const double sums = imageQ * imageX +
            (metric == Metric::L2 ? x * x / 2 * (1 + rounding) : 0);
    const double product = vectorResidual * imageQ + x * queryResidual +
            cut / (1 - cut) * sums;
    switch (metric) {
        case Metric::L2:
            return kUp *
                    (2 * product + normError + rounding * (x * x + q * q) +
                     0x1p-22 * imageQ * imageX + (double(d) + 4) * 0x1p-147);
        case Metric::InnerProduct:
            return kUp * (product + 0x1p-22 * imageQ * imageX + 0x1p-147);
        default:
            return bounds::kInfinity;
    }
}

/// The same for cosines: key = 2 - 2 cos, of vectors whose key is at most
/// `distance`.
///
/// queryNorm       at least the root of TensorImageProblem::outNorms
BITS_BOUND double cosineScanError(
        int d,
        double distance,
        double queryNorm,
        double queryResidual,
        double vectorResidual,
        double normError) {
    constexpr double kUp = 1 + 0x1p-40;
    const double rounding = bounds::gamma(double(d) + 8);
    const double root = sqrt(distance > 0 ? distance : 0.0);
    const double both = 2 * rounding + 0x1p-22;
    const double vectorNorm =
            queryNorm + root * (1 + 2 * rounding) + 3 * rounding;
    return kUp *
            (tensorScanError(
                     Metric::L2,
                     d,
                     queryNorm,
                     queryResidual,
                     vectorNorm,
                     vectorResidual,
                     normError) +
             2 * rounding * root * root + both * both +
             0x1p-22 * (1 + rounding) * root);
}

/// Most that the key of a scan is, 2 - 2 cos, for a vector whose canonical key,
/// -cos rounded to float32, is at most `key`. That rounding is 2^-24 of the
/// key, and 2^-25 at most where the next greater float32 is no more than 1, as
/// these are 2^-24 apart or less; 2^-40 of it, and (d + 64) 2^-51, are what the
/// canonical cosine in float64 and this very computation are off by. The
/// vector's own distance may be greater than 2 + 2 key by twice as much, and
/// the error is that of its distance.
BITS_BOUND double cosineScanLimit(
        int d,
        double key,
        double queryNorm,
        double queryResidual,
        double vectorResidual,
        double normError) {
    double rounding = fabs(key) * 0x1p-24;
    if (key >= -1 && key < 1) {
        rounding = fmin(rounding, 0x1p-25);
    }
    const double off =
            rounding + fabs(key) * 0x1p-40 + (double(d) + 64) * 0x1p-51;
    const double distance = 2 + 2 * (key + off);
    return distance +
            cosineScanError(
                    d,
                    distance,
                    queryNorm,
                    queryResidual,
                    vectorResidual,
                    normError);
}

} // namespace faiss_bits

#undef BITS_BOUND
