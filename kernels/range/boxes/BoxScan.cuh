/// Goes through the boxes of a chunk that a query's range touches.
#pragma once

#include <algorithm>

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

__device__ __forceinline__ uint32_t
firstLargeOf(const RangeBoxes& boxes, uint32_t chunk) {
    return chunk * (boxes.chunkIds / (kBoxVectors * kLargeBoxes));
}

template <int kDims>
__device__ __forceinline__ BoxBounds<kDims> boundsOfLarge(
        const RangeBoxes& boxes,
        uint32_t large) {
    return BoxBounds<kDims>(
            boxes.large +
                    size_t(large / kLargeBoxes) * (2 * kDims * kLargeBoxes),
            large % kLargeBoxes);
}

template <int kDims>
__device__ __forceinline__ BoxBounds<kDims> boundsOfHuge(
        const RangeBoxes& boxes,
        uint32_t huge) {
    return BoxBounds<kDims>(
            boxes.huge + size_t(huge / kLargeBoxes) * (2 * kDims * kLargeBoxes),
            huge % kLargeBoxes);
}

/// Of box `at` of a large one.
template <int kDims>
__device__ __forceinline__ BoxBounds<kDims> boundsOfBox(
        const RangeBoxes& boxes,
        uint32_t large,
        uint32_t at) {
    return BoxBounds<kDims>(
            boxes.boxes + size_t(large) * (2 * kDims * kLargeBoxes), at);
}

/// Boxes that a warp has found and not looked into yet.
constexpr int kQueuedBoxes = 128;
struct BoxQueue {
    uint32_t boxes[kQueuedBoxes];
};

/// Boxes whose reads are under way at a time: what a scan waits for.
constexpr int kBoxesAhead = 4;

/// Some boxes: a lane has a vector of each of the first `count`, NaN in places
/// of a box that has no vector there.
template <int kDims>
struct BoxVectors {
    const uint32_t* listed; // the boxes
    uint32_t count;         // of them
    float x[kBoxesAhead][kDims];

    /// Of the first of the boxes listed.
    __device__ __forceinline__ BoxVectors(
            const RangeBoxes& boxes,
            const uint32_t* listed,
            uint32_t numListed)
            : listed(listed), count(min(numListed, uint32_t(kBoxesAhead))) {
#pragma unroll
        for (uint32_t j = 0; j < kBoxesAhead; ++j) {
            if (j < count) {
                const float* box = boxes.components +
                        size_t(listed[j]) * (kDims * kBoxVectors);
#pragma unroll
                for (int c = 0; c < kDims; ++c) {
                    x[j][c] = box[c * kBoxVectors + threadIdx.x % 32];
                }
            }
        }
    }

    /// Where in RangeBoxes::ids the lane's vector of box j is.
    __device__ __forceinline__ uint32_t slot(uint32_t j) const {
        return listed[j] * kBoxVectors + threadIdx.x % 32;
    }
};

/// Component c of the vector in a slot.
template <int kDims>
__device__ __forceinline__ float componentOf(
        const RangeBoxes& boxes,
        uint32_t slot,
        int c) {
    return boxes.components
            [size_t(slot / kBoxVectors) * (kDims * kBoxVectors) +
             c * kBoxVectors + slot % kBoxVectors];
}

/// The canonical distance of the vector in a slot.
template <Metric kMetric, int kDims>
__device__ __forceinline__ float slotDistance(
        const RangeBoxes& boxes,
        const BoxQuery<kMetric, kDims>& query,
        uint32_t slot) {
    return distanceTo<kMetric>(
            query.q, [&](int c) { return componentOf<kDims>(boxes, slot, c); });
}

