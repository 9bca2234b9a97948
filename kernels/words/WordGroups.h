#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Dictionary.h"

namespace faiss_bits::words {

/// Words of a dictionary in groups of 16, letter by letter, so that a group is
/// compared with a query at once. A group may hold fewer.
class WordGroups {
   public:
    static constexpr uint32_t kSize = 16;
    static constexpr uint32_t kNoWord = ~0u;

    /// All words, shortest first.
    static WordGroups byLength(const Dictionary& dictionary);

    /// Appends a group of up to 16 places.
    void add(const Dictionary& dictionary, const uint32_t* places, uint32_t n);
    void clear();

    uint32_t count() const {
        return uint32_t(begins_.size()) - 1;
    }
    const uint32_t* columns(uint32_t group) const {
        return letters_.data() + begins_[group];
    }
    const uint32_t* lengths(uint32_t group) const { ///< [kSize]; of none 0
        return lengths_.data() + size_t(group) * kSize;
    }
    const uint32_t* places(uint32_t group) const { ///< [kSize]; none: kNoWord
        return places_.data() + size_t(group) * kSize;
    }
    uint32_t words(uint32_t group) const {
        return words_[group];
    }
    uint32_t longest(uint32_t group) const {
        return uint32_t((begins_[group + 1] - begins_[group]) / kSize);
    }
    uint32_t shortest(uint32_t group) const {
        return shortest_[group];
    }

   private:
    std::vector<uint32_t> letters_; // [longest][kSize] of every group
    std::vector<size_t> begins_{0};
    std::vector<uint32_t> lengths_, places_, shortest_, words_;
};

} // namespace faiss_bits::words
