#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/words/Dictionary.h"
#include "kernels/words/ListOfClusters.h"
#include "kernels/words/Options.h"
#include "kernels/words/Pivots.h"
#include "kernels/words/SubtreeLengths.h"
#include "kernels/words/WordRange.h"

/// Words near to words by edit distance, on the CPU. No FAISS, no CUDA.
namespace faiss_bits::words {

/// Ranges of queries in the dictionary's letters, found elsewhere.
using RangeOf = std::function<WordRange(const LetterWords&, uint32_t most)>;

/// Words to be searched by Levenshtein distance: the fewest letters that have
/// to be inserted, deleted or replaced. A letter is a code point; é as one code
/// point and as e with an accent behind it are not the same.
///
/// What a method needs beside the trie is made when it is first used. Safe to
/// call from several threads.
class WordIndex {
   public:
    /// Id i: words[i]. Equal words are words of their own. Throws Error as
    /// makeDictionary.
    explicit WordIndex(const Utf8Words& words);

    const Dictionary& dictionary() const {
        return dictionary_;
    }

    /// All words with distance <= maxDistance.
    ///
    /// Threads  OpenMP over groups of queries
    /// Errors   throws Error for a negative distance, and as decodeUtf8
    /// Cost     docs/papers.md has what every method visits
    /// Source   Myers 1999, Hyyro 2003; Wu and Manber 1992; Barrientos et al.
    ///          2012, IV and V ("local": queries over threads)
    WordRange range(
            const Utf8Words& queries,
            idx_t maxDistance,
            const WordOptions& options) const;
    /// Of queries in the dictionary's letters.
    WordRange range(
            const LetterWords& queries,
            uint32_t maxDistance,
            const WordOptions& options) const;

    /// The k nearest words by (distance, id); short of k words: distance
    /// 2^31 - 1, id -1. `distances` and `ids` are [queries.count, k].
    ///
    /// Auto and the methods of range search look farther and farther until
    /// there are k; what is left after 4 edits Auto finds by brute force.
    /// `rangeOf`, where there is one, is asked for the ranges.
    void knn(
            const Utf8Words& queries,
            idx_t k,
            int32_t* distances,
            idx_t* ids,
            const WordOptions& options,
            const RangeOf& rangeOf = {}) const;

    /// What range() would do with queries of so many letters.
    std::string plan(
            idx_t numQueries,
            idx_t queryLength,
            idx_t maxDistance,
            const WordOptions& options) const;

    /// Made if they are not there yet.
    const ListOfClusters& clusters(const WordOptions& options) const;
    const Pivots& pivots(const WordOptions& options) const;
    const WordGroups& groups() const; ///< of brute force
    const SubtreeLengths& subtreeLengths() const;

   private:
    Dictionary dictionary_;
    mutable std::mutex mutex_;
    mutable std::unique_ptr<ListOfClusters> clusters_;
    mutable std::unique_ptr<Pivots> pivots_;
    mutable std::unique_ptr<WordGroups> groups_;
    mutable std::unique_ptr<SubtreeLengths> subtreeLengths_;
};

/// Throws Error for a negative number, else what no distance exceeds.
uint32_t requireMaxDistance(idx_t maxDistance);

} // namespace faiss_bits::words
