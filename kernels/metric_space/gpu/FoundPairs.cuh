/// Results on their way: pairs of a query and a vector, in any order, or bits.
#pragma once

#include "kernels/device/LaneMask.cuh"
#include "kernels/metric_space/gpu/SearchParams.h"

namespace faiss_bits::metric_space {

__device__ __forceinline__ void storePair(
        const FoundPairs& found,
        unsigned long long place,
        uint32_t query,
        int32_t id,
        float distance) {
    if (place < found.capacity) {
        found.keys[place] = uint64_t(query) << found.idBits | uint32_t(id);
        found.distances[place] = distance;
    }
}

__device__ __forceinline__ void setBit(
        const FoundPairs& found,
        uint32_t query,
        int32_t id) {
    atomicOr(
            found.bits + size_t(query) * found.bitWords + id / 32,
            1u << (id % 32));
}

/// Those of the lanes of which isFound. All lanes of the warp call it.
__device__ __forceinline__ void appendOfWarp(
        const FoundPairs& found,
        bool isFound,
        uint32_t query,
        int32_t id,
        float distance) {
    const uint32_t lanes = __ballot_sync(~0u, isFound);
    if (lanes == 0) {
        return;
    }
    const int leader = __ffs(int(lanes)) - 1;
    unsigned long long first = 0;
    if (int(threadIdx.x % 32) == leader) {
        first = atomicAdd(found.count, (unsigned long long)__popc(lanes));
    }
    first = __shfl_sync(~0u, first, leader);
    if (isFound) {
        storePair(
                found,
                first + __popc(lanes & lanesBefore()),
                query,
                id,
                distance);
    }
}

} // namespace faiss_bits::metric_space
