#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// How the vectors of a list lie in memory.
enum class ListLayout : uint8_t {
    Rows,       ///< [vector][component]
    Interleaved ///< [vector / 32][component][vector % 32], padded to 32
};

/// What the id of a vector of a list is.
enum class ListIds : uint8_t {
    Given64, ///< int64 numbers in memory, one array a list
    Given32, ///< the same of int32
    Places   ///< list << 32 | place in the list
};

/// Inverted lists as they lie on the device. Arrays have numLists elements.
struct IvfLists {
    idx_t numLists = 0; ///< 1 or more, below 2^31
    int d = 0;          ///< components of a vector, 1 or more
    /// Of all lists together, or more; below 2^36.
    idx_t numVectors = 0;
    ListLayout layout = ListLayout::Interleaved; ///< of all lists

    /// Of every list its vectors, float32; of an empty one anything.
    const void* const* vectors = nullptr;
    /// Of every list its number of vectors, below 2^31: int64, or int32.
    const void* lengths = nullptr;
    bool lengths64 = true; ///< lengths are int64

    ListIds idKind = ListIds::Given64; ///< of all lists
    /// Of every list its ids; not read where they are Places.
    const void* const* ids = nullptr;

    /// What a search may find: bit v % 32 of word v / 32 of a list, for its
    /// vector v (IvfFilterBits.h makes them). nullptr: all.
    const uint32_t* selectedBits = nullptr;
    /// Where the words of each list begin, and end: [numLists + 1]. nullptr:
    /// list l begins at word l * wordsOfList.
    const uint32_t* firstWords = nullptr;
    uint32_t wordsOfList = 0; ///< words of a list, where all have as many
};

} // namespace faiss_bits
