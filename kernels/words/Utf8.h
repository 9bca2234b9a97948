#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits::words {

/// Words as UTF-8 bytes, one behind the other.
struct Utf8Words {
    idx_t count = 0;                ///< words, 0 or more
    const char* bytes = nullptr;    ///< [offsets[count]]
    const idx_t* offsets = nullptr; ///< [count + 1], ascending from 0
    const char* name = "words";     ///< what errors call them
};

/// Words as numbers, one behind the other: code points, or letters of a
/// dictionary.
struct LetterWords {
    std::vector<uint32_t> letters;
    std::vector<idx_t> begins; ///< [count + 1]

    idx_t count() const {
        return idx_t(begins.size()) - 1;
    }
    const uint32_t* word(idx_t i) const {
        return letters.data() + begins[i];
    }
    uint32_t length(idx_t i) const {
        return uint32_t(begins[i + 1] - begins[i]);
    }
};

/// The code points of words. Throws Error that names the word and the first
/// byte that is not UTF-8 (RFC 3629: overlong forms, surrogates and numbers
/// above U+10FFFF are none), a null pointer, or offsets that do not ascend.
LetterWords decodeUtf8(const Utf8Words& words);

} // namespace faiss_bits::words
