#pragma once

#include "kernels/common/Types.h"
#include "kernels/device/Hash.h"

#if defined(__CUDACC__)
#define BITS_ROWS __host__ __device__ __forceinline__
#else
#define BITS_ROWS inline
#endif

namespace faiss_bits {

/// Which vectors the rows of an image hold: tile t of 128 rows those whose
/// number modulo the number of whole tiles is t, in an order of its own.
/// Neighbours are often alike (vectors stored cluster by cluster, or in the
/// order of time). So they are in tiles and strips of their own, and what
/// passes for a query is dealt to all blocks of a scan, as if vectors had been
/// shuffled. The rows behind the last whole tile hold the vectors of their own
/// numbers.
struct SpreadRows {
    static constexpr uint32_t kTileRows = 128;
    /// Vectors of a tile whose numbers follow each other lie so far apart in
    /// it, and are of other strips (StripTest); and its inverse.
    static constexpr uint32_t kStep = 37;
    static constexpr uint32_t kInverse = 45;
    static_assert(kStep * kInverse % kTileRows == 1);

    uint32_t tiles = 0; ///< whole ones; 0: row i holds vector i

    BITS_ROWS uint32_t vectorOf(uint32_t row) const {
        const uint32_t tile = row / kTileRows;
        if (tile >= tiles) {
            return row;
        }
        const uint32_t place = (row ^ mixBits(tile)) % kTileRows;
        return place * kInverse % kTileRows * tiles + tile;
    }

    BITS_ROWS uint32_t rowOf(uint32_t vector) const {
        if (vector / kTileRows >= tiles) {
            return vector;
        }
        const uint32_t tile = vector % tiles;
        const uint32_t place = vector / tiles * kStep % kTileRows;
        return tile * kTileRows + (place ^ mixBits(tile) % kTileRows);
    }
};

/// Of images that k-NN searches make for themselves of n vectors, fewer than
/// 2^32.
inline SpreadRows spreadRowsOf(idx_t n) {
    return {uint32_t(n / SpreadRows::kTileRows)};
}

} // namespace faiss_bits

#undef BITS_ROWS
