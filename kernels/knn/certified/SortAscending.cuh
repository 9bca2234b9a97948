#pragma once

#include <cstdint>

namespace faiss_bits {

/// Bitonic, every comparison putting the lesser entry first: what is
/// beyond the end counts as greater than all, and is never touched.
template <int kThreads>
__device__ __forceinline__ void sortAscending(
        volatile uint64_t* entries,
        uint32_t count) {
    for (uint64_t size = 2; size < 2 * uint64_t(count); size *= 2) {
        for (uint64_t distance = size / 2; distance >= 1; distance /= 2) {
            __syncthreads();
            const bool flips = distance == size / 2;
            for (uint64_t i = threadIdx.x;; i += kThreads) {
                const uint64_t a = i / distance * 2 * distance + i % distance;
                if (a >= count) {
                    break;
                }
                const uint64_t b =
                        flips ? (a | (size - 1)) - i % distance : a + distance;
                if (b < count && entries[b] < entries[a]) {
                    const uint64_t entry = entries[a];
                    entries[a] = entries[b];
                    entries[b] = entry;
                }
            }
        }
    }
    __syncthreads();
}

} // namespace faiss_bits
