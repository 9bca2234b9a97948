/// What ScanAgain does for more than a few slots: tiles of canonical distances.
/// Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Chunks `begin` to begin + count.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanTiles(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    const uint32_t queryTiles = tilesOf(used);
    const uint32_t tiles = count * kTilesOfChunk * queryTiles;
    // Tiles of the same vectors side by side.
    const auto placeOf = [&](uint32_t number) {
        const uint32_t tile = min(number, tiles - 1);
        const Slots slots = slotsOfTile(tile % queryTiles, used);
        const uint32_t part = tile / queryTiles;
        const int64_t first = chunkAt(begin + part / kTilesOfChunk) +
                part % kTilesOfChunk * Tile::kVectors;
        return TilePlace{
                min(first, params.search.n - 1),
                first < params.search.n ? params.search.n : params.search.n - 1,
                shared.rows + slots.first,
                slots.count};
    };
    // The first from a number on that may have a vector within the limits.
    const auto nextOf = [&](uint32_t t) {
        while (t < tiles) {
            const TilePlace at = placeOf(t);
            const uint32_t slot = uint32_t(at.rows - shared.rows);
            // Tiles of kinds may have slots of two ends.
            if (!isBehind(at.first, slot) ||
                (kHasKinds && !isBehind(at.first, slot + at.numRows - 1))) {
                break;
            }
            t += gridDim.x;
        }
        return t;
    };
    Tile tile(shared.tile, params.search);
    if constexpr (kMetric == Metric::L2) {
        tile.staging.hasCenter = hasCenter;
    }
    // Tiles to come that filterTiles() is not for: all without limits.
    int crowded = kMetric == Metric::L2 && hasLimits(used) ? 0 : INT_MAX;
    uint32_t next = nextOf(blockIdx.x);
    TilePlace place = placeOf(next);
    tile.begin(place);
    for (uint32_t t = next; t < tiles; t = next) {
        if (isOne) {
            readNearest(uint32_t(place.rows - shared.rows), used);
        }
        next = nextOf(t + gridDim.x);
        const TilePlace after = placeOf(next);
        const uint32_t slot = uint32_t(place.rows - shared.rows);
        if constexpr (kMetric == Metric::L2) {
            // What is left to ScanTile are mostly copies that differ in
            // their last bits, which differences in float32 tell apart.
            if (tile.numExact > 0 && crowded == 0) {
                tile.numExact -= tile.numExact < INT_MAX;
                crowded = filterTiles(place, slot) ? kUnfilteredTiles : 0;
                tile.begin(after);
                place = after;
                continue;
            }
            crowded -= crowded > 0 && crowded < INT_MAX;
        }
        tile.run(
                place,
                after,
                Concerns{shared, slot, place.first},
                AppendPairs{*this, slot, place.first});
        place = after;
    }
    if constexpr (kMetric == Metric::L2) {
        hasCenter = tile.staging.hasCenter;
    }
}

} // namespace faiss_bits
