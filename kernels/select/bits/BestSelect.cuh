/// k = 1: the best key of a row. No list and no buffer, so the kernel does
/// little but read.
///
/// Bound by: the read of the keys.
#pragma once

#include "kernels/select/bits/BitsSelect.cuh"

namespace faiss_bits {

template <class T, class Tile>
struct BestSelectBody {
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
        const uint32_t begin = split * params.segment;
        const uint32_t end = min(params.cols - begin, params.segment) + begin;

        Tile tile(params, row);
        uint64_t best = bestNumber(tile, begin, end);
        best = leastOfBlock(best);
        if (best == kNoEntry) {
            // Nothing below infinity here: rare enough for a second reading.
            best = leastOfBlock(bestEntry(params, row, begin, end));
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
    /// This thread's least number below infinity, the first of equals; an
    /// entry is made only when a tile has a new one.
    __device__ __forceinline__ uint64_t
    bestNumber(Tile& tile, uint32_t begin, uint32_t end) {
        float least = __uint_as_float(0x7F800000u);
        uint32_t column = 0xFFFFFFFFu;
        for (uint32_t at = begin; at < end; at += kTileSize) {
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
        }
        return column == 0xFFFFFFFFu ? kNoEntry
                                     : makeEntry(orderedKey(least), column);
    }

    /// This thread's least entry, whatever the keys are. Has a tile of its
    /// own: one that is passed here would leave the registers.
    __device__ static __noinline__ uint64_t bestEntry(
            const SelectParams& params,
            uint32_t row,
            uint32_t begin,
            uint32_t end) {
        Tile tile(params, row);
        uint64_t least = kNoEntry;
        for (uint32_t at = begin; at < end; at += kTileSize) {
            tile.load(at, end);
            for (int i = 0; i < Tile::kItems; ++i) {
                if ((tile.valid >> i) & 1) {
                    const uint64_t entry = tile.entry(i);
                    least = entry < least ? entry : least;
                }
            }
        }
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

template <class T, class Tile>
__global__ void __launch_bounds__(kBitsThreads, kBestBlocks)
        bestSelectKernel(const __grid_constant__ SelectParams params) {
    using Body = BestSelectBody<T, Tile>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits
