/// Warps that take the items of a range search, one after another.
#pragma once

#include <algorithm>

#include "kernels/device/Bitonic.cuh"
#include "kernels/range/RangeParams.h"

namespace faiss_bits {

constexpr int kItemThreads = 256;
constexpr int kItemWarps = kItemThreads / kWarpSize; // of a block

inline unsigned itemBlocks(int64_t items, int multiprocessors) {
    constexpr int64_t kBlocks = 32;
    return unsigned(std::clamp<int64_t>(
            (items + kItemWarps - 1) / kItemWarps,
            1,
            kBlocks * multiprocessors));
}

/// take(item) of every item of the calling warp.
template <class Take>
__device__ __forceinline__ void forEachItem(int64_t count, const Take& take) {
    for (int64_t item =
                 int64_t(blockIdx.x) * kItemWarps + threadIdx.x / kWarpSize;
         item < count;
         item += int64_t(gridDim.x) * kItemWarps) {
        take(item);
    }
}

/// Where the words of an item are.
struct ItemPlace {
    uint32_t row;
    uint64_t firstWord;

    __device__ __forceinline__ ItemPlace(const RangeItems& items, int64_t item)
            : row(uint32_t(item) / items.perRow),
              firstWord(
                      uint64_t(uint32_t(item) % items.perRow) *
                      items.itemWords) {}
};

} // namespace faiss_bits
