#pragma once

#include <cstdint>

#include "kernels/canonical/TrueDistance.h"

/// The order of a PivotTable, by a key of 64 bits and then by id.
///
/// In few dimensions along a Z-order curve through the distances to the first
/// pivots, so that neighbours have about the same distance to each of them. In
/// more, where distances to a few pivots tell little of the others, by the
/// nearest pivot and the distance to it.
namespace faiss_bits::metric_space {

/// Up to so many dimensions are few.
constexpr int kCurveDims = 16;
/// The first pivots, which the curve is made of.
constexpr int kCurvePivots = 8;
/// Of a key.
constexpr int kCurveBits = 56;

/// Bits of each of so many distances.
BITS_HOST_DEVICE int curveBitsEach(int pivots) {
    const int bits = kCurveBits / pivots;
    return bits < 20 ? bits : 20;
}

/// What the distance to pivot `number` of `pivots` has of a vector's key: the
/// first bits of all distances come first.
///
/// distance     canonical
/// maxDistance  M, a true distance; where it is 0 all are alike
BITS_HOST_DEVICE uint64_t curveBits(
        Metric metric,
        float distance,
        double maxDistance,
        int number,
        int pivots) {
    const int bits = curveBitsEach(pivots);
    const double most = double((1 << bits) - 1);
    const double part = maxDistance > 0
            ? canonical::trueDistance(metric, distance) / maxDistance * most
            : 0.0;
    const uint32_t cell = uint32_t(part < most ? part : most);
    uint64_t key = 0;
    for (int b = 0; b < bits; ++b) {
        key |= uint64_t(cell >> b & 1) << (b * pivots + pivots - 1 - number);
    }
    return key;
}

} // namespace faiss_bits::metric_space
