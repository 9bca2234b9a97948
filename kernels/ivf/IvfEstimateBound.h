#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/common/Types.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, by
/// tensor cores in float16 may be from the canonical one.
///
/// Notation: v = 2^-22; c is the center of a list, any vector; r = x - c and,
/// for L2, s = q - c as they are rounded to float32; for inner products s = q.
/// rr and ss are the squared norms as they are summed in float32, in any order.
///
/// **Center.** L2 is |r - s|^2 and the inner product <r, q> + <c, q>, but for
/// what the differences are rounded by: 2^-24 of each component. For L2 that is
/// at most 2 2^-24 (|r| + |s|)^2 <= v (rr + ss), for products 2^-24 |r| |q|.
///
/// **Scales** are powers of two, up to 2^78, and multiplying by them is exact.
/// That of s brings sqrt(ss) to 2^14 or more, below 2^15, as far as that goes;
/// that of r brings the greatest root of rr, M, of the 32 vectors that share
/// it, to 2^2 or more, below 2^15. No component is greater than its root but
/// for rounding, or 2^-74.
///
/// **Product.** float16 has ten bits behind the point: a component is off by at
/// most 2^-11 of itself; or where it is small by 2^-25 / scale, which for r is
/// at most 2^-27 M, for s 2^-39 |s|; or 2^-103 with the greatest scale. So all
/// products are off by at most (2^-10 + 2^-22) |r| |s| (Cauchy and Schwarz),
/// sqrt(d) (2^-27 M |s| + 2^-39 |r| |s|) (1 + 2^-10), and 2^-103 sqrt(d) (|r| +
/// |s|). Sums: (d + 16) v |r| |s| (kernels/knn/fused/tensor/TensorScanBound.h,
/// Product). Without the parts of M and of 2^-103 that is less than a |r| |s|,
/// a = 2^-10 + 2^-21 + (d + 16) v: for 2^-39 sqrt(d) it has 2^-22, which is
/// more for all d below 2^32.
///
/// **L2.** 2 a |r| |s| <= a (|r|^2 + |s|^2), and likewise for M |s|: 2^-26
/// sqrt(d) M^2, and less than (d + 1) v ss / 8. Squares lose at most (d + 1)
/// 2^-24 of themselves; what adds up a key, or the number that a product is
/// compared with, loses less than 4 2^-23 of (rr + ss + 2 |product|) <= 2.1 (rr
/// + ss): where the key is a limit, the limit is no more. The bound is (a + (d
/// + 64) v) (rr + ss), and the part of M.
///
/// **Inner product.** <c, q> is summed in float32: (d + 1) 2^-24 of the sum C
/// of |c_i q_i|; roots of rr and ss are off by (d + 4) 2^-24 of themselves, and
/// what adds up a key loses 2^-22 of C and of |r| |q|. The bound is
/// (a + 64 v) (1 + (d + 64) v) times the roots' product, and (d + 64) v C. To
/// the root of rr comes 2^-16 sqrt(d) M: 2^-10 of it is what M costs. Squares
/// below 2^-149 are lost, of components below 2^-74: sqrt(d) 2^-74 to each
/// root, which is more than what 2^-103 costs, too.
///
/// The canonical distance is rounded to float32 once: 2^-24 of it, for which
/// there is room in both.
///
/// **Width.** Let b be the bound, and E what products, squares and C make of
/// the key. The canonical key is no more than E + b less what adding a lower
/// bound up loses, which b has room for; that lower bound is no less than E - b
/// less as much. So the key is at most 2 b above it.
///
/// **Range.** Norms up to kGreatest leave no sum outside that of float32;
/// others have no estimate. What is below 2^-126 may count as zero: kLeast is
/// more than all of that, and 2^-102 sqrt(d) (|r| + |s|) <= v (rr + ss) / 2 +
/// 2^-180 d is less than it and v (rr + ss).
namespace faiss_bits::ivf_estimate {

/// Of a squared norm, and of C.
constexpr float kGreatest = 0x1p120f;
constexpr float kLeast = 0x1p-105f;
constexpr double kUnit = 0x1p-22;

/// What a bound is made of: factors.
struct Factors {
    float squares = 0; ///< L2: of rr + ss. Inner product: of the roots' product
    float greatest = 0; ///< L2: of M^2. Inner product: of M, in a root
    float center = 0;   ///< inner product: of C
    float lost = 0;     ///< inner product: squares that are lost, in a root
};

inline Factors factorsOf(Metric metric, int d) {
    constexpr double kUp = 1 + 0x1p-20;
    const double a = 0x1p-10 + 0x1p-21 + (d + 16) * kUnit;
    const double root = std::sqrt(double(d));
    Factors factors;
    if (metric == Metric::L2) {
        factors.squares = float((a + (d + 64) * kUnit) * kUp);
        factors.greatest = float(0x1p-26 * root * kUp);
    } else {
        factors.squares =
                float((a + 64 * kUnit) * (1 + (d + 64) * kUnit) * kUp);
        factors.greatest = float(0x1p-16 * root * kUp);
        factors.center = float((d + 64) * kUnit * kUp);
        factors.lost = float(0x1p-74 * root * kUp);
    }
    return factors;
}

/// The scale for a squared norm.
BITS_HOST_DEVICE float scaleOf(float square) {
    constexpr uint32_t kOne = 127; // exponents are kept with so much more
    uint32_t bits = 0;
    std::memcpy(&bits, &square, sizeof(bits));
    // 2^e <= square < 2^(e + 1), h = e / 2 rounded down: the root is below
    // 2^(h + 1).
    const uint32_t h = (((bits >> 23) + 1) >> 1) - (kOne + 1) / 2;
    bits = (kOne + 14 - h) << 23;
    float scale = 0;
    std::memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

/// Of the greatest square of 16 components times d: such that its root is
/// expected at 2^8, as far from both ends.
constexpr float kSampledSquares = 0x1p12f / 16;

/// Whether M is within bounds with a scale; suited: scaleOf its square.
BITS_HOST_DEVICE bool isSuited(float scale, float suited) {
    return scale <= suited && scale >= 0x1p-12f * suited;
}

/// 1 / scale, exact.
BITS_HOST_DEVICE float inverseOf(float scale) {
    uint32_t bits = 0;
    std::memcpy(&bits, &scale, sizeof(bits));
    bits = (254u << 23) - bits;
    std::memcpy(&scale, &bits, sizeof(scale));
    return scale;
}

} // namespace faiss_bits::ivf_estimate
