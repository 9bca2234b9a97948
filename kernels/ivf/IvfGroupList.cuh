/// Groups of 32 columns of a row, more than shared memory has room for.
#pragma once

#include <cstdint>

#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// The numbers of groups whose least key is up to a limit take the places of
/// the row's least keys, `total` of them, in any order; numGroups, in shared
/// memory, becomes their number. By a block of kThreads, which is in step
/// before and after. Out of line, so that it costs the others no registers.
template <int kThreads>
__device__ __noinline__ void listIvfGroups(
        uint32_t* least,
        uint32_t total,
        uint32_t limit,
        uint32_t* numGroups) {
    constexpr int kOfThread = 8;
    __syncthreads(); // all have read the number of groups
    if (threadIdx.x == 0) {
        *numGroups = 0;
    }
    for (uint32_t begin = 0; begin < total; begin += kThreads * kOfThread) {
        uint32_t some[kOfThread];
#pragma unroll
        for (int i = 0; i < kOfThread; ++i) {
            const uint32_t group = begin + threadIdx.x + i * kThreads;
            some[i] = group < total ? least[group] : kNanKey;
        }
        __syncthreads(); // what is overwritten is read
#pragma unroll
        for (int i = 0; i < kOfThread; ++i) {
            if (some[i] <= limit) { // NaN is not
                least[atomicAdd(numGroups, 1u)] =
                        begin + threadIdx.x + i * kThreads;
            }
        }
    }
    __syncthreads();
}

} // namespace faiss_bits
