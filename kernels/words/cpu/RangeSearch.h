#pragma once

#include <string>

#include "kernels/words/WordIndex.h"

namespace faiss_bits::words::cpu {

/// The ways in which queries are searched.
enum class Way : uint8_t {
    Lanes16, ///< the trie by automata of 16 bits, a query in each lane
    Lanes32,
    Lanes64,
    Blocks, ///< the trie by columns of differences, query by query
    BruteForce,
    Clusters,
    Pivots,
};
constexpr int kWays = 7;

/// How a query of so many letters is searched.
Way wayOf(Method method, uint32_t queryLength, uint32_t maxDistance);

/// WordIndex::range of queries in the dictionary's letters.
WordRange searchRange(
        const WordIndex& index,
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options);

/// In one line.
std::string planText(
        const WordOptions& options,
        uint32_t queryLength,
        uint32_t maxDistance);

} // namespace faiss_bits::words::cpu
