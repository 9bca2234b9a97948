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

/// A true distance as tables keep it, with 24 bits: within kTableRoom of it,
/// and kTableTiny.
BITS_HOST_DEVICE float tableDistance(Metric metric, float distance) {
    return toFloat32(trueDistance(metric, distance));
}

// The roundings of two numbers of a table, four times over.
constexpr float kTableRoom = 0x1p-21f;
constexpr float kTableTiny = 0x1p-72f;

/// Whether a vector x is surely out of the reach of a query q, for which a
/// table has the distances of both to a pivot: |d(p, x) - d(p, q)| > reach. NaN
/// and infinities: false.
BITS_HOST_DEVICE bool isOutside(float ofVector, float ofQuery, double reach) {
    const double gap = abs(double(ofVector) - double(ofQuery));
    const double sum = double(ofVector) + double(ofQuery);
    return gap > reach + (kTableRoom * sum + kTableTiny);
}

/// A number that the distance of x and q is surely not below, by the same; 0 or
/// more.
BITS_HOST_DEVICE double leastByPivot(float ofVector, float ofQuery) {
    const double gap = abs(double(ofVector) - double(ofQuery));
    const double sum = double(ofVector) + double(ofQuery);
    const double least = gap - (kTableRoom * sum + kTableTiny);
    return least > 0 ? least : 0.0;
}

} // namespace faiss_bits::canonical
