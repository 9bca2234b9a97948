/// Words of candidates, as the kernels of a range search read them.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/range/RangeParams.h"

namespace faiss_bits {

/// Whether a row may have results at all.
__device__ __forceinline__ bool hasCandidates(
        const RangeCandidates& candidates,
        uint32_t row) {
    return !candidates.limits ||
            candidates.limits[row] != -__builtin_huge_valf();
}

/// The bits of vectors 32 `word` and on of a row that may have results.
__device__ __forceinline__ uint32_t
candidateWord(const RangeCandidates& candidates, uint32_t row, uint64_t word) {
    const RangeItems& items = candidates.items;
    if (word >= items.words) {
        return 0;
    }
    uint32_t bits =
            candidates.bits ? candidates.bits[row * items.words + word] : ~0u;
    if (candidates.allowedBits) {
        bits &= candidates.allowedBits[word];
    }
    const int rest = int(candidates.n % kWarpSize);
    if (rest != 0 && word == items.words - 1) {
        bits &= (1u << rest) - 1;
    }
    return bits;
}

/// NaN is in no range.
__device__ __forceinline__ bool isInRange(
        float distance,
        float radius,
        bool largest) {
    return largest ? distance > radius : distance < radius;
}

} // namespace faiss_bits
