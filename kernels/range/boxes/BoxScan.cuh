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

    BoxBounds() = default;

    __device__ __forceinline__ BoxBounds(const float* bounds, uint32_t at) {
#pragma unroll
        for (int c = 0; c < kDims; ++c) {
            least[c] = bounds[2 * c * kLargeBoxes + at];
            greatest[c] = bounds[(2 * c + 1) * kLargeBoxes + at];
        }
    }
};

template <Metric kMetric, int kDims>
__device__ __forceinline__ BoxQuery<kMetric, kDims> loadQuery(
        const BoxSearch& s,
        uint32_t query) {
    BoxQuery<kMetric, kDims> own;
    const int d = s.boxes.shape.d;
#pragma unroll
    for (int c = 0; c < kDims; ++c) {
        own.q[c] = c < d ? s.queries[int64_t(query) * d + c] : 0.0f;
    }
    own.setLimit(s.limit);
    return own;
}

/// Large boxes of a chunk, with those that fill up the last 32.
__device__ __forceinline__ uint32_t
largeOfChunk(const RangeBoxes& boxes, uint32_t chunk) {
    const uint32_t most = boxes.chunkIds / (kBoxVectors * kLargeBoxes);
    return min(most, boxes.numLarge - chunk * most);
}

/// Boxes that a warp has found and not looked into yet.
constexpr int kQueuedBoxes = 128;
struct BoxQueue {
    uint32_t boxes[kQueuedBoxes];
};

/// Boxes whose reads are under way at a time: what a scan waits for.
constexpr int kBoxesAhead = 4;

/// Calls, with all lanes of the warp,
///   whole(isIn)        a lane a box, whether all 32 are surely in range
///   vectors(x, id)     a lane a vector of a box that is touched
/// for the part of a chunk that is that of warp `warp` of `warps`. kWhole:
/// whether boxes are ever taken as a whole. kIds: whether ids are read.
template <
        bool kWhole,
        bool kIds,
        Metric kMetric,
        int kDims,
        class Whole,
        class Vectors>
__device__ __forceinline__ void scanBoxes(
        const BoxSearch& s,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t chunk,
        uint32_t warp,
        uint32_t warps,
        BoxQueue& queue,
        const Whole& whole,
        const Vectors& vectors) {
    const RangeBoxes& boxes = s.boxes;
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t first =
            chunk * (boxes.chunkIds / (kBoxVectors * kLargeBoxes));
    const uint32_t count = largeOfChunk(boxes, chunk);
    uint32_t queued = 0;
    const auto drain = [&] {
        __syncwarp();
        for (uint32_t at = 0; at < queued; at += kBoxesAhead) {
            float x[kBoxesAhead][kDims];
            uint32_t ids[kBoxesAhead];
#pragma unroll
            for (int j = 0; j < kBoxesAhead; ++j) {
                if (at + j < queued) {
                    const size_t slot =
                            size_t(queue.boxes[at + j]) * kBoxVectors;
#pragma unroll
                    for (int c = 0; c < kDims; ++c) {
                        x[j][c] =
                                boxes.components
                                        [slot * kDims + c * kBoxVectors + lane];
                    }
                    ids[j] = kIds ? boxes.ids[slot + lane] : 0;
                }
            }
#pragma unroll
            for (int j = 0; j < kBoxesAhead; ++j) {
                if (at + j < queued) {
                    vectors(x[j], ids[j]);
                }
            }
        }
        queued = 0;
        __syncwarp();
    };
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
            touches = query.mayTouch(b.least, b.greatest);
        }
        uint32_t touched = __ballot_sync(kAllLanes, touches);
        while (touched) {
            uint32_t large[2];
            BoxBounds<kDims> bounds[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                large[j] = ~0u;
                if (touched) {
                    large[j] = first + base +
                            (__ffs(int(touched)) - 1) * warps + warp;
                    touched &= touched - 1;
                    bounds[j] = BoxBounds<kDims>(
                            boxes.boxes +
                                    size_t(large[j]) *
                                            (2 * kDims * kLargeBoxes),
                            lane);
                }
            }
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                if (large[j] == ~0u) {
                    continue;
                }
                const BoxBounds<kDims>& b = bounds[j];
                bool isHit = query.mayTouch(b.least, b.greatest);
                if constexpr (kWhole) {
                    const bool isWhole = isHit &&
                            query.surelyHas(b.least, b.greatest) &&
                            boxes.full[large[j]] >> lane & 1;
                    whole(isWhole);
                    isHit = isHit && !isWhole;
                }
                const uint32_t hits = __ballot_sync(kAllLanes, isHit);
                if (isHit) {
                    queue.boxes[queued + __popc(hits & lanesBefore())] =
                            large[j] * kLargeBoxes + lane;
                }
                queued += __popc(hits);
            }
            if (queued > kQueuedBoxes - 2 * kLargeBoxes) {
                drain();
            }
        }
    }
    drain();
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
