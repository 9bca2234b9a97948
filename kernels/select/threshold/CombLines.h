#pragma once

#include "kernels/device/Hash.h"

#if defined(__CUDACC__)
#define BITS_LINES __host__ __device__ __forceinline__
#else
#define BITS_LINES inline
#endif

namespace faiss_bits {

/// Which lines of a row a tile of a comb takes: one of each piece of the row,
/// at places by a hash. At even distances keys that come again and again, such
/// as saw teeth, would show it one place of each period, perhaps the worst, and
/// every tile after it a better one.
struct CombLines {
    uint32_t numTiles; // lines of a piece
    uint32_t quarter;  // lines of a quarter, of `together` pieces
    uint32_t first;    // the place of tile 0
    uint32_t end;      // of the slot's piece in the first quarter

    /// Pack v of a thread lies in quarter v, the slot'th of `together` pieces.
    BITS_LINES CombLines(
            uint32_t tiles,
            uint32_t together,
            uint32_t slot,
            uint32_t row)
            : numTiles(tiles),
              quarter(together * tiles),
              end((slot + 1) * tiles) {
        // Slot 0 begins with the first line: of equal keys those of the least
        // columns are the best.
        const uint32_t hash = slot == 0 ? 0 : mixBits(row * 0x85EBCA77u + slot);
        first = slot * tiles + uint32_t(uint64_t(hash) * tiles >> 32);
    }

    /// Where tile t looks in the first quarter; it goes on from there.
    BITS_LINES uint32_t placeOf(uint32_t t) const {
        const uint32_t place = first + t;
        return place >= end ? place - numTiles : place;
    }

    /// Line of pack v, from the place of its tile. Every other quarter is taken
    /// from its end, so that quarters are not at even distances either.
    BITS_LINES uint32_t lineOf(uint32_t v, uint32_t place) const {
        const uint32_t isOdd = v % 2;
        return (v + isOdd) * quarter + (place ^ (0 - isOdd));
    }
};

} // namespace faiss_bits

#undef BITS_LINES
