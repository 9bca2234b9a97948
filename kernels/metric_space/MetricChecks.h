#pragma once

#include <cmath>
#include <limits>
#include <random>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/common/Error.h"
#include "kernels/metric_space/MetricSpace.h"

/// What the CPU and the GPU have to say alike. Not part of the API.
namespace faiss_bits::metric_space {

/// Throws Error naming the value, unless the metric has a true distance, d >= 1
/// and 0 <= n < 2^31.
inline void checkMetricVectors(const MetricVectors& vectors) {
    BITS_THROW_IF_NOT_FMT(
            canonical::hasTrueDistance(vectors.metric),
            "metric = %d is not supported: L2 (%d), L1 (%d) and Linf (%d) are",
            int(vectors.metric),
            int(Metric::L2),
            int(Metric::L1),
            int(Metric::Linf));
    BITS_THROW_IF_NOT_FMT(vectors.d >= 1, "d = %d is below 1", vectors.d);
    BITS_THROW_IF_NOT_FMT(
            0 <= vectors.n && vectors.n <= std::numeric_limits<int32_t>::max(),
            "n = %lld is outside 0..2^31 - 1",
            (long long)vectors.n);
    BITS_THROW_IF_NOT_FMT(
            vectors.data || vectors.n == 0, "vectors are a null pointer");
}

/// Throws Error unless bucketSize is 1 or more.
inline void checkOptions(const ListOfClustersOptions& options) {
    BITS_THROW_IF_NOT_FMT(
            options.bucketSize >= 1,
            "bucketSize = %d is below 1",
            options.bucketSize);
}

/// Throws Error unless alpha is above 0 and maxPivots 1 or more.
inline void checkOptions(const PivotOptions& options) {
    BITS_THROW_IF_NOT_FMT(
            options.alpha > 0, "alpha = %g is not above 0", options.alpha);
    BITS_THROW_IF_NOT_FMT(
            options.maxPivots >= 1,
            "maxPivots = %d is below 1",
            options.maxPivots);
}

/// Throws Error for a radius that is NaN.
inline void checkRadius(float radius) {
    BITS_THROW_IF_NOT_FMT(!std::isnan(radius), "radius = NaN");
}

/// The greatest float32 that is in the range: distance < radius. Below 0 where
/// none is.
inline float greatestInside(float radius) {
    return std::nextafter(radius, -std::numeric_limits<float>::infinity());
}

/// Number of the first center among `count` vectors, above 0.
inline idx_t firstCenter(uint64_t seed, idx_t count) {
    return idx_t(std::mt19937_64(seed)() % uint64_t(count));
}

} // namespace faiss_bits::metric_space
