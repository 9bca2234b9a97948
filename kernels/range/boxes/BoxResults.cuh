/// What kernels that write results share.
#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/range/boxes/BoxScan.cuh"

namespace faiss_bits {

/// A result on its way: its id within the chunk, and the bits of its distance.
using Found = uint2;

/// Where the first result of a unit goes.
__device__ __forceinline__ int64_t
firstResult(const BoxSearch& s, uint32_t unit) {
    return s.offsets[unit] - s.offsets[s.firstUnit];
}

/// Place `at` of the part.
__device__ __forceinline__ void storeResult(
        const BoxSearch& s,
        int64_t at,
        uint32_t chunk,
        Found found) {
    s.distances[at] = __uint_as_float(found.y);
    s.ids[at] = idx_t(chunk) * s.boxes.chunkIds + found.x;
}

/// The results in slots, of which the lane has those that isOwn says. All reads
/// are under way before the first one is waited for.
template <int kCount, Metric kMetric, int kDims>
__device__ __forceinline__ void loadFound(
        const RangeBoxes& boxes,
        const BoxQuery<kMetric, kDims>& query,
        const uint32_t (&slots)[kCount],
        const bool (&isOwn)[kCount],
        Found (&found)[kCount]) {
    float x[kCount][kDims];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        if (isOwn[j]) {
            found[j].x = boxes.ids[slots[j]];
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                x[j][c] = componentOf<kDims>(boxes, slots[j], c);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        if (isOwn[j]) {
            found[j].y = __float_as_uint(distanceTo<kMetric>(
                    query.q, [&](int c) { return x[j][c]; }));
        }
    }
}

} // namespace faiss_bits
