/// Canonical distances in few dimensions, and float32 ones that say where they
/// are needed.
///
/// A distance in float32 is off by one rounding for each difference, square and
/// sum: by less than 2^-20 of it, and by less than 2^-140 where numbers are
/// below the normal ones. What is farther than that from the limit is decided,
/// the rest by canonical distances.
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
    static_assert(kDims == 3 || kDims == 4);
    double s[kDims];
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const double t = differences[c];
        s[c] = kMetric == Metric::L2 ? canonical::mul(t, t) : canonical::abs(t);
    }
    // What is left of the tree of canonical::joinSlots.
    double sum = Terms::join(s[0], s[2]);
    if constexpr (kDims == 3) {
        sum = Terms::join(sum, s[1]);
    } else {
        sum = Terms::join(sum, Terms::join(s[1], s[3]));
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

/// The same in float32, of differences.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float roughOf(const float (&differences)[kDims]) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const float t = differences[c];
        if constexpr (kMetric == Metric::L2) {
            sum = fmaf(t, t, sum);
        } else if constexpr (kMetric == Metric::L1) {
            sum += fabsf(t);
        } else {
            // NaN stays: fmaxf would drop it.
            sum = sum != sum || fabsf(t) <= sum ? sum : fabsf(t);
        }
    }
    return sum;
}

/// A query, and where its range ends.
template <Metric kMetric, int kDims>
struct BoxQuery {
    float q[kDims];
    float limit;     ///< canonical distances up to it are in range
    float surelyIn;  ///< and float32 ones up to this
    float surelyOut; ///< float32 ones above this are not

    __device__ __forceinline__ void setLimit(float newLimit) {
        limit = newLimit;
        surelyIn = limit * (1 - 0x1p-20f) - 0x1p-140f;
        surelyOut = limit * (1 + 0x1p-20f) + 0x1p-140f;
    }

    /// False where no vector of the box is in range.
    __device__ __forceinline__ bool mayTouch(
            const float (&least)[kDims],
            const float (&greatest)[kDims]) const {
        float differences[kDims];
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            differences[c] =
                    fmaxf(fmaxf(least[c] - q[c], q[c] - greatest[c]), 0.0f);
        }
        return !(roughOf<kMetric, kDims>(differences) > surelyOut);
    }

    /// True where all of them are.
    __device__ __forceinline__ bool surelyHas(
            const float (&least)[kDims],
            const float (&greatest)[kDims]) const {
        float differences[kDims];
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            differences[c] =
                    fmaxf(fabsf(least[c] - q[c]), fabsf(greatest[c] - q[c]));
        }
        return roughOf<kMetric, kDims>(differences) <= surelyIn;
    }

    __device__ __forceinline__ float rough(const float (&x)[kDims]) const {
        float differences[kDims];
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            differences[c] = x[c] - q[c];
        }
        return roughOf<kMetric, kDims>(differences);
    }

    /// Where a distance in float32 decides nothing. NaN is out: the canonical
    /// distance is NaN, too.
    __device__ __forceinline__ bool isUnsure(float roughly) const {
        return roughly > surelyIn && roughly <= surelyOut;
    }
};

} // namespace faiss_bits
