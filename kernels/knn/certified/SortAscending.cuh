#pragma once

#include <cstdint>

namespace faiss_bits {

/// Of a block, or of a warp that works by itself.
template <int kThreads>
__device__ __forceinline__ void syncTeam() {
    if constexpr (kThreads == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// Bitonic, every comparison putting the lesser entry first: what is
/// beyond the end counts as greater than all, and is never touched. Up to 2^30
/// entries.
template <int kThreads>
__device__ __forceinline__ void sortAscending(
        volatile uint64_t* entries,
        uint32_t count) {
    for (uint32_t size = 2; size / 2 < count; size *= 2) {
        for (uint32_t distance = size / 2; distance >= 1; distance /= 2) {
            syncTeam<kThreads>();
            const bool flips = distance == size / 2;
            for (uint32_t i = threadIdx.x % kThreads;; i += kThreads) {
                // Powers of two: a division takes longer than all else.
                const uint32_t within = i & (distance - 1);
                const uint32_t a = (i - within) * 2 + within;
                if (a >= count) {
                    break;
                }
                const uint32_t b =
                        flips ? (a | (size - 1)) - within : a + distance;
                if (b < count) {
                    const uint64_t first = entries[a];
                    const uint64_t second = entries[b];
                    if (second < first) {
                        entries[a] = second;
                        entries[b] = first;
                    }
                }
            }
        }
    }
    syncTeam<kThreads>();
}

} // namespace faiss_bits
