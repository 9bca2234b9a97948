#pragma once

#include "kernels/canonical/RoundedOps.h"
#include "kernels/common/Types.h"

/// Distances for which the triangle inequality holds, from canonical ones (L2:
/// the root of them): numbers that the true distance of two vectors is surely
/// not below, and not above. What rests on the inequality may discard a vector
/// only by these.
namespace faiss_bits::canonical {

// A canonical distance is the true one (L2: its square) but for d / 8 + 10
// roundings to float64 and one to float32. This is four times as much for d up
// to 2^26: sums and differences of bounds, in float64, are covered too.
constexpr double kTrueRoom = 0x1p-22;
constexpr double kTrueTiny = 0x1p-148; // for float32 below its normal numbers
constexpr float kMostFloat = 3.402823466e+38f;

/// Metrics that have a true distance.
constexpr bool hasTrueDistance(Metric metric) {
    return metric == Metric::L2 || metric == Metric::L1 ||
            metric == Metric::Linf;
}

/// The canonical distance, a number of float32, to a true one; not a bound.
BITS_HOST_DEVICE double trueDistance(Metric metric, double distance) {
    return metric == Metric::L2 ? sqrt(distance) : distance;
}

/// Not above the true distance of a pair with this canonical distance. NaN: 0.
BITS_HOST_DEVICE double leastTrue(Metric metric, float distance) {
    // Infinity may have been any number beyond the range of float32.
    const double known = distance > kMostFloat ? kMostFloat : distance;
    const double least = known * (1 - kTrueRoom) - kTrueTiny;
    return least > 0 ? trueDistance(metric, least) : 0.0;
}

/// Not below it. Infinity, NaN: infinity.
BITS_HOST_DEVICE double mostTrue(Metric metric, float distance) {
    if (!(distance <= kMostFloat)) {
        return __builtin_huge_val();
    }
    return trueDistance(metric, distance * (1 + kTrueRoom) + kTrueTiny);
}

/// Not below the true distance of any vector whose canonical distance is at
/// most `limit`; below 0 where there is none such.
BITS_HOST_DEVICE double reachOf(Metric metric, float limit) {
    return limit >= 0 ? mostTrue(metric, limit) : -1.0;
}

/// Whether the ball of a query, of this reach, surely has nothing in common
/// with that of a center, of this radius. NaN and infinities: false.
BITS_HOST_DEVICE bool areApart(
        Metric metric,
        float toCenter,
        float radius,
        double reach) {
    return leastTrue(metric, toCenter) > mostTrue(metric, radius) + reach;
}

/// Whether the query's ball is surely inside that of the center, so that
/// nothing as far from the center as its radius, or farther, is in it.
BITS_HOST_DEVICE bool isInside(
        Metric metric,
        float toCenter,
        float radius,
        double reach) {
    return mostTrue(metric, toCenter) + reach < leastTrue(metric, radius);
}

/// Whether a vector that is between `nearest` and `farthest` from a pivot is
/// surely out of the query's reach.
BITS_HOST_DEVICE bool isOutside(
        Metric metric,
        float toPivot,
        float nearest,
        float farthest,
        double reach) {
    return leastTrue(metric, toPivot) > mostTrue(metric, farthest) + reach ||
            leastTrue(metric, nearest) > mostTrue(metric, toPivot) + reach;
}

} // namespace faiss_bits::canonical
