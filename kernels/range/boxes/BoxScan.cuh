/// Goes through the boxes of a chunk that a query's range touches.
#pragma once

#include "kernels/device/LaneMask.cuh"
#include "kernels/range/boxes/BoxDistance.cuh"
#include "kernels/range/boxes/BoxParams.h"

namespace faiss_bits {

/// Box `at` of 32 whose bounds lie together.
template <int kDims>
struct BoxBounds {
    float least[kDims];
    float greatest[kDims];

    __device__ __forceinline__ BoxBounds(const float* bounds, uint32_t at) {
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            least[c] = bounds[2 * c * kLargeBoxes + at];
            greatest[c] = bounds[(2 * c + 1) * kLargeBoxes + at];
        }
    }
};

template <int kDims>
__device__ __forceinline__ void loadQuery(
        const BoxSearch& s,
        uint32_t query,
        float (&q)[kDims]) {
    const int d = s.boxes.shape.d;
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        q[c] = c < d ? s.queries[int64_t(query) * d + c] : 0.0f;
    }
}

/// Large boxes of a chunk, with those that fill up the last 32.
__device__ __forceinline__ uint32_t
largeOfChunk(const RangeBoxes& boxes, uint32_t chunk) {
    const uint32_t most = boxes.chunkIds / (kBoxVectors * kLargeBoxes);
    return min(most, boxes.numLarge - chunk * most);
}

/// Calls, with all lanes of the warp,
///   whole(first, boxes)         boxes first + i, bit i: all 32 are in range
///   vectors(box, found, distance)  a lane a vector of a box
/// for the part of a chunk that is that of warp `warp` of `warps`. kWhole:
/// whether boxes are ever taken as a whole.
template <Metric kMetric, int kDims, bool kWhole, class Whole, class Vectors>
__device__ __forceinline__ void scanBoxes(
        const BoxSearch& s,
        const float (&q)[kDims],
        uint32_t chunk,
        uint32_t warp,
        uint32_t warps,
        const Whole& whole,
        const Vectors& vectors) {
    const RangeBoxes& boxes = s.boxes;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t first =
            chunk * (boxes.chunkIds / (kBoxVectors * kLargeBoxes));
    const uint32_t count = largeOfChunk(boxes, chunk);
    for (uint32_t base = 0; base < count; base += 32 * warps) {
        // Neighbours go to different warps.
        const uint32_t own = base + lane * warps + warp;
        bool touches = own < count;
        if (touches) {
            const uint32_t l = first + own;
            const BoxBounds<kDims> b(
                    boxes.large +
                            size_t(l / kLargeBoxes) * (2 * kDims * kLargeBoxes),
                    l % kLargeBoxes);
            touches = !(leastOfBox<kMetric>(q, b.least, b.greatest) > s.limit);
        }
        uint32_t touched = __ballot_sync(kAllLanes, touches);
        while (touched) {
            const uint32_t l =
                    first + base + (__ffs(int(touched)) - 1) * warps + warp;
            touched &= touched - 1;
            const BoxBounds<kDims> b(
                    boxes.boxes + size_t(l) * (2 * kDims * kLargeBoxes), lane);
            uint32_t hits = __ballot_sync(
                    kAllLanes,
                    !(leastOfBox<kMetric>(q, b.least, b.greatest) > s.limit));
            if constexpr (kWhole) {
                const uint32_t inside = boxes.full[l] &
                        __ballot_sync(kAllLanes,
                                      mostOfBox<kMetric>(
                                              q, b.least, b.greatest) <=
                                              s.limit);
                if (inside) {
                    whole(l * kLargeBoxes, inside);
                    hits &= ~inside;
                }
            }
            while (hits) {
                const uint32_t box = l * kLargeBoxes + __ffs(int(hits)) - 1;
                hits &= hits - 1;
                const float* x =
                        boxes.components + size_t(box) * (kDims * kBoxVectors);
                const float distance = distanceTo<kMetric>(
                        q, [&](int c) { return x[c * kBoxVectors + lane]; });
                vectors(box, distance <= s.limit, distance);
            }
        }
    }
}

/// Whether a vector of a chunk takes part.
__device__ __forceinline__ bool isAllowed(
        const BoxSearch& s,
        uint32_t chunk,
        uint32_t id) {
    const uint32_t all = chunk * s.boxes.chunkIds + id;
    return s.allowedBits[all / 32] >> all % 32 & 1;
}

} // namespace faiss_bits
