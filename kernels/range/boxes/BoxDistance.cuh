/// Canonical distances in few dimensions, and bounds of them by boxes.
///
/// Every operation of a canonical distance is rounded, and rounding keeps the
/// order of numbers: no vector of a box is nearer to a query than the point of
/// the box that is nearest by component, nor farther than the farthest, to the
/// last bit. So bounds are compared as they are, without room for errors.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/range/boxes/RangeBoxes.h"

namespace faiss_bits {

constexpr uint32_t kAllLanes = ~0u;

/// Of component differences x - q, each a term of its own slot: slots behind
/// the last add zero, which changes nothing, and are left out.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float distanceOf(
        const double (&differences)[kDims]) {
    using Terms = canonical::Terms<kMetric>;
    static_assert(kDims >= 1 && kDims <= canonical::kSlots);
    double s[kDims];
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const double t = differences[c];
        s[c] = kMetric == Metric::L2 ? canonical::mul(t, t) : canonical::abs(t);
    }
    // The tree of canonical::joinSlots.
    const auto pair = [&](int a, int b) {
        return b < kDims ? Terms::join(s[a], s[b < kDims ? b : 0]) : s[a];
    };
    double sum = pair(0, 4);
    if constexpr (kDims > 2) {
        sum = Terms::join(sum, pair(2, 6));
    }
    if constexpr (kDims > 1) {
        double odd = pair(1, 5);
        if constexpr (kDims > 3) {
            odd = Terms::join(odd, pair(3, 7));
        }
        sum = Terms::join(sum, odd);
    }
    return canonical::toFloat32(sum);
}

/// x(c): component c.
template <Metric kMetric, int kDims, class X>
__device__ __forceinline__ float distanceTo(
        const float (&query)[kDims],
        const X& x) {
    double differences[kDims];
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        differences[c] = canonical::sub(double(x(c)), double(query[c]));
    }
    return distanceOf<kMetric, kDims>(differences);
}

/// Not above the distance of any vector in the box; NaN where nothing is known.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float leastOfBox(
        const float (&query)[kDims],
        const float (&least)[kDims],
        const float (&greatest)[kDims]) {
    return distanceTo<kMetric>(query, [&](int c) {
        return query[c] < least[c]       ? least[c]
                : query[c] > greatest[c] ? greatest[c]
                                         : query[c];
    });
}

/// Not below it.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float mostOfBox(
        const float (&query)[kDims],
        const float (&least)[kDims],
        const float (&greatest)[kDims]) {
    double differences[kDims];
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const double low = canonical::abs(canonical::sub(least[c], query[c]));
        const double high =
                canonical::abs(canonical::sub(greatest[c], query[c]));
        differences[c] = canonical::larger(low, high);
    }
    return distanceOf<kMetric, kDims>(differences);
}

} // namespace faiss_bits
