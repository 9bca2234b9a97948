#pragma once

#include "kernels/common/Types.h"
#include "kernels/device/Hash.h"

#if defined(__CUDACC__)
#define BITS_ROWS __host__ __device__ __forceinline__
#else
#define BITS_ROWS inline
#endif

namespace faiss_bits {

/// Which vectors the rows of an image hold: 16 neighbours stay side by side,
/// and tile t of 512 rows has those groups of 16 whose number modulo the number
/// of whole tiles is t, in an order of its own. Neighbours are often alike
/// (vectors stored cluster by cluster, or in the order of time). So they are in
/// tiles of their own, and what passes for a query is dealt to all blocks of a
/// scan, as if vectors had been shuffled; a group is cut into as many strips as
/// it has vectors (StripTest). And 16 bits of rows are 16 bits of vectors
/// (PassedLists::bits). The rows behind the last whole tile hold the vectors of
/// their own numbers.
struct SpreadRows {
    /// Those of the longest step of a scan.
    static constexpr uint32_t kTileRows = 512;
    static constexpr uint32_t kGroup = 16;
    static constexpr uint32_t kGroups = kTileRows / kGroup;

    uint32_t tiles = 0; ///< whole ones; 0: row i holds vector i

    /// The group of vectors, counted in kGroup, that a tile has at a place,
    /// counted so too.
    BITS_ROWS uint32_t groupOf(uint32_t tile, uint32_t place) const {
        return tile < tiles ? placeIn(tile, place) * tiles + tile
                            : tile * kGroups + place;
    }

    BITS_ROWS uint32_t vectorOf(uint32_t row) const {
        return groupOf(row / kTileRows, row / kGroup % kGroups) * kGroup +
                row % kGroup;
    }

    BITS_ROWS uint32_t rowOf(uint32_t vector) const {
        if (vector / kTileRows >= tiles) {
            return vector;
        }
        const uint32_t group = vector / kGroup;
        const uint32_t tile = group % tiles;
        return tile * kTileRows + placeIn(tile, group / tiles) * kGroup +
                vector % kGroup;
    }

   private:
    /// Neighbours, of two tiles, are in other places of these. Its own inverse.
    static BITS_ROWS uint32_t placeIn(uint32_t tile, uint32_t place) {
        return (place ^ mixBits(tile)) % kGroups;
    }
};

/// Of images of n vectors, fewer than 2^32.
inline SpreadRows spreadRowsOf(idx_t n) {
    return {uint32_t(n / SpreadRows::kTileRows)};
}

} // namespace faiss_bits

#undef BITS_ROWS
