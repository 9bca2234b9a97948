#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define BITS_SPAN __host__ __device__ __forceinline__
#else
#define BITS_SPAN inline
#endif

namespace faiss_bits {

/// What a stream begins at a multiple of: a line of memory.
constexpr uint32_t kStreamLine = 128;

/// Rows of at least so many tiles of a block stream where they begin at any
/// address; of shorter ones too few tiles would be whole.
constexpr uint32_t kLeastStreamedTiles = 2;

/// Which columns of a segment of a row stream in whole tiles, where rows begin
/// at any address. What lies before the first multiple of kStreamLine in the
/// row (the head) and what is behind the last whole tile (the tail) is loaded
/// key by key. Segments begin at such multiples, save the first, which has the
/// head: so the last one alone may have a tail.
struct RowSpan {
    uint32_t headEnd;  ///< the head is [0, headEnd)
    uint32_t begin;    ///< of the first whole tile
    uint32_t numTiles; ///< whole ones
    uint32_t tail;     ///< the tail is [tail, end)
    uint32_t end;

    /// `row`: the address of the first key, a multiple of keyBytes. `segment`
    /// is a multiple of `tile`, which is one of kStreamLine in bytes, or all
    /// `cols`.
    BITS_SPAN RowSpan(
            uintptr_t row,
            size_t keyBytes,
            uint32_t cols,
            uint32_t tile,
            uint32_t split,
            uint32_t segment) {
        const uint32_t before = (kStreamLine - uint32_t(row % kStreamLine)) %
                kStreamLine / uint32_t(keyBytes);
        const uint32_t first = split * segment; // <= cols
        begin = first + (before < cols - first ? before : cols - first);
        end = begin + (segment < cols - begin ? segment : cols - begin);
        headEnd = split == 0 ? begin : 0;
        numTiles = (end - begin) / tile;
        tail = begin + numTiles * tile;
    }
};

} // namespace faiss_bits

#undef BITS_SPAN
