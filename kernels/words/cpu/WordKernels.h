#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Dictionary.h"

/// What is compiled for every instruction set.
namespace faiss_bits::words::cpu {

/// Errors that a walk by automata takes; beyond that the trie is walked by
/// columns of differences (BlockPattern.h).
constexpr int kMostErrors = 4;

/// Words whose distances are computed together, letter by letter.
constexpr int kGroupWords = 16;

/// Words whose distances to pivots are compared together.
constexpr int kPivotBlock = 64;

/// A query has found the words of a node.
struct LaneHit {
    uint32_t lane, distance, node;
};

/// Queries of up to 8 sizeof(T) - 1 letters, one in each lane, that walk the
/// trie together. Bit i of a lane stands for the first i letters of its query.
template <class T> // uint16_t, uint32_t, uint64_t
struct TrieWalk {
    const TrieNode* nodes = nullptr; ///< [numNodes + 1]
    uint32_t numNodes = 0;
    const T* table = nullptr; ///< [letters][lanes]: bit i: letter i - 1 is this
    const T* last = nullptr;  ///< [lanes] bit m of m letters; no query: 0
    const T* rows = nullptr;  ///< [lanes] bits 0 .. m; no query: 0
    T* columns = nullptr;     ///< [8 sizeof(T) + errors][errors + 1][lanes]
    int errors = 0;           ///< 0 .. kMostErrors
    std::vector<LaneHit>* hits = nullptr; ///< appended, by node
    uint64_t visited = 0;                 ///< nodes; added to
};

/// Up to kGroupWords words beside a query of 1 .. 8 sizeof(T) letters.
template <class T> // uint32_t, uint64_t
struct GroupDistances {
    const T* table = nullptr; ///< [letters]: bit i: letter i of the query is it
    uint32_t queryLength = 0;
    const uint32_t* columns = nullptr; ///< [longest][kGroupWords] letters
    const uint32_t* lengths = nullptr; ///< [kGroupWords]
    uint32_t shortest = 0, longest = 0;
    uint32_t* distances = nullptr; ///< [kGroupWords]
};

/// Which of kPivotBlock words have, for no pivot, distances to it and from it
/// to the query that differ by more than `most`.
struct PivotTest {
    const uint16_t* words = nullptr; ///< [pivots][kPivotBlock]
    const uint16_t* query = nullptr; ///< [pivots]
    int pivots = 0;
    uint16_t most = 0;
};

/// The kernels of one instruction set.
struct WordKernels {
    int lanes16 = 0, lanes32 = 0, lanes64 = 0;
    void (*walk16)(TrieWalk<uint16_t>&) = nullptr;
    void (*walk32)(TrieWalk<uint32_t>&) = nullptr;
    void (*walk64)(TrieWalk<uint64_t>&) = nullptr;
    void (*distances32)(const GroupDistances<uint32_t>&) = nullptr;
    void (*distances64)(const GroupDistances<uint64_t>&) = nullptr;
    uint64_t (*survivors)(const PivotTest&) = nullptr; ///< bit i: word i
};

/// Those of the best instruction set, or of FAISS_BITS_CPU_TARGET.
const WordKernels& wordKernels();

} // namespace faiss_bits::words::cpu
