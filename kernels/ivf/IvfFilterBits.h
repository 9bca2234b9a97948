#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfLists.h"

/// Filters of inverted lists: a bit for each vector of each list, whatever ids
/// they have. A word has the bits of 32 vectors of a list; behind the last
/// vector of a list, and the last list, they are zero. All pointers are on the
/// device; everything enqueues and never waits, and can be captured.
namespace faiss_bits {

/// Words that the bits of all lists take, or more. Reads wordsOfList.
idx_t ivfFilterWords(const IvfLists& lists);

/// wordsOfList of lists whose longest has so many vectors; 0 where they are so
/// uneven that this takes more than four times the words that are needed: then
/// firstWords say where those of each list are.
uint32_t ivfWordsOfList(const IvfLists& lists, idx_t longestList);

/// firstWords [numLists + 1]: where the words of each list begin, and end.
void runIvfFirstWords(
        const IvfLists& lists,
        uint32_t* firstWords,
        cudaStream_t stream);

/// Vectors whose bits are written, and their ids.
struct IvfSlots {
    IvfLists lists;                  ///< with firstWords or wordsOfList
    const idx_t* givenIds = nullptr; ///< see firstWord; nullptr: of lists
    idx_t firstWord = 0;             ///< of the words that are written
    idx_t numWords = 0;              ///< of those; givenIds has 32 for each
};

/// Exactly the vectors whose id is in first .. end - 1.
void runIvfRangeBits(
        const IvfSlots& slots,
        idx_t first,
        idx_t end,
        uint32_t* bits,
        cudaStream_t stream);

/// All vectors, or none.
void runIvfAllBits(
        const IvfSlots& slots,
        bool all,
        uint32_t* bits,
        cudaStream_t stream);

/// Exactly those whose id is in a list of ids, in any order, repeats allowed;
/// or, to add, those too. Takes O(1) a vector: the ids go into a table first.
size_t ivfIdBitsWorkspaceBytes(idx_t numIds);
void runIvfIdBits(
        const IvfSlots& slots,
        const idx_t* ids,
        idx_t numIds,
        bool add,
        Workspace workspace,
        uint32_t* bits,
        cudaStream_t stream);

/// Likewise those whose bit is set: bit id % 8 of byte id / 8 - firstByte, of
/// numBytes.
void runIvfByteBits(
        const IvfSlots& slots,
        const uint8_t* bytes,
        idx_t firstByte,
        idx_t numBytes,
        bool add,
        uint32_t* bits,
        cudaStream_t stream);

/// Exactly those that pass lists.idTest.
///
/// counts  [numLists], on the device: pairs of a query and the list; of lists
///         that have none the bits may be anything. nullptr: all lists
void runIvfTestedBits(
        const IvfLists& lists,
        const uint32_t* counts,
        uint32_t* bits,
        cudaStream_t stream);

/// Exactly those that were not selected.
void runIvfInvertBits(
        const IvfSlots& slots,
        uint32_t* bits,
        cudaStream_t stream);

/// The ids of the vectors of the words: ids [numWords, 32], anything behind the
/// last of a list.
void runIvfGatherIds(const IvfSlots& slots, idx_t* ids, cudaStream_t stream);

} // namespace faiss_bits
