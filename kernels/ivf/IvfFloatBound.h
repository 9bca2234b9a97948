#pragma once

#include <cmath>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, by
/// float32 (IvfFloatScan.cuh) may be from the canonical one.
///
/// Notation: u = 2^-24, d components, and A is the sum of |q_i x_i|.
///
/// **L2.** A component's difference is rounded once, its square is added by one
/// rounding, and what is added up in four sums by three more: a factor of
/// (1 + u)^(d + 6) at most, as no term is negative; squares below 2^-126 lose d
/// 2^-149. The canonical distance is rounded once. So where k vectors have
/// estimates no greater than t, what is as near as they has one of
///
///     t (1 + (2 d + 32) u) + 2^-105
///
/// at most: (1 + u)^(2 d + 16) is no more than that for d up to 2^16. An
/// infinite sum is no less than half of the greatest number, and so is its
/// distance: a limit beyond a quarter of that is none. A sum is no number where
/// the distance is none.
///
/// **Inner product.** Sums are off by (d + 4) u A, the canonical one's rounding
/// is u A, and A as it is summed is no less than (1 - (d + 4) u) A. A query has
/// the greatest of its pairs' e = (d + 16) u A + 2^-105, and the limit is
/// t + 2 e. What overflows has no estimate.
namespace faiss_bits::ivf_float {

constexpr float kUnit = 0x1p-24f;

/// Of an inner product.
BITS_HOST_DEVICE float boundOf(float sizes, int d) {
    return sizes * float(d + 17) * kUnit + ivf_estimate::kLeast;
}

/// An estimate that none of the k nearest is above, where k vectors have `t` or
/// less; bound: of the query, for inner products. Not a number: there is no
/// limit.
template <Metric kMetric>
BITS_HOST_DEVICE double limitOf(double t, float bound, int d) {
    if constexpr (kMetric == Metric::L2) {
        const double limit =
                t * (1 + (2 * d + 33) * 0x1p-24) + double(ivf_estimate::kLeast);
        return limit <= 0x1p126 ? limit : double(NAN);
    } else {
        const double limit = t + 2 * double(bound);
        return limit + (limit < 0 ? -limit : limit) * 0x1p-40;
    }
}

} // namespace faiss_bits::ivf_float
