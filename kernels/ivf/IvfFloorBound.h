#pragma once

#include <cuda_fp16.h>

#include <cmath>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, of
/// codes of 8 bits (IvfCodeFloors.cuh) or product codes (IvfBookTables.cuh) may
/// be from the canonical one.
///
/// Notation: u = 2^-24, h = 2^-11, of float16. Of a component n is the code, s
/// the step, a the start, c the centroid's (0 without one) and q the query's;
/// the vector's is x = fl(fl(n s + a) + c), and M = |a| + 255 |s| + |c| + |q|,
/// which is no less than |n s + a|, |x|, |a + c|, |x - q| and |a + c - q| but
/// for 8 u of itself. S is a power of two, a list's; tensor cores multiply
/// numbers of float16 exactly, and lose (d + 16) 2^-22 of the sum of the
/// products' sizes (kernels/knn/fused/tensor/TensorScanBound.h, Product). A
/// code is n 2^-24 there, exactly.
///
/// **L2.** b = fl(fl(a + c) - q), and m is a whole number near -b / s, no
/// farther from 0 than 1,792: n - m is exact in float16. b' = fl(b + m s), and
/// f is 2^24 s S in float16. Where f is no less than 2^-14, r = f / (2^24 s S)
/// is within h of 1 (and rounded by 4 u), else r = 1. With t = r b' S in
/// float16 the component's difference is v = fl((n - m) 2^-24 f + t) in
/// float16, one fma. It is off from r S (x - q) by |t - r b' S|, which the
/// table's maker finds: t is no more than half a step where m is the nearest
/// whole number, and no more than v else; by what x, b, b', r and the numbers
/// in float32 are rounded by, less than 16 u M S; 2^-38 where f is smaller; and
/// h of itself or 2^-25. So with D = |t - r b' S| + 2^-24 + 16 u M S and g = (1
/// + 2^-9) / S times the root of the sum of all D^2, the root of the sum of (v
/// / S)^2 is within (1 +- l) R +- g of the root R of the exact distance of x, l
/// = 2^-10 + 2^-20. The sum is off by e = (d + 16) 2^-22 of itself at most, as
/// no term is negative; what is lost below 2^-126 is less than kLeast; the
/// canonical distance is off by u.
///
/// Let k vectors of a query have estimates no greater than t. Their roots are
/// no greater than r = (sqrt(t (1 + 2 e) + kLeast) + g) / (1 - l), and what is
/// as near has an estimate of no more than (r (1 + 4 u) (1 + l) + g)^2 (1 + 2
/// e) + kLeast.
///
/// **Inner product.** w = fl(s q) S is a number of float16 and 2^-11 of another
/// one, but for 2^-22 of itself and 2^-36, and all n w are summed, then fl(a +
/// c) q in float32, whose sum is the base. Each is off from n s q and from (a +
/// c) q by 4 u M |q|, x q from (n s + a + c) q by 2 u M |q|, and sums of d + 16
/// such terms by (d + 16) 2^-22 of the sum P of all 2 M |q|. So e = 2 (d + 64)
/// 2^-22 P + kLeast, and what is as near as k vectors of estimates up to t has
/// one up to t + 2 e.
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

constexpr float kUnit = 0x1p-24f;
constexpr float kUp = 1 + 0x1p-10f;
/// What a code of 8 bits is multiplied by where it is a number of float16.
constexpr float kOfCode = 0x1p-24f;
/// Of the second part of a number of inner products.
constexpr float kOfRest = 0x1p-11f;
/// What a code is less than, or more than less this: any difference of a code
/// from it is a number of float16.
constexpr float kMostCode = 2047 - 255;

/// What a list adds up over components.
struct PairSums {
    float base = 0; ///< of inner products
    float size = 0; ///< L2: the sum of D^2; else P
};

/// Of a component. L2: what a code is multiplied with, and what is added; the
/// code less another one, which comes first. Inner product: two parts of what
/// it is multiplied with.
struct Entry {
    float first;
    float second;
    float code; ///< as codes are: m 2^-24
};

/// Of a component, in float32.
struct Component {
    float step; // inner product: times the query's
    float term; // L2: b
    float size; // M
};

template <Metric kMetric>
BITS_HOST_DEVICE Component componentOf(
        float start,
        float step,
        float center,
        float query,
        PairSums& sums) {
    const float place = start + center;
    const float ofQuery = fabsf(query);
    const float size =
            fabsf(start) + 255 * fabsf(step) + fabsf(center) + ofQuery;
    if constexpr (kMetric == Metric::L2) {
        return {step, place - query, size};
    } else {
        sums.base += place * query;
        sums.size += 2 * size * ofQuery;
        return {step * query, 0, size};
    }
}

