/// The words of filters of inverted lists, by warps.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// Words of a warp at a time: as many lanes look for their lists side by side.
constexpr int kWordsOfWarp = 8;

/// The list of a word: the last that begins no later, of those that are not
/// empty.
__device__ __forceinline__ uint32_t
listOfWord(const IvfLists& lists, uint32_t word) {
    if (!lists.firstWords) {
        return word / lists.wordsOfList;
    }
    uint32_t low = 0;
    uint32_t high = uint32_t(lists.numLists);
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        (lists.firstWords[middle] <= word ? low : high) = middle;
    }
    return low;
}

/// body(word, list, vector, isThere) of the words `first` to `end` - 1 of all
/// lists, by all lanes of a warp: `vector` is the lane's, isThere whether the
/// list has it. Behind the last list there is none.
template <class Body>
__device__ __forceinline__ void forWords(
        const IvfLists& lists,
        uint64_t first,
        uint64_t end,
        const Body& body) {
    const uint64_t warps = uint64_t(gridDim.x) * (blockDim.x / kWarpSize);
    const uint64_t warp = uint64_t(blockIdx.x) * (blockDim.x / kWarpSize) +
            threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t numWords = firstWordOf(lists, uint32_t(lists.numLists));
    for (uint64_t some = first + warp * kWordsOfWarp; some < end;
         some += warps * kWordsOfWarp) {
        uint32_t list = 0;
        uint32_t before = 0;
        uint32_t length = 0;
        if (lane < kWordsOfWarp && some + lane < numWords) {
            list = listOfWord(lists, uint32_t(some + lane));
            before = firstWordOf(lists, list);
            length = listLength(lists, list);
        }
#pragma unroll
        for (int i = 0; i < kWordsOfWarp; ++i) {
            const uint64_t word = some + i;
            if (word < end) {
                const uint32_t ofWord = __shfl_sync(kFullWarp, list, i);
                const uint32_t vector =
                        (uint32_t(word) - __shfl_sync(kFullWarp, before, i)) *
                                kListGroup +
                        lane;
                const bool isThere = word < numWords &&
                        vector < __shfl_sync(kFullWarp, length, i);
                body(word, ofWord, vector, isThere);
            }
        }
    }
}

/// The id of a vector that forWords has named.
__device__ __forceinline__ idx_t
idOfSlot(const IvfSlots& slots, uint64_t word, uint32_t list, uint32_t vector) {
    return slots.givenIds ? slots.givenIds
                                    [(word - slots.firstWord) * kListGroup +
                                     vector % kListGroup]
                          : listId(slots.lists, list, vector);
}

/// Blocks for forWords.
inline unsigned blocksForWords(idx_t words, int threads) {
    constexpr idx_t kMostBlocks = 1 << 16;
    const idx_t ofBlock = idx_t(threads) / kWarpSize * kWordsOfWarp;
    const idx_t blocks = (words + ofBlock - 1) / ofBlock;
    return unsigned(
            blocks < 1                     ? 1
                    : blocks < kMostBlocks ? blocks
                                           : kMostBlocks);
}

} // namespace faiss_bits
