#pragma once

#include "kernels/canonical/RoundedOps.h"
#include "kernels/common/Types.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, by
/// tensor cores in TF32 may be from the canonical one.
///
/// Notation: v = 2^-22; c is the center of a list, any vector; r = x - c and,
/// for L2, s = q - c as they are rounded to float32; for inner products s = q.
/// rr and ss are the squared norms as they are summed in float32, in any order.
///
/// **Center.** L2 is |r - s|^2 and the inner product <r, q> + <c, q>, but for
/// what the differences are rounded by: 2^-24 of each component. For L2 that is
/// at most 2 2^-24 (|r| + |s|)^2 <= v (rr + ss), for products 2^-24 |r| |q|.
///
/// **Product.** TF32 has the exponents of float32 and ten bits behind the
/// point: a component that is rounded to it is off by at most 2^-11 of itself,
/// a product of two by at most 2^-10 + 2^-22, and all products by at most that
/// of |r| |s| (Cauchy and Schwarz). Sums: in a step of 8 components each of 9
/// terms and the result lose less than 2^-23 of the sum S of |r_i s_i|
/// (kernels/knn/fused/tensor/TensorScanBound.h says why), and there are
/// d / 8 + 1 steps: (0.625 d + 5) v S. Together less than
/// a |r| |s|, a = 2^-10 + 2^-21 + (d + 16) v.
///
/// **L2.** 2 a |r| |s| <= a (|r|^2 + |s|^2). Squares lose at most (d + 1) 2^-24
/// of themselves; what adds up a key loses less than 4 2^-23 of (rr + ss + 2
/// |product|) <= 2.1 (rr + ss). The bound is (a + (d + 64) v) (rr + ss).
///
/// **Inner product.** <c, q> is summed in float32: (d + 1) 2^-24 of the sum C
/// of |c_i q_i|; roots of rr and ss are off by (d + 4) 2^-24 of themselves, and
/// what adds up a key loses 2^-22 of C and of |r| |q|. The bound is
/// (a + 64 v) (1 + (d + 64) v) times the roots' product, and (d + 64) v C.
///
/// The canonical distance is rounded to float32 once: 2^-24 of it, for which
/// there is room in both.
///
/// **Range.** Norms up to kGreatest leave no sum outside that of float32;
/// others have no estimate. What is below 2^-126 may count as zero: kLeast is
/// more than all of that.
namespace faiss_bits::ivf_estimate {

/// Of a squared norm, and of C.
constexpr float kGreatest = 0x1p120f;
constexpr float kLeast = 0x1p-110f;
constexpr double kUnit = 0x1p-22;

/// L2: of rr + ss.
BITS_HOST_DEVICE float ofSquares(int d) {
    return float(
            (0x1p-10 + 0x1p-21 + (d + 16) * kUnit + (d + 64) * kUnit) *
            (1 + 0x1p-20));
}

/// Inner product: of the roots of rr and ss.
BITS_HOST_DEVICE float ofProduct(int d) {
    return float(
            (0x1p-10 + 0x1p-21 + (d + 80) * kUnit) * (1 + (d + 64) * kUnit) *
            (1 + 0x1p-20));
}

/// Inner product: of C.
BITS_HOST_DEVICE float ofCenter(int d) {
    return float((d + 64) * kUnit);
}

} // namespace faiss_bits::ivf_estimate
