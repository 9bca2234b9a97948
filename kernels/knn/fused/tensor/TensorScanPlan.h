/// How a scan is cut into items of work.
#pragma once

#include <algorithm>

#include "kernels/knn/fused/tensor/TensorScanParams.h"

namespace faiss_bits {

struct ScanShape {
    int queries;  ///< of a tile
    int unit;     ///< vectors of a step
    int rowBytes; ///< of a vector in the image
};

/// Sets units, chunks, unitsPerChunk, queryTiles and items: as few turns of
/// `blocks` blocks as possible, counting a start of an item as two steps.
/// Chunks that many tiles of queries read are small enough for L2 to hold those
/// in work.
inline void planChunks(
        TensorScanParams& params,
        const ScanShape& shape,
        uint32_t blocks) {
    constexpr uint64_t kStart = 2;
    constexpr uint64_t kChunkBytes = 4 << 20;
    constexpr uint32_t kMostTurns = 256;
    params.units = (params.numVectors + uint64_t(shape.unit) - 1) / shape.unit;
    params.queryTiles =
            (params.numQueries + uint64_t(shape.queries) - 1) / shape.queries;
    const uint64_t unitBytes = uint64_t(shape.unit) * shape.rowBytes;
    // Items are counted in 32 bits.
    constexpr uint64_t kMostItems = uint64_t(1) << 30;
    const uint64_t fewest =
            uint64_t(params.units) * params.queryTiles / kMostItems + 1;
    const uint64_t mostUnits = params.queryTiles <= 8
            ? params.units
            : std::max<uint64_t>({kChunkBytes / unitBytes, 4, fewest});
    uint64_t best = ~uint64_t(0);
    auto consider = [&](uint64_t chunks) {
        chunks = std::clamp<uint64_t>(chunks, 1, params.units);
        const uint64_t perChunk = (params.units + chunks - 1) / chunks;
        chunks = (params.units + perChunk - 1) / perChunk;
        const uint64_t items = chunks * params.queryTiles;
        const uint64_t cost =
                (items + blocks - 1) / blocks * (perChunk + kStart);
        if (items < 2 * kMostItems && cost < best) {
            best = cost;
            params.chunks = uint32_t(chunks);
            params.unitsPerChunk = uint32_t(perChunk);
            params.items = uint32_t(items);
        }
    };
    // Chunks whose items fill whole turns, from the fewest that fit L2.
    const uint64_t least = (params.units + mostUnits - 1) / mostUnits;
    const uint64_t turns = (least * params.queryTiles + blocks - 1) / blocks;
    consider(least);
    for (uint64_t t = turns; t < turns + kMostTurns; ++t) {
        consider(std::max(least, t * blocks / params.queryTiles));
    }
}

/// Of units, unitsPerChunk and queryTiles: chunks and items.
inline void setItems(TensorScanParams& params) {
    params.chunks =
            (params.units + params.unitsPerChunk - 1) / params.unitsPerChunk;
    params.items = params.chunks * params.queryTiles;
}

/// Of items: TensorScanParams::chunksOfTile. Where all vectors stay in L2, a
/// block's queries are read once for all of its chunks.
inline uint32_t chunksSideBySide(
        const TensorScanParams& params,
        const ScanShape& shape) {
    constexpr uint64_t kCachedBytes = 16 << 20;
    const uint64_t bytes = uint64_t(params.units) * shape.unit * shape.rowBytes;
    return bytes <= kCachedBytes ? params.chunks : 0;
}

/// The same for a scan whose results are a few numbers a query and chunk: few
/// chunks, or a block's each, and one where the tiles of queries fill the GPU.
inline void planNearestChunks(
        TensorScanParams& params,
        const ScanShape& shape,
        uint32_t blocks) {
    constexpr uint64_t kStart = 2;
    constexpr uint32_t kMostChunks = 16;
    params.units = (params.numVectors + uint64_t(shape.unit) - 1) / shape.unit;
    params.queryTiles =
            (params.numQueries + uint64_t(shape.queries) - 1) / shape.queries;
    const uint32_t filling = blocks / std::max(params.queryTiles, 1u);
    const uint32_t most =
            std::min(std::max(kMostChunks, filling), params.units);
    uint64_t best = ~uint64_t(0);
    for (uint32_t chunks = 1; chunks <= most; ++chunks) {
        const uint32_t perChunk = (params.units + chunks - 1) / chunks;
        const uint32_t items =
                (params.units + perChunk - 1) / perChunk * params.queryTiles;
        const uint64_t turns = (items + uint64_t(blocks) - 1) / blocks;
        if (turns * (perChunk + kStart) < best) {
            best = turns * (perChunk + kStart);
            params.unitsPerChunk = perChunk;
        }
    }
    setItems(params);
}

/// The same for at least so many chunks, if there are as many units: as few
/// turns as possible with up to twice as many.
inline void planStripChunks(
        TensorScanParams& params,
        const ScanShape& shape,
        uint32_t blocks,
        uint32_t leastChunks) {
    constexpr uint64_t kStart = 2;
    params.units = (params.numVectors + uint64_t(shape.unit) - 1) / shape.unit;
    params.queryTiles =
            (params.numQueries + uint64_t(shape.queries) - 1) / shape.queries;
    const uint32_t least = std::min(leastChunks, params.units);
    uint64_t best = ~uint64_t(0);
    for (uint32_t chunks = least; chunks <= 2 * least; ++chunks) {
        // As few as make so many chunks; more would be as many turns. Of the
        // least number there are no fewer.
        const uint32_t units = std::min(
                (params.units + chunks - 1) / chunks, params.units / least);
        const uint64_t items = (params.units + uint64_t(units) - 1) / units *
                params.queryTiles;
        const uint64_t turns = (items + blocks - 1) / blocks;
        if (turns * (units + kStart) < best) {
            best = turns * (units + kStart);
            params.unitsPerChunk = units;
        }
    }
    setItems(params);
}

} // namespace faiss_bits
