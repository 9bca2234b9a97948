/// Canonical distances of rows to one vector, by a thread each in few
/// dimensions, by eight lanes each in more.
///
/// Bound by: reading the rows, which lie anywhere.
#pragma once

#include "kernels/canonical/TrueDistance.h"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits::metric_space {

constexpr int kRowThreads = 256;
/// Up to so many components are one thread's.
constexpr int kThreadDims = 16;

/// The canonical distance of two vectors, by one thread. x(c) is component c.
template <Metric kMetric, class X>
__device__ __forceinline__ float threadDistance(
        const X& x,
        const float* q,
        int d) {
    using Terms = canonical::Terms<kMetric>;
    double sums[1][canonical::kSlots] = {};
    for (int first = 0; first < d; first += canonical::kSlots) {
#pragma unroll
        for (int slot = 0; slot < canonical::kSlots; ++slot) {
            const int c = first + slot;
            if (c < d) {
                Terms::add(
                        &sums[0][slot],
                        double(x(c)),
                        double(q[c]),
                        canonical::Power());
            }
        }
    }
    return canonical::toFloat32(canonical::joinSlots<Terms>(sums));
}

/// The same of components that are float64 already; those behind d are zeros,
/// which change no bit.
template <Metric kMetric, int kDims, class X, class Q>
__device__ __forceinline__ float fixedDistance(const X& x, const Q& q) {
    using Terms = canonical::Terms<kMetric>;
    double sums[1][canonical::kSlots] = {};
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        Terms::add(
                &sums[0][c % canonical::kSlots],
                x(c),
                q(c),
                canonical::Power());
    }
    return canonical::toFloat32(canonical::joinSlots<Terms>(sums));
}

/// take(i, distance) for i = 0 .. count - 1, of row(i) and the vector `to`; by
/// one thread each. A row that is nullptr has no distance, and is not taken.
/// All threads of all blocks call it.
template <Metric kMetric, class Row, class Take>
__device__ __forceinline__ void forRowDistances(
        uint32_t count,
        int d,
        const float* to,
        const Row& row,
        const Take& take) {
    if (d <= kThreadDims) {
        for (uint32_t i = blockIdx.x * kRowThreads + threadIdx.x; i < count;
             i += gridDim.x * kRowThreads) {
            if (const float* x = row(i)) {
                take(i,
                     threadDistance<kMetric>(
                             [&](int c) { return x[c]; }, to, d));
            }
        }
        return;
    }
    constexpr uint32_t kRows = kRowThreads / kPairLanes;
    for (uint32_t first = blockIdx.x * kRows; first < count;
         first += gridDim.x * kRows) {
        const uint32_t i = first + threadIdx.x / kPairLanes;
        const float* x = i < count ? row(i) : nullptr;
        const double distance =
                pairDistance<kMetric>(x, 1, to, x ? d : 0, canonical::Power());
        if (x && threadIdx.x % kPairLanes == 0) {
            take(i, canonical::toFloat32(distance));
        }
    }
}

/// Blocks for so many rows.
inline unsigned rowBlocks(uint64_t count, int d) {
    const uint64_t rows =
            d <= kThreadDims ? kRowThreads : kRowThreads / kPairLanes;
    const uint64_t blocks = (count + rows - 1) / rows;
    return unsigned(blocks < 1 ? 1 : blocks > 8192 ? 8192 : blocks);
}

/// Calls body with the metric as a constant.
template <class Body>
void withMetric(Metric metric, const Body& body) {
    switch (metric) {
        case Metric::L1:
            return body(std::integral_constant<Metric, Metric::L1>());
        case Metric::Linf:
            return body(std::integral_constant<Metric, Metric::Linf>());
        default:
            return body(std::integral_constant<Metric, Metric::L2>());
    }
}

} // namespace faiss_bits::metric_space