/// Of all components the greatest makes the scale.
template <Metric kMetric>
BITS_HOST_DEVICE float magnitudeOf(const Component& c) {
    return kMetric == Metric::L2 ? fabsf(c.term) + 255 * fabsf(c.step)
                                 : fabsf(c.step);
}

/// S: brings the greatest to 1/4 or more, below 1/2; or to 2^13 and 2^14; as
/// far as 2^100 and 2^-126 do that. What is infinite has the least.
template <Metric kMetric>
BITS_HOST_DEVICE float scaleOf(float greatest) {
    constexpr int kMost = kMetric == Metric::L2 ? -2 : 13;
    uint32_t bits;
    memcpy(&bits, &greatest, sizeof(bits));
    const int exponent = 254 + kMost - int(bits >> 23);
    bits = uint32_t(exponent < 1 ? 1 : exponent > 227 ? 227 : exponent) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof(bits));
    return scale;
}

/// Of a power of two that has one.
BITS_HOST_DEVICE float inverseOf(float scale) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof(bits));
    bits = (254u << 23) - bits;
    memcpy(&scale, &bits, sizeof(bits));
    return scale;
}

/// Off by 4 u of itself at most.
BITS_HOST_DEVICE float quotient(float a, float b) {
#ifdef __CUDA_ARCH__
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

/// The nearest number of float16.
BITS_HOST_DEVICE float ofFloat16(float x) {
    return __half2float(__float2half_rn(x));
}

/// With numbers of float16.
template <Metric kMetric>
BITS_HOST_DEVICE Entry
entryOf(const Component& c, float scale, PairSums& sums) {
    if constexpr (kMetric == Metric::L2) {
        const float factor = c.step * scale / kOfCode;
        const float first = ofFloat16(factor);
        const float ratio =
                fabsf(first) >= 0x1p-14f ? quotient(first, factor) : 1.0f;
        // Of no number the least: any whole number serves.
        const float code = rintf(
                fminf(fmaxf(quotient(-c.term, c.step), -kMostCode), kMostCode));
        const float term = fmaf(code, c.step, c.term) * scale * ratio;
        const float second = ofFloat16(term);
        const float off =
                fabsf(second - term) + 0x1p-24f + 16 * kUnit * c.size * scale;
        sums.size += off * off;
        return {first, second, code * kOfCode};
    } else {
        const float factor = c.step * scale;
        const float first = ofFloat16(factor);
        return {first, ofFloat16((factor - first) / kOfRest), 0};
    }
}

/// g, or e.
template <Metric kMetric>
BITS_HOST_DEVICE float boundOf(float size, float inverseScale, int d) {
    if constexpr (kMetric == Metric::L2) {
        return (1 + 0x1p-9f) * kUp * sqrtf(size) * inverseScale + 0x1p-60f;
    } else {
        return 2 * float(d + 64) * 0x1p-22f * kUp * size + ivf_estimate::kLeast;
    }
}

/// Of a sum of matrix instructions.
template <Metric kMetric>
BITS_HOST_DEVICE float keyOfCodes(float sum, float inverseScale, float base) {
    return kMetric == Metric::L2 ? sum * inverseScale * inverseScale
                                 : -(sum / kOfCode * inverseScale + base);
}

/// An estimate of codes of 8 bits that none of the k nearest is above, where k
/// vectors have `t` or less. Not a number: there is no limit.
template <Metric kMetric>
BITS_HOST_DEVICE double limitOfCodes(double t, float bound, int d) {
    if constexpr (kMetric == Metric::L2) {
        constexpr double kLost = 0x1p-10 + 0x1p-20; // l
        constexpr double kLeast = ivf_estimate::kLeast;
        const double more = 1 + 2 * double(d + 16) * ivf_estimate::kUnit;
        const double root =
                (sqrt((t < 0 ? 0 : t) * more + kLeast) + double(bound)) *
                (1 / (1 - kLost));
        const double last =
                root * ((1 + 4 * double(kUnit)) * (1 + kLost)) + double(bound);
        return last * last * more + kLeast;
    } else {
        const double limit = t + 2 * double(bound);
        return limit + (limit < 0 ? -limit : limit) * 0x1p-40;
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

/// Of product codes.
template <Metric kMetric>
BITS_HOST_DEVICE float keyOf(float sum, float base) {
    return kMetric == Metric::L2 ? sum : -(sum + base);
}

/// The same of product codes. Not a number: there is no limit.
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
