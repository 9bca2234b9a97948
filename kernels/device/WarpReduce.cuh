/// Reductions over the lanes of a warp, and over values that the warps of a
/// block left in shared memory. A loop over the warps in every thread would
/// cost the block warps x warps x its body; here each warp reads one value a
/// lane.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// The least of the lanes' entries, in every lane.
__device__ __forceinline__ uint64_t leastOfWarp(uint64_t entry) {
    const uint32_t key = entryKey(entry);
    const uint32_t least = __reduce_min_sync(kFullWarp, key);
    return makeEntry(
            least,
            __reduce_min_sync(
                    kFullWarp, key == least ? entryColumn(entry) : ~0u));
}

/// The greatest of the lanes' entries, in every lane.
__device__ __forceinline__ uint64_t greatestOfWarp(uint64_t entry) {
    const uint32_t key = entryKey(entry);
    const uint32_t greatest = __reduce_max_sync(kFullWarp, key);
    return makeEntry(
            greatest,
            __reduce_max_sync(
                    kFullWarp, key == greatest ? entryColumn(entry) : 0u));
}

/// A value a warp, one in each of the first lanes; `other` in those behind.
template <int Warps, class T>
__device__ __forceinline__ T ofWarps(const T* values, T other) {
    static_assert(Warps <= kWarpSize);
    const int lane = threadIdx.x % kWarpSize;
    return lane < Warps ? values[lane] : other;
}

/// The sum of what the warps before this one left.
template <int Warps>
__device__ __forceinline__ uint32_t sumOfWarpsBefore(const uint32_t* sums) {
    const int lane = threadIdx.x % kWarpSize;
    const int warp = threadIdx.x / kWarpSize;
    static_assert(Warps <= kWarpSize);
    return __reduce_add_sync(kFullWarp, lane < warp ? sums[lane] : 0u);
}

} // namespace faiss_bits
