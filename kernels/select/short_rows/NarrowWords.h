#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define BITS_WORDS __host__ __device__ __forceinline__
#else
#define BITS_WORDS inline
#endif

namespace faiss_bits {

/// Where the keys of 16 bits of a row lie in words of two, from the first
/// multiple of four bytes on. What the row has before and behind them, if it
/// does, is one word more, the first: its last key and its first one.
///
/// What fills lanes up behind the last word has the columns that would follow.
/// One of those may be the row's last column, which the first word has too: it
/// is known by its place in the result alone, as all of the row comes before
/// it.
struct NarrowWords {
    uint32_t cols;
    uint32_t isOdd; // the first key ends a word

    /// Whether the last key begins a word.
    BITS_WORDS constexpr uint32_t isCut() const {
        return (cols - isOdd) % 2;
    }
    /// Words of a first key or a last one, or of both.
    BITS_WORDS constexpr int edges() const {
        return int(isOdd | isCut());
    }
    BITS_WORDS constexpr int count() const {
        return int(cols - isOdd) / 2 + edges();
    }
    /// The column of a word's first key, but of edges.
    BITS_WORDS constexpr int columnOf(int word) const {
        return int(isOdd) + 2 * (word - edges());
    }
};

} // namespace faiss_bits

#undef BITS_WORDS