/// Calls, with all lanes of the warp,
///   whole(isIn)        a lane a box, whether all 32 are surely in range
///   vectors(some)      BoxVectors of boxes that are touched
/// for the part of a chunk that is that of warp `warp` of `warps`. kWhole:
/// whether boxes are ever taken as a whole.
template <bool kWhole, Metric kMetric, int kDims, class Whole, class Vectors>
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
    const uint32_t first = firstLargeOf(boxes, chunk) / kLargeBoxes;
    const uint32_t count = largeOfChunk(boxes, chunk) / kLargeBoxes;
    uint32_t queued = 0;
    uint32_t base = 0;
    uint32_t huge = 0;    // that are touched, of the 32 before base
    uint32_t group = 0;   // the first large box of one
    uint32_t touched = 0; // of its large boxes
    do {
        while (queued <= kQueuedBoxes - 2 * kLargeBoxes) {
            if (touched == 0) {
                if (huge == 0) {
                    if (base >= count) {
                        break;
                    }
                    bool touches = base + lane < count;
                    if (touches) {
                        const auto b =
                                boundsOfHuge<kDims>(boxes, first + base + lane);
                        touches = query.mayTouch(b.least, b.greatest);
                    }
                    huge = __ballot_sync(kAllLanes, touches);
                    base += 32;
                    continue;
                }
                group = (first + base - 33 + __ffs(int(huge))) * kLargeBoxes;
                huge &= huge - 1;
                // Neighbours go to different warps.
                const bool isOwn = lane % warps == warp;
                const auto b = boundsOfLarge<kDims>(boxes, group + lane);
                touched = __ballot_sync(
                        kAllLanes,
                        isOwn && query.mayTouch(b.least, b.greatest));
                continue;
            }
            uint32_t large[2];
            BoxBounds<kDims> bounds[2];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                large[j] = ~0u;
                if (touched) {
                    large[j] = group + __ffs(int(touched)) - 1;
                    touched &= touched - 1;
                    bounds[j] = boundsOfBox<kDims>(boxes, large[j], lane);
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
        }
        __syncwarp();
        for (uint32_t at = 0; at < queued; at += kBoxesAhead) {
            vectors(BoxVectors<kDims>(boxes, queue.boxes + at, queued - at));
        }
        queued = 0;
        __syncwarp();
    } while (touched || huge || base < count);
}

/// Whether the vector in a slot takes part.
__device__ __forceinline__ bool isAllowed(
        const BoxSearch& s,
        uint32_t chunk,
        uint32_t slot) {
    const uint32_t id = chunk * s.boxes.chunkIds + s.boxes.ids[slot];
    return s.allowedBits[id / 32] >> id % 32 & 1;
}

/// Which of the lane's vectors of some boxes are in range and take part: a bit
/// for each box. kFilters: whether any vector may take no part.
template <bool kFilters, Metric kMetric, int kDims>
__device__ __forceinline__ uint32_t
findIn(const BoxSearch& s,
       const BoxQuery<kMetric, kDims>& query,
       uint32_t chunk,
       const BoxVectors<kDims>& some) {
    uint32_t found = 0;
    uint32_t unsure = 0;
#pragma unroll
    for (uint32_t j = 0; j < kBoxesAhead; ++j) {
        if (j < some.count) {
            const float roughly = query.rough(some.x[j]);
            found |= uint32_t(roughly <= query.surelyIn) << j;
            unsure |= uint32_t(query.isUnsure(roughly)) << j;
        }
    }
    while (unsure) {
        const uint32_t bit = unsure & -unsure;
        const uint32_t slot = some.slot(__ffs(int(bit)) - 1);
        if (slotDistance(s.boxes, query, slot) <= query.limit) {
            found |= bit;
        }
        unsure ^= bit;
    }
    if (kFilters && s.allowedBits) {
        for (uint32_t left = found; left; left &= left - 1) {
            const uint32_t bit = left & -left;
            if (!isAllowed(s, chunk, some.slot(__ffs(int(bit)) - 1))) {
                found ^= bit;
            }
        }
    }
    return found;
}

/// Blocks of so many warps each for that many of them: all multiprocessors have
/// work, and blocks more than one turn of it only where there are many.
inline unsigned boxBlocks(
        uint64_t warps,
        int warpsOfBlock,
        int multiprocessors) {
    const uint64_t resident = uint64_t(multiprocessors) * 2;
    const uint64_t blocks = (warps + warpsOfBlock - 1) / warpsOfBlock;
    return unsigned(std::min(
            std::max(blocks, std::min(warps, resident)), 8 * resident));
}

/// What a block has to do of `count` units in a row: neighbours, which look
/// into the same boxes, so that these are in its cache.
struct BlockShare {
    uint32_t begin;
    uint32_t end;

    __device__ __forceinline__ explicit BlockShare(uint32_t count)
            : begin(uint32_t(uint64_t(count) * blockIdx.x / gridDim.x)),
              end(uint32_t(uint64_t(count) * (blockIdx.x + 1) / gridDim.x)) {}
};

} // namespace faiss_bits
