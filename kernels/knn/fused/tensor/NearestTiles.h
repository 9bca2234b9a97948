#pragma once

#include "kernels/canonical/RoundedOps.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/fused/tensor/TensorScanLaunch.h"

namespace faiss_bits {

/// Vectors of a tile where the scan for the nearest has strips of one tile
/// each, with its two best fours, in place of strips of all tiles of a chunk:
/// long vectors, whose products take longer than the comparisons, so few, or of
/// so few queries, that strips are 80 MiB at most. 0: it has not.
uint32_t nearestTileOf(
        idx_t numQueries,
        idx_t numVectors,
        int d,
        TensorScanKernel kernel,
        const DeviceTraits& device);

/// Strip i of a row has lane i % 4 of tile i / 4: the first of its g-th four.
BITS_HOST_DEVICE uint32_t
nearestFourOf(uint32_t tile, uint32_t strip, uint32_t g) {
    return strip / 4 * tile + g * 16 + 2 * (strip % 4);
}

/// launchWgmmaNearest of such strips.
TensorScanLaunch launchWgmmaNearestTiles;

} // namespace faiss_bits
