/// Sums over the threads of a block that come before one.
#pragma once

#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

/// The sum of the values of the threads before this one. `sums` is shared
/// memory of a word a warp, which the caller may write again after the block's
/// next barrier. One barrier.
template <int Threads>
__device__ __forceinline__ uint32_t
sumOfThreadsBefore(uint32_t value, uint32_t* sums) {
    constexpr int kWarps = Threads / kWarpSize;
    uint32_t upTo = value;
#pragma unroll
    for (int lanes = 1; lanes < kWarpSize; lanes *= 2) {
        const uint32_t before = __shfl_up_sync(kFullWarp, upTo, lanes);
        upTo += threadIdx.x % kWarpSize >= lanes ? before : 0;
    }
    if (threadIdx.x % kWarpSize == kWarpSize - 1) {
        sums[threadIdx.x / kWarpSize] = upTo;
    }
    __syncthreads();
    return upTo - value + sumOfWarpsBefore<kWarps>(sums);
}

} // namespace faiss_bits
