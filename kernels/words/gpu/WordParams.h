#pragma once

#include <cstdint>

#include "kernels/words/Dictionary.h"

/// What the kernels of words read and write.
namespace faiss_bits::words {

using Count = unsigned long long; // what atomicAdd takes

/// The queries and what is found of them, in any order.
struct FoundParams {
    const uint32_t* letters; // of the queries
    const idx_t* begins;     // [queries + 1]
    uint32_t numLetters;     // of the alphabet; a letter of a query may be it
    uint32_t most;           // distance
    uint64_t* found;         // [capacity]
    Count capacity;
    Count* total;  // [1], goes on past the capacity
    Count* counts; // [queries], of all that there are
};

/// A walk of the trie.
struct TrieParams : FoundParams {
    const TrieNode* nodes;   // [numNodes + 1]
    const uint32_t* parents; // [numNodes]
    uint32_t numNodes;
    const uint32_t* order; // [queries] that begin alike together
    uint32_t first, end;   // of the order
    uint32_t parts;        // of the nodes, one a warp
};

/// Groups of words on the device (WordGroups).
struct GroupParams {
    const uint32_t* letters;
    const uint64_t* begins;
    const uint32_t* lengths;
    const uint32_t* places;
    uint32_t count;
};

/// A block for every query.
struct ScanParams : FoundParams {
    GroupParams words; // of brute force by length; of SSS by place
    // List of Clusters
    GroupParams centers, buckets;
    const uint32_t* radii;
    uint32_t numCenters;
    // SSS
    GroupParams pivots;
    const uint16_t* toPivots; // [blocks][pivots][kBlock]
    uint32_t numPivots;
    uint32_t numWords;
};

/// The same for queries of more than 63 letters.
struct LongScanParams : ScanParams {
    const uint32_t* queries; // [blocks of the grid in x], numbers
    uint32_t blocks;         // of 64 letters, of the longest
    uint64_t* tables;        // [queries][numLetters][blocks], or null: in
                             // shared memory
};

} // namespace faiss_bits::words
