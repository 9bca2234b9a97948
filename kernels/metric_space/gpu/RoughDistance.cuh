/// Distances in few dimensions by float32, which say where canonical ones are
/// needed.
///
/// A float32 distance has one rounding for each difference and each square, and
/// 15 for the sum of 16: with the one of the canonical distance it is off by
/// less than 2^-19 of it, and by less than 2^-140 where numbers are below the
/// normal ones. What is farther than that from a limit is decided.
#pragma once

#include "kernels/metric_space/gpu/RowDistances.cuh"
#include "kernels/metric_space/gpu/SearchParams.h"

namespace faiss_bits::metric_space {

constexpr float kRoughRoom = 0x1p-19f;
constexpr float kRoughTiny = 0x1p-140f;

/// NaN where a difference is.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float roughDistance(
        const float (&x)[kDims],
        const float* q) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        const float t = x[c] - q[c];
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

/// What is in range: canonical distances up to `limit`.
struct RoughLimit {
    float limit = 0;
    float surelyIn = 0;  ///< float32 ones up to this are
    float surelyOut = 0; ///< and above this are not

    RoughLimit() = default;
    explicit RoughLimit(float limit)
            : limit(limit),
              surelyIn(limit * (1 - kRoughRoom) - kRoughTiny),
              surelyOut(limit * (1 + kRoughRoom) + kRoughTiny) {}

    /// True for NaN, of which the canonical distance knows.
    __device__ __forceinline__ bool mayHave(float rough) const {
        return !(rough > surelyOut);
    }
};

/// A float32 distance above this belongs to a true distance above `most`.
template <Metric kMetric>
__device__ __forceinline__ float roughOfTrue(double most) {
    const double room = 1 + 2 * double(kRoughRoom);
    const double limit = kMetric == Metric::L2 ? most * most : most;
    return __double2float_ru(limit * room + double(kRoughTiny));
}

/// Calls body with the least number of components, as a constant, that there
/// are kernels for.
template <class Body>
void withFewDims(int d, const Body& body) {
    if (d <= 3) {
        body(std::integral_constant<int, 3>());
    } else if (d == 4) {
        body(std::integral_constant<int, 4>());
    } else if (d <= 8) {
        body(std::integral_constant<int, 8>());
    } else {
        body(std::integral_constant<int, kMostWarpDims>());
    }
}

} // namespace faiss_bits::metric_space
