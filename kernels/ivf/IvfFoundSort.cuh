/// What a block has found, in the order of the results.
#pragma once

#include <cstdint>

namespace faiss_bits {

/// By (key, id), by a block of kThreads, which is in step before and after: a
/// bitonic network whose steps begin with a mirrored one, so that places behind
/// the last count as the greatest.
template <int kThreads>
__device__ __forceinline__ void sortIvfFound(
        uint32_t* keys,
        int64_t* ids,
        uint32_t count) {
    const auto compareAndSwap = [&](uint32_t a, uint32_t b) {
        if (b < count &&
            (keys[b] < keys[a] || (keys[b] == keys[a] && ids[b] < ids[a]))) {
            const uint32_t key = keys[a];
            keys[a] = keys[b];
            keys[b] = key;
            const int64_t id = ids[a];
            ids[a] = ids[b];
            ids[b] = id;
        }
    };
    for (uint32_t size = 2; size < 2 * count; size *= 2) {
        const uint32_t half = size / 2;
        for (uint32_t i = threadIdx.x; i / half * size < count; i += kThreads) {
            const uint32_t block = i / half * size;
            compareAndSwap(block + i % half, block + size - 1 - i % half);
        }
        __syncthreads();
        for (uint32_t distance = half / 2; distance >= 1; distance /= 2) {
            for (uint32_t i = threadIdx.x; i / distance * 2 * distance < count;
                 i += kThreads) {
                const uint32_t a = i / distance * 2 * distance + i % distance;
                compareAndSwap(a, a + distance);
            }
            __syncthreads();
        }
    }
}

} // namespace faiss_bits
