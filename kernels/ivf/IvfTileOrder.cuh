/// Tiles of queries that probe a list and vectors of the list.
#pragma once

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// A tile, and the columns of its pairs.
struct IvfWork {
    TilePlace place;
    const uint32_t* columns;
};

/// Some tiles of the same queries and of one list, one after another.
struct IvfRun {
    const void* vectors; // of the list
    const uint32_t* rows;
    const uint32_t* columns; // as the rows
    uint32_t list;
    uint32_t length; // of the list
    uint32_t left;   // pairs of the list from the rows on
    uint32_t numRows;
    uint32_t first; // vector of the list, of the first tile
    uint32_t end;   // tile behind the last
};

/// What numbers tiles, of so many queries and vectors.
template <int kQueries, int kVectors>
struct IvfTileOrder {
    const IvfParams& params;

    __device__ __forceinline__ uint32_t numTiles() const {
        return params.firstTiles[params.lists.numLists];
    }

    /// Tiles of the same vectors side by side; behind the last, that again.
    __device__ __forceinline__ IvfWork
    workOf(uint64_t number, uint32_t tiles) const {
        const uint32_t tile = uint32_t(min(number, uint64_t(tiles - 1)));
        const uint32_t list = listOf(tile);
        const uint32_t length = listLength(params.lists, list);
        const uint32_t pairs = params.counts[list];
        const uint32_t down = (pairs + kQueries - 1) / kQueries;
        const uint32_t inList = tile - params.firstTiles[list];
        const uint32_t pair = inList % down * kQueries;
        const uint32_t at = params.firstPairs[list] + pair;
        TilePlace place;
        place.first = int64_t(inList / down) * kVectors;
        place.last = length;
        place.rows = params.pairRows + at;
        place.numRows = pairs - pair;
        place.list = params.lists.vectors[list];
        place.listNumber = list;
        return {place, params.pairColumns + at};
    }

    /// The other way round, tiles of the same queries side by side: those from
    /// this one on.
    __device__ __forceinline__ IvfRun runOf(uint32_t tile) const {
        const uint32_t list = listOf(tile);
        const uint32_t length = listLength(params.lists, list);
        const uint32_t inList = tile - params.firstTiles[list];
        const uint32_t across = (length + kVectors - 1) / kVectors;
        const uint32_t pair = inList / across * kQueries;
        const uint32_t at = params.firstPairs[list] + pair;
        IvfRun run;
        run.vectors = params.lists.vectors[list];
        run.rows = params.pairRows + at;
        run.columns = params.pairColumns + at;
        run.list = list;
        run.length = length;
        run.left = params.counts[list] - pair;
        run.numRows = min(run.left, uint32_t(kQueries));
        run.first = inList % across * kVectors;
        run.end = tile + across - inList % across;
        return run;
    }

    /// The tiles behind a run: in the same list nothing has to be read.
    __device__ __forceinline__ IvfRun behind(const IvfRun& run) const {
        if (run.left <= kQueries) {
            return runOf(run.end);
        }
        IvfRun next = run;
        next.rows += kQueries;
        next.columns += kQueries;
        next.left -= kQueries;
        next.numRows = min(next.left, uint32_t(kQueries));
        next.first = 0;
        next.end += (run.length + kVectors - 1) / kVectors;
        return next;
    }

   private:
    /// The last list whose first tile is no later; by a warp, which divides
    /// what is left by 32 in a step.
    __device__ __forceinline__ uint32_t listOf(uint32_t tile) const {
        uint32_t low = 0;
        uint32_t size = uint32_t(params.lists.numLists);
        while (size > 1) {
            const uint32_t step = (size + kWarpSize - 1) / kWarpSize;
            const uint32_t offset = threadIdx.x % kWarpSize * step;
            const bool isNoLater =
                    offset < size && params.firstTiles[low + offset] <= tile;
            const uint32_t numNoLater =
                    __popc(__ballot_sync(kFullWarp, isNoLater));
            const uint32_t begin = (numNoLater - 1) * step;
            low += begin;
            size = min(step, size - begin);
        }
        return low;
    }
};

} // namespace faiss_bits
