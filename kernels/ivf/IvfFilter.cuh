/// Whether a search may find a vector of a list.
#pragma once

#include <cstdint>

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits {

/// The first word of a list's bits; of list numLists: behind the last.
__device__ __forceinline__ uint32_t
firstWordOf(const IvfLists& lists, uint32_t list) {
    return lists.firstWords ? lists.firstWords[list] : list * lists.wordsOfList;
}

/// Bits of the vectors 32 group to 32 group + 31 of a list; behind the last of
/// them anything.
__device__ __forceinline__ uint32_t
selectedWord(const IvfLists& lists, uint32_t list, uint32_t group) {
    return lists.selectedBits
            ? lists.selectedBits[firstWordOf(lists, list) + group]
            : ~0u;
}

__device__ __forceinline__ bool isSelected(
        const IvfLists& lists,
        uint32_t list,
        uint32_t vector) {
    return selectedWord(lists, list, vector / 32) >> (vector % 32) & 1;
}

} // namespace faiss_bits
