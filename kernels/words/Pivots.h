#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/Options.h"
#include "kernels/words/WordGroups.h"

namespace faiss_bits::words {

/// Distances of all words to some of them (SSS: Brisaboa et al. 2006;
/// Barrientos et al. 2012, II-B). The first word is a pivot; one after it
/// becomes one if its distance to every pivot is at least alpha M, where M, the
/// greatest distance of two words, is taken to be the longest word's length,
/// which it cannot exceed.
struct Pivots {
    static constexpr double kAlpha = 0.5; ///< as in the paper, for words
    static constexpr int kMost = 256; ///< pivots; more would only take memory
    static constexpr uint32_t kBlock = 64;

    WordGroups pivots;
    std::vector<uint32_t> places; ///< of the pivots
    /// Of the words by place, [blocks][pivots][kBlock]; 65535 for more.
    std::vector<uint16_t> distances;

    int count() const {
        return int(places.size());
    }
    const uint16_t* block(idx_t block) const {
        return distances.data() + size_t(block) * places.size() * kBlock;
    }
};

/// n distances for every pivot.
Pivots makePivots(const Dictionary& dictionary, const WordOptions& options);

} // namespace faiss_bits::words
