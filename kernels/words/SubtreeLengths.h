#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Dictionary.h"

namespace faiss_bits::words {

/// The letters of the shortest and of the longest word below every node of a
/// trie, itself among them: where both are too far from a query's, none of them
/// is near to it.
class SubtreeLengths {
   public:
    explicit SubtreeLengths(const Dictionary& dictionary);

    /// True only if every word below is farther than `most` by its length
    /// alone.
    bool areFar(uint32_t node, uint32_t queryLength, uint32_t most) const {
        const Range& range = ranges_[node];
        return range.shortest > uint64_t(queryLength) + most ||
                uint64_t(range.longest) + most < queryLength;
    }

   private:
    struct Range {
        uint32_t shortest = ~0u, longest = 0;
    };
    std::vector<Range> ranges_; // by node
};

} // namespace faiss_bits::words
