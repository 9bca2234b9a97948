/// What passed, to the list of its query.
#pragma once

#include "kernels/knn/fused/pairwise/FusedPairwiseParams.h"

namespace faiss_bits {

__device__ __forceinline__ bool isAllowed(
        const FusedPairwiseParams& params,
        idx_t vector) {
    return vector < params.pairs.vectors.count &&
            (!params.allowedBits ||
             (__ldg(params.allowedBits + vector / 32) >> (vector % 32) & 1));
}

/// Whether a key passes; NaN does.
__device__ __forceinline__ bool passesLimit(
        const FusedPairwiseParams& params,
        idx_t query,
        float key) {
    return !(key > __ldg(params.passed.limits + query));
}

/// Room for `count` more of the query; where the first of them goes.
__device__ __forceinline__ uint32_t
takeRoom(const FusedPairwiseParams& params, idx_t query, int count) {
    return atomicAdd(params.passed.counts + query, uint32_t(count));
}

__device__ __forceinline__ void storePassed(
        const FusedPairwiseParams& params,
        idx_t query,
        uint32_t place,
        idx_t vector) {
    if (place < params.passed.capacity) {
        params.passed.columns[query * params.passed.capacity + place] =
                uint32_t(vector);
    }
}

/// Appends the vectors vectorOf(j), of the bits j of the mask, that exist and
/// are allowed. By one thread, with one atomic.
template <class VectorOf>
__device__ __forceinline__ void appendMask(
        const FusedPairwiseParams& params,
        idx_t query,
        uint32_t mask,
        VectorOf vectorOf) {
    if (query >= params.pairs.queries.count) {
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        const int j = __ffs(int(left)) - 1;
        if (!isAllowed(params, vectorOf(j))) {
            mask &= ~(1u << j);
        }
    }
    if (!mask) {
        return;
    }
    if (params.passed.bits) {
        uint32_t* row = params.passed.bits + query * params.passed.words;
        for (; mask; mask &= mask - 1) {
            const idx_t vector = vectorOf(__ffs(int(mask)) - 1);
            atomicOr(&row[vector / 32], 1u << (vector % 32));
        }
        return;
    }
    uint32_t place = takeRoom(params, query, __popc(mask));
    for (uint32_t left = mask; left; left &= left - 1) {
        storePassed(params, query, place++, vectorOf(__ffs(int(left)) - 1));
    }
}

} // namespace faiss_bits
