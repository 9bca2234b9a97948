#pragma once

#include <cmath>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, of
/// codes of 8 bits (IvfCodeFloors.cuh) or product codes (IvfBookTables.cuh), in
/// float32 may be from the canonical one.
///
/// Notation: u = 2^-24. Of a component n is the code, s the step, a the start,
/// c the centroid's (0 without one) and q the query's; the vector's is
/// x = fl(fl(n s + a) + c), and M = |a| + 255 |s| + |c| + |q|, which is no less
/// than |n s + a|, |x|, |a + c|, |x - q| and |a + c - q| but for 8 u of itself.
/// A code is taken as f = 128 + n / 256, exactly.
///
/// **L2.** b = fl(fl(a + c) - q) and b' = fl(b - 2^15 s), 2^15 s being exact;
/// the component's difference is t = fl(f (256 s) + b'), of n s + 2^15 s + b'.
/// So t is off from x - q by what x, b, b' and t are rounded by: no more than
/// u (5 M + |b'|) (1 + 8 u), which is less than D = 2 u (4 M + |b'|). With h
/// the root of the sum of all D^2, the roots of the sum of t^2 and of the exact
/// distance of x are no more than h apart. The sum in float32, of terms that
/// are not negative, is off by e = (d + 16) u of itself at most, and by
/// d 2^-148 for what is below 2^-126; the canonical distance by u.
///
/// Let k vectors of a query have estimates no greater than t. Their canonical
/// distances are no greater than r^2 (1 + 2 u), r = sqrt(t (1 + 2 e) + kLeast)
/// + h, and what is as near has an estimate of no more than
/// (r (1 + 4 u) + h)^2 (1 + 2 e) + kLeast.
///
/// **Inner product.** p = fl(256 fl(s q)) is one number of a list, f - 128 is
/// exact, and (f - 128) p is summed, then fl(a + c) q, whose sum is the base.
/// Each is off from n s q and from (a + c) q by 4 u M |q|, x q from (n s + a +
/// c) q by 2 u M |q|, and sums of d + 8 such terms in any order by (d + 8) u of
/// the sum S of all 2 M |q|. So e = 2 (d + 32) u S + kLeast, and what is as
/// near as k vectors of estimates up to t has one up to t + 2 e.
///
/// **Product codes** by tables, of a row y of the codebook for each part, x =
/// fl(c + y), and Y the root of the sum over parts of the greatest |y|^2. L2: s
/// = fl(q - c), and t = fl(s - y) is off from q - x by u (|c| + |y| + |s| +
/// |t|) (1 + 8 u) at most, |c| <= |q| + |s| (1 + u), |t| <= |s| + |y|: so h = 2
/// u (|q| + 2 |s| + Y), and e is as above. Inner product: <c, q> and <y, q> are
/// summed, e = 4 (d + 32) u |q| (|c| + Y) + kLeast (Cauchy and Schwarz).
///
/// A query has one bound, the greatest of its lists'. Sums for it are of
/// float32, off by less than 2^-10 of themselves, which it is enlarged by. What
/// is not finite has no bound: it is infinite or no number. A vector whose
/// estimate is not finite is among those that get keys, and sets no limit.
namespace faiss_bits::ivf_code {

/// 128, whose second byte can take a code.
constexpr uint32_t kCodeBits = 0x43000000;

constexpr float kUnit = 0x1p-24f;
constexpr float kUp = 1 + 0x1p-10f;

/// What a list adds up over components.
struct PairSums {
    float base = 0; ///< of inner products
    float size = 0; ///< L2: the sum of (D / 2 u)^2; else S
};

/// Of a component: what a code is multiplied with, and what is added.
struct Entry {
    float factor;
    float term;
};

template <Metric kMetric>
BITS_HOST_DEVICE Entry
entryOf(float start, float step, float center, float query, PairSums& sums) {
    const float place = start + center;
    const float size = (start < 0 ? -start : start) +
            255 * (step < 0 ? -step : step) + (center < 0 ? -center : center) +
            (query < 0 ? -query : query);
    if constexpr (kMetric == Metric::L2) {
        const float term = (place - query) - 0x1p15f * step;
        const float off = 4 * size + (term < 0 ? -term : term);
        sums.size += off * off;
        return {256 * step, term};
    } else {
        const float product = place * query;
        sums.base += product;
        sums.size += 2 * size * (query < 0 ? -query : query);
        return {256 * (step * query), 0};
    }
}

/// h, or e.
template <Metric kMetric>
BITS_HOST_DEVICE float boundOf(float size, int d) {
    if constexpr (kMetric == Metric::L2) {
        return 2 * kUnit * kUp * std::sqrt(size) + 0x1p-60f;
    } else {
        return 2 * float(d + 32) * kUnit * kUp * size + ivf_estimate::kLeast;
    }
}

/// The same of product codes, of squares of norms: the query's, that of s or c,
/// and Y.
template <Metric kMetric>
BITS_HOST_DEVICE float boundOfTables(
        float query,
        float list,
        float longest,
        int d) {
    constexpr float kLost = 0x1p-70f; // of squares, in a root
    const float ofQuery = sqrtf(query) + kLost;
    const float ofList = sqrtf(list) + kLost;
    const float ofRows = sqrtf(longest) + kLost;
    if constexpr (kMetric == Metric::L2) {
        return 2 * kUnit * kUp * (ofQuery + 2 * ofList + ofRows) + 0x1p-60f;
    } else {
        return 4 * float(d + 32) * kUnit * kUp * ofQuery * (ofList + ofRows) +
                ivf_estimate::kLeast;
    }
}

/// A component of a vector, whose code is 128 + n / 256.
template <Metric kMetric>
BITS_HOST_DEVICE void add(float& sum, float code, float factor, float term) {
    if constexpr (kMetric == Metric::L2) {
        const float t = fmaf(code, factor, term);
        sum = fmaf(t, t, sum);
    } else {
        sum = fmaf(code - 128.0f, factor, sum);
    }
}

template <Metric kMetric>
BITS_HOST_DEVICE float keyOf(float sum, float base) {
    return kMetric == Metric::L2 ? sum : -(sum + base);
}

/// An estimate that none of the k nearest is above, where k vectors have `t` or
/// less. Not a number: there is no limit.
template <Metric kMetric>
BITS_HOST_DEVICE double limitOf(double t, float bound, int d) {
    if constexpr (kMetric == Metric::L2) {
        const double more = 1 + 2 * double(d + 16) * double(kUnit);
        const double root =
                sqrt((t < 0 ? 0 : t) * more + double(ivf_estimate::kLeast)) +
                double(bound);
        const double last = root * (1 + 4 * double(kUnit)) + double(bound);
        return last * last * more + double(ivf_estimate::kLeast);
    } else {
        const double limit = t + 2 * double(bound);
        return limit + (limit < 0 ? -limit : limit) * 0x1p-40;
    }
}

} // namespace faiss_bits::ivf_code
