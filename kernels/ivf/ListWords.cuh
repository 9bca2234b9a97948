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

/// Some words side by side, a lane a word.
struct SomeWords {
    uint64_t first = 0; // of a warp
    uint32_t list = 0;
    uint32_t before = 0; // words of the lists before
    uint32_t length = 0; // 0: not wanted, or behind the last list

    /// By all lanes of a warp: of word first + i the list and this lane's
    /// vector; whether it is there.
    __device__ __forceinline__ bool at(
            int i,
            uint32_t& ofWord,
            uint32_t& vector) const {
        ofWord = __shfl_sync(kFullWarp, list, i);
        vector = (uint32_t(first + i) - __shfl_sync(kFullWarp, before, i)) *
                        kListGroup +
                threadIdx.x % kWarpSize;
        return vector < __shfl_sync(kFullWarp, length, i);
    }
};

/// take(words) for the words `first` to `end` - 1 of all lists, by all lanes of
/// a warp, kWordsOfWarp at a time: the last ones may have some behind the end.
template <class IsWanted, class Take>
__device__ __forceinline__ void forSomeWords(
        const IvfLists& lists,
        uint64_t first,
        uint64_t end,
        const IsWanted& isWanted,
        const Take& take) {
    const uint64_t warps = uint64_t(gridDim.x) * (blockDim.x / kWarpSize);
    const uint64_t warp = uint64_t(blockIdx.x) * (blockDim.x / kWarpSize) +
            threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t numWords = firstWordOf(lists, uint32_t(lists.numLists));
    SomeWords words;
    for (words.first = first + warp * kWordsOfWarp; words.first < end;
         words.first += warps * kWordsOfWarp) {
        words.list = words.before = words.length = 0;
        if (lane < kWordsOfWarp && words.first + lane < numWords) {
            words.list = listOfWord(lists, uint32_t(words.first + lane));
            words.before = firstWordOf(lists, words.list);
            if (isWanted(words.list)) {
                words.length = listLength(lists, words.list);
            }
        }
        take(words);
    }
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
    const auto all = [](uint32_t) { return true; };
    forSomeWords(lists, first, end, all, [&](const SomeWords& words) {
#pragma unroll
        for (int i = 0; i < kWordsOfWarp; ++i) {
            if (words.first + i < end) {
                uint32_t list, vector;
                const bool isThere = words.at(i, list, vector);
                body(words.first + i, list, vector, isThere);
            }
        }
    });
}

/// keep(word, bits), by one lane, of the words `first` to `end` - 1 of all
/// lists: of the vectors whose test(idOf(word, list, vector)) is true. Of lists
/// that are not wanted the bits are 0. All ids of some words are on their way
/// together, and then all that the test reads.
template <class IsWanted, class IdOf, class Test, class Keep>
__device__ __forceinline__ void forWordsOfIds(
        const IvfLists& lists,
        uint64_t first,
        uint64_t end,
        const IsWanted& isWanted,
        const IdOf& idOf,
        const Test& test,
        const Keep& keep) {
    forSomeWords(lists, first, end, isWanted, [&](const SomeWords& words) {
        idx_t ids[kWordsOfWarp];
        bool passes[kWordsOfWarp];
#pragma unroll
        for (int i = 0; i < kWordsOfWarp; ++i) {
            uint32_t list, vector;
            passes[i] = words.at(i, list, vector) && words.first + i < end;
            ids[i] = passes[i] ? idOf(words.first + i, list, vector) : 0;
        }
#pragma unroll
        for (int i = 0; i < kWordsOfWarp; ++i) {
            passes[i] = passes[i] && test(ids[i]);
        }
#pragma unroll
        for (int i = 0; i < kWordsOfWarp; ++i) {
            const uint32_t found = __ballot_sync(kFullWarp, passes[i]);
            if (threadIdx.x % kWarpSize == 0 && words.first + i < end) {
                keep(words.first + i, found);
            }
        }
    });
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
