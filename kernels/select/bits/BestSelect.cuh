/// k = 1: the best key of a row. No list and no buffer, so the kernel does
/// little but read.
///
/// Bound by: the read of the keys.
#pragma once

#include "kernels/select/RowSpan.h"
#include "kernels/select/bits/BitsSelect.cuh"

namespace faiss_bits {

/// Unaligned: rows begin at any address. Whole tiles are loaded by vectors from
/// the first multiple of kStreamLine on, so params.vectorLoads is 1 all the
/// same.
template <class T, class Tile, bool Unaligned>
struct BestSelectBody {
    static_assert(!Unaligned || !Tile::kHasBias);
    static constexpr int kThreads = kBitsThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kTileSize = kThreads * Tile::kItems;

    struct SharedStorage {
        uint64_t best[kWarps];
    };

    SharedStorage& shared;
    const SelectParams& params;

    __device__ void run(uint32_t block) {
        const uint32_t row = params.firstRow + block / params.splits;
        const uint32_t split = block % params.splits;
        Columns columns;
        columns.begin = split * params.segment;
        columns.end = min(params.cols - columns.begin, params.segment) +
                columns.begin;

        Tile tile(params, row);
        if constexpr (Unaligned) {
            const RowSpan span(
                    reinterpret_cast<uintptr_t>(tile.row),
                    sizeof(T),
                    params.cols,
                    kTileSize,
                    split,
                    params.segment);
            columns = {span.headEnd, span.begin, span.end};
        }
        uint64_t best = bestNumber(tile, columns);
        best = leastOfBlock(best);
        if (best == kNoEntry) {
            // Nothing below infinity here: rare enough for a second reading.
            best = leastOfBlock(bestEntry(params, row, columns));
        }
        if (threadIdx.x == 0) {
            if (params.splits > 1) {
                params.outCandidates[size_t(row) * params.splits + split] =
                        best;
            } else {
                writeResult<T>(params, row, 0, best);
            }
        }
    }

   private:
    /// What a block reads of a row: [0, headEnd), and [begin, end) in tiles.
    struct Columns {
        uint32_t headEnd = 0;
        uint32_t begin;
        uint32_t end;
    };

    /// Calls use(at, end) for each tile, in the order of the columns.
    template <class Use>
    __device__ __forceinline__ static void forTiles(
            const Columns& columns,
            const Use& use) {
        if (Unaligned && columns.headEnd > 0) {
            use(0u, columns.headEnd);
        }
        for (uint32_t at = columns.begin; at < columns.end; at += kTileSize) {
            use(at, columns.end);
        }
    }

    /// This thread's least number below infinity, the first of equals; an
    /// entry is made only when a tile has a new one.
    __device__ __forceinline__ uint64_t
    bestNumber(Tile& tile, const Columns& columns) {
        float least = __uint_as_float(0x7F800000u);
        uint32_t column = 0xFFFFFFFFu;
        forTiles(columns, [&](uint32_t at, uint32_t end) {
            tile.load(at, end);
            float leastOfTile = tile.values[0];
#pragma unroll
            for (int i = 1; i < Tile::kItems; ++i) {
                leastOfTile = fminf(leastOfTile, tile.values[i]);
            }
            leastOfTile = tile.clamp(leastOfTile);
            if (leastOfTile < least) {
                least = leastOfTile;
#pragma unroll
                for (int i = Tile::kItems - 1; i >= 0; --i) {
                    column = tile.values[i] <= least ? tile.column(i) : column;
                }
            }
        });
        return column == 0xFFFFFFFFu ? kNoEntry
                                     : makeEntry(orderedKey(least), column);
    }

    /// This thread's least entry, whatever the keys are. Has a tile of its
    /// own: one that is passed here would leave the registers.
    __device__ static __noinline__ uint64_t bestEntry(
            const SelectParams& params,
            uint32_t row,
            const Columns& columns) {
        Tile tile(params, row);
        uint64_t least = kNoEntry;
        forTiles(columns, [&](uint32_t at, uint32_t end) {
            tile.load(at, end);
            for (int i = 0; i < Tile::kItems; ++i) {
                if ((tile.valid >> i) & 1) {
                    const uint64_t entry = tile.entry(i);
                    least = entry < least ? entry : least;
                }
            }
        });
        return least;
    }

    /// The same value for every thread.
    __device__ __forceinline__ uint64_t leastOfBlock(uint64_t entry) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            const uint64_t other = __shfl_xor_sync(kFullWarp, entry, lanes);
            entry = other < entry ? other : entry;
        }
        __syncthreads();
        if (threadIdx.x % kWarpSize == 0) {
            shared.best[threadIdx.x / kWarpSize] = entry;
        }
        __syncthreads();
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            entry = shared.best[w] < entry ? shared.best[w] : entry;
        }
        return entry;
    }
};

template <class T, class Tile, bool Unaligned>
__global__ void __launch_bounds__(kBitsThreads, kBestBlocks)
        bestSelectKernel(const __grid_constant__ SelectParams params) {
    using Body = BestSelectBody<T, Tile, Unaligned>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits
