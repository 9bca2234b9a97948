#pragma once

#include "kernels/ivf/IvfEstimateBound.h"

/// How far the estimate of an L2 key by 8-bit codes may be from the canonical
/// one; notation as in IvfEstimateBound.h.
///
/// The center is what codes m stand for, those of the list's first vector or
/// any others. Components come into products as float16 of (code - m) step: no
/// vector of the list less the center, but near it. Let g be these products as
/// real numbers, A of each component |start| + |centroid| + 255 |step|, and s
/// the query less the center as they are rounded.
///
/// **Center.** Decoded components are two roundings from their real numbers, so
/// that x - q is within e = 2^-22 |A| + 2^-24 |s| of g - s. As 2 z e + e^2 <=
/// z^2 / 2^13 + (2^13 + 1) e^2, |x - q|^2 is within 2^-12 (|g|^2 + ss) + 2^-29
/// |A|^2 + 2^-33 ss of |g - s|^2.
///
/// **Products.** With the scale S the greatest step is 2^-1 or more, below 1,
/// as far as that goes. A step in float16 is off by 2^-11 of itself or 2^-25,
/// and so is its product with a difference of codes, which is exact, and 255 at
/// most. What is multiplied, h, is within (2^-10 + 2^-22) |S g| + 2^-17 of S g
/// in each component; of d <= 128 of them the latter is 2^-13.5: U = 2^-13.5 /
/// S. All products with s are off by (2^-10 + 2^-11 + 2^-20) |g| |s| + 1.01 U
/// |s|.
///
/// **Squares** are sums of float16 of h^2, which are at most 255^2, and off by
/// 2^-11 of themselves or 2^-25: within (2^-9 + 2^-11 + 2^-19) |g|^2 + 2.01 U
/// |g| + U^2 + 2^-18 / S^2 of |g|^2.
///
/// **L2.** Products with U are split as above: 2^-13 of the squares, and all
/// that has U^2 is less than 2^14.1 U^2 + 2^-18 / S^2 <= 2^-12 / S^2. Together
/// with sums as in IvfEstimateBound.h, that is less than 4.4 2^-10 of |g|^2 and
/// 1.9 2^-10 of ss, and (2 d + 80) v of both; 2.25 and one times twice the
/// share of factorsOf() are more: 4.5 and 2 2^-10, and (4 d + 160) v.
///
/// **Range.** What overflows is not finite in a square, and has no bound.
namespace faiss_bits::ivf_estimate {

constexpr float kGreatestCode = 255;
constexpr int kMostCodeDims = 128;
/// Of a vector's square, for one of a query's.
constexpr float kSquaresOfCodes = 2.25f;

/// As factorsOf L2, for queries.
inline Factors factorsOfCodes(Factors factors) {
    factors.squares *= 2;
    return factors;
}

/// The scale for steps, the greatest of which has this size.
BITS_HOST_DEVICE float scaleOfSteps(float greatest) {
    uint32_t bits = 0;
    std::memcpy(&bits, &greatest, sizeof(bits));
    // 2^e <= greatest < 2^(e + 1): 2^-(e + 1), within 2^60 and 2^-60.
    constexpr uint32_t kOne = 127;
    uint32_t e = bits >> 23;
    e = e < kOne - 61 ? kOne - 61 : e > kOne + 59 ? kOne + 59 : e;
    bits = (2 * kOne - 1 - e) << 23;
    float scale = 0;
    std::memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

/// What bounds by codes are off by whatever these are; sizes: |A|^2, inverse: 1
/// / S. Half of kLeast is the query's.
BITS_HOST_DEVICE float slackOfCodes(float sizes, float inverse) {
    return 0x1.01p-29f * sizes + 0x1.01p-12f * inverse * inverse +
            0.5f * kLeast;
}

} // namespace faiss_bits::ivf_estimate
