#pragma once

#include <cmath>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"
#include "kernels/ivf/IvfProductBound.h"

/// How far the estimate of a pair's key, L2 or minus the inner product, by
/// tables of whole numbers (IvfTableScan.cuh) may be from the canonical one.
///
/// Notation: u = 2^-24, v = 2^-22; c is the list's centroid, 0 if it has none;
/// y is what a code names, a row of each part of the codebook, and x = c + y,
/// rounded to float32, the vector; s = q - c, rounded to float32, for L2, s = q
/// for inner products. s_m and y_m are a part of s and of y, p components; M
/// is the number of parts, d = M p. Y_m is the greatest |y_m| of a part's rows,
/// and Y the root of the sum of their squares: no vector has a longer y.
///
/// **Entries.** |s - y|^2 is |s|^2 and, of each part, the entry t = |y_m|^2 - 2
/// <s_m, y_m>; the inner product's -<y, s> is entries t = -<s_m, y_m> alone.
/// With S = |s_m| and Y = Y_m entries are
///
///     L2             from -S^2 (S < Y) or Y^2 - 2 S Y (else) to Y^2 + 2 S Y
///     inner product  from -S Y to S Y
///
/// A table has round((t - low) / step), no less than 0, with one step for all
/// parts of a pair: that by which the widths of all parts together are 65535 -
/// M. So the sum of M entries is below 2^16, and is exact. The estimate is
///
///     base + step * sum,   base = |s|^2 + the sum of lows, or - <c, q> + that
///
/// **Bound.** A table's rounding loses half a step a part, and its arithmetic
/// less than 4 u of 65535 steps in all: 0.5625 M steps. Sums in float32 lose no
/// more than (p + 4) u (S + Y)^2 of a part's entry, of which the sum is at most
/// (|s| + Y)^2 (Minkowski), (d / 64 + 8) u |s|^2, and (M / 32 + 6) u 2 |s| Y of
/// lows; what an entry is beyond its range for that, and is cut off, brings it
/// nearer. With the last additions all that is no more than
///
///     e = 0.5625 M step + (d + 32) (v / 2) (|s| + Y)^2 + 2^-105
///
/// |q - x| and |s - y| are no more than h = 2^-23 (|s| + |c| + Y) apart, and
/// what k estimates say of the rest is as in IvfProductBound.h, "L2": a limit
/// of ((sqrt(t + e) + h) (1 + v) + h)^2 + e.
///
/// **Inner product.** With C = the sum of |c_i q_i|, and as there,
///
///     e = 0.5625 M step + (d + 32) (v / 2) (|s| Y + C) + v |q| (|c| + Y)
///         + 2^-105
///
/// **Sums of terms.** Where float64 makes a query's and a list's term of an
/// entry,
///
///     L2   -2 <q_m, y_m>  and  |y_m|^2 + 2 <c_m, y_m>,
///
/// each is rounded to float32, and so is their sum: u (2 |q_m| |y_m| + |y_m|^2
/// + 2 |c_m| |y_m|) and u of the entry, for p + 4 roundings above. With |q| <=
/// |s| + |c|, and 2 u |s| Y as s is not rounded here, that is no more than 3 u
/// (|s| + Y)^2 + v |c| Y in all: e has v |c| Y more. That entries are beyond
/// their ranges for it must not add up to more than what sums have room for: a
/// step is 2^-27 |c| Y at least, so that it is 32 steps, and the norms'
/// enlargement leaves 63. The inner product's entries are the query's alone.
///
/// Norms are sums in float32, off by far less than 2^-10 of themselves, which
/// all are enlarged by; squares of small numbers are lost to them, less than
/// sqrt(d) 2^-74 of a root, and all have 2^-69 more. A step is 2^-100 at least,
/// so that its inverse is a number. Norms whose squares are beyond
/// ivf_estimate::kGreatest, or are no numbers, have no estimate.
namespace faiss_bits::ivf_table {

using ivf_product::Bound;
using ivf_product::kUp;

constexpr int kMostDims = 1024; // of the proof: what roots lose
constexpr int kMostParts = 256;
/// No entries add up to more.
constexpr int kMostSum = 65535;
constexpr float kLeastStep = 0x1p-100f;

/// A norm that is no less than the true one, of a sum of squares.
BITS_HOST_DEVICE float normOf(float square) {
    return sqrtf(square) * kUp + 0x1p-69f;
}

/// What entries of a part are, of enlarged norms.
struct Range {
    float low = 0;
    float width = 0;
};

template <Metric kMetric>
BITS_HOST_DEVICE Range rangeOf(float s, float y) {
    if constexpr (kMetric == Metric::L2) {
        const float low = s < y ? -s * s : y * y - 2 * s * y;
        return {low, y * y + 2 * s * y - low};
    } else {
        return {-s * y, 2 * s * y};
    }
}

/// widths: the sum of those of all parts. The rest is what sums of them, and
/// entries beyond their ranges, are off by.
BITS_HOST_DEVICE float stepOf(float widths, int parts) {
    return fmaxf(widths * kUp / float(kMostSum - parts), kLeastStep);
}

/// Of a pair: |s|, |c| and Y, enlarged, C, and the step.
struct PairNorms {
    float query = 0;
    float centroid = 0;
    float longest = 0;
    float products = 0;
    float step = 0;
};

/// Whether a pair has an estimate; of squares as they are summed.
BITS_HOST_DEVICE bool isBounded(float query, float centroid, float longest) {
    return query <= ivf_estimate::kGreatest &&
            centroid <= ivf_estimate::kGreatest &&
            longest <= ivf_estimate::kGreatest;
}

/// That of a pair whose entries are sums of terms, from that of others.
template <Metric kMetric>
BITS_HOST_DEVICE float stepOfTerms(float step, const PairNorms& pair) {
    return kMetric == Metric::L2
            ? fmaxf(step, 0x1p-27f * pair.centroid * pair.longest)
            : step;
}

/// areTerms: entries are sums of terms
template <Metric kMetric>
BITS_HOST_DEVICE Bound
boundOf(const PairNorms& pair, int parts, int d, bool areTerms = false) {
    constexpr float kUnit = float(ivf_estimate::kUnit);
    const float rounded = 0.5625f * float(parts) * pair.step;
    const float sums = float(d + 32) * (0.5f * kUnit);
    Bound bound;
    if constexpr (kMetric == Metric::L2) {
        const float both = pair.query + pair.longest;
        bound.root = kUp * (0.5f * kUnit) * (both + pair.centroid);
        const float terms =
                areTerms ? kUnit * pair.centroid * pair.longest : 0.0f;
        bound.square = kUp * (rounded + sums * both * both + terms) +
                ivf_estimate::kLeast;
    } else {
        bound.square = kUp *
                        (rounded +
                         sums * (pair.query * pair.longest + pair.products) +
                         kUnit * pair.query * (pair.centroid + pair.longest)) +
                ivf_estimate::kLeast;
    }
    return bound;
}

/// A number of a table.
BITS_HOST_DEVICE float scaledEntry(float entry, float low, float inverse) {
    return fmaxf((entry - low) * inverse, 0.0f);
}

} // namespace faiss_bits::ivf_table
