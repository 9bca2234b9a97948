#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/words/ListOfClusters.h"
#include "kernels/words/Pivots.h"
#include "kernels/words/cpu/HitParts.h"
#include "kernels/words/cpu/QueryPattern.h"
#include "kernels/words/cpu/TrieByBlocks.h"

namespace faiss_bits::words::cpu {

/// Range searches of one query at a time, by one thread. Results go to `part`,
/// which the caller finishes for every query.
class QueryScan {
   public:
    QueryScan(
            const Dictionary& dictionary,
            const LetterWords& queries,
            uint32_t maxDistance)
            : part(dictionary),
              dictionary_(dictionary),
              queries_(queries),
              most_(maxDistance) {}

    /// Of the words that end at a node.
    void addNode(uint32_t node, uint32_t distance);

    /// The trie, by columns of differences.
    void walkTrie(uint32_t query, const SubtreeLengths& lengths);
    /// The distance to every word.
    void scanAll(uint32_t query, const WordGroups& groups);
    void scanClusters(uint32_t query, const ListOfClusters& clusters);
    void scanPivots(uint32_t query, const Pivots& pivots);

    HitPart part;
    uint64_t comparisons = 0; ///< of a query and a word
    uint64_t nodes = 0;       ///< of the trie

   private:
    QueryPattern& patternOf(uint32_t query);
    void scanGroup(
            QueryPattern& pattern,
            const WordGroups& groups,
            uint32_t group);
    void scanBucket(
            QueryPattern& pattern,
            const ListOfClusters& clusters,
            uint32_t cluster);

    const Dictionary& dictionary_;
    const LetterWords& queries_;
    uint32_t most_;
    // Made when they are first needed.
    std::optional<TrieByBlocks> blocks_;
    std::optional<QueryPattern> pattern_;
    std::vector<uint16_t> toPivots_;
    WordGroups candidates_;
};

} // namespace faiss_bits::words::cpu
