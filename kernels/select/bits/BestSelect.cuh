/// k = 1: the best key of a row. No list and no buffer, so the kernel does
/// little but read.
///
/// Bound by: the read of the keys.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/select/RowSpan.h"
#include "kernels/select/bits/BitsSelect.cuh"

namespace faiss_bits {

/// ByPacks: rows begin at any address. Packs of keys are loaded from the first
/// multiple of kStreamLine on, so params.vectorLoads is 1 all the same. Else
/// tiles are loaded as the key tile does.
template <class T, class Tile, bool ByPacks>
struct BestSelectBody {
    static constexpr int kThreads = kBitsThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kTileSize = kThreads * Tile::kItems;
    static constexpr int kPack = KeyPack<T>::kCount;
    static_assert(!ByPacks || !Tile::kHasBias);
    static_assert(kStreamLine <= kThreads * sizeof(T));

    struct SharedStorage {
        uint64_t best[kWarps];
    };

    SharedStorage& shared;
    const SelectParams& params;

    __device__ void run(uint32_t block) {
        // Of a row in parts: bestOfPartsKernel.
        allowNext();
        const uint32_t row = params.firstRow + block / params.splits;
        const uint32_t split = block % params.splits;
        uint32_t begin = split * params.segment;
        uint32_t end = min(params.cols - begin, params.segment) + begin;
        uint32_t headEnd = 0;

        Tile tile(params, row);
        if constexpr (ByPacks) {
            const RowSpan span(
                    reinterpret_cast<uintptr_t>(tile.row),
                    sizeof(T),
                    params.cols,
                    kTileSize,
                    split,
                    params.segment);
            begin = span.begin;
            end = span.end;
            headEnd = span.headEnd;
        }
        uint64_t best = bestNumber(tile, headEnd, begin, end);
        best = leastOfBlock(best);
        if (best == kNoEntry) {
            // Nothing below infinity here: rare enough for a second reading.
            best = leastOfBlock(bestEntry(params, row, headEnd, begin, end));
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
    /// The least number below infinity so far, and the first of its columns.
    struct Best {
        float least;
        uint32_t column;

        /// An entry is made only when a tile has a new one.
        __device__ __forceinline__ void take(const Tile& tile) {
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
    };

    /// Of this thread's columns: [0, headEnd) and [begin, end).
    __device__ __forceinline__ static uint64_t bestNumber(
            Tile& tile,
            uint32_t headEnd,
            uint32_t begin,
            uint32_t end) {
        const float infinity = __uint_as_float(0x7F800000u);
        Best best{infinity, 0xFFFFFFFFu};
        if constexpr (ByPacks) {
            // No thread has two keys of the head, which is on its way while the
            // tiles are read.
            float head = infinity;
            if (threadIdx.x < headEnd) {
                head = tile.adjust(__ldg(tile.row + threadIdx.x), threadIdx.x);
            }
            uint32_t at = begin;
            for (; end - at >= kTileSize; at += kTileSize) {
                tile.load(at, end);
                best.take(tile);
            }
            if (at < end) {
                takePacks(tile, at, end, best);
            }
            if (head <= best.least && head < infinity) {
                best = {head, threadIdx.x};
            }
        } else {
            for (uint32_t at = begin; at < end; at += kTileSize) {
                tile.load(at, end);
                best.take(tile);
            }
        }
        return best.column == 0xFFFFFFFFu
                ? kNoEntry
                : makeEntry(orderedKey(best.least), best.column);
    }

    /// Of a part of a tile: by packs, and the last few keys one a thread.
    __device__ __forceinline__ static void takePacks(
            Tile& tile,
            uint32_t at,
            uint32_t end,
            Best& best) {
        const uint32_t last = end - (end - at) % kPack + threadIdx.x;
        T lastKey = T();
        if (last < end) {
            lastKey = __ldg(tile.row + last);
        }
        tile.firstColumn = at;
        KeyPack<T> packs[Tile::kItems / kPack];
#pragma unroll
        for (int v = 0; v < Tile::kItems / kPack; ++v) {
            const uint32_t c = at + (v * kThreads + threadIdx.x) * kPack;
            if (c + kPack <= end) {
                reinterpret_cast<uint4&>(packs[v]) =
                        __ldg(reinterpret_cast<const uint4*>(tile.row + c));
            }
        }
#pragma unroll
        for (int i = 0; i < Tile::kItems; ++i) {
            const uint32_t c =
                    at + (i / kPack * kThreads + threadIdx.x) * kPack;
            tile.values[i] = c + kPack <= end
                    ? tile.adjust(packs[i / kPack].values[i % kPack], 0)
                    : __uint_as_float(0x7FFFFFFFu);
        }
        best.take(tile);
        const float value = tile.adjust(lastKey, last);
        if (last < end && value < best.least) {
            best.least = value;
            best.column = last;
        }
    }

    /// This thread's least entry, whatever the keys are. Has a tile of its
    /// own: one that is passed here would leave the registers.
    __device__ static __noinline__ uint64_t bestEntry(
            const SelectParams& params,
            uint32_t row,
            uint32_t headEnd,
            uint32_t begin,
            uint32_t end) {
        Tile tile(params, row);
        uint64_t least = kNoEntry;
        if (ByPacks && threadIdx.x < headEnd) {
            least = tile.entryAt(threadIdx.x);
        }
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

template <class T, class Tile, bool ByPacks>
__global__ void __launch_bounds__(kBitsThreads, kBestBlocks)
        bestSelectKernel(const __grid_constant__ SelectParams params) {
    using Body = BestSelectBody<T, Tile, ByPacks>;
    __shared__ typename Body::SharedStorage shared;
    Body{shared, params}.run(blockIdx.x);
}

/// The best of what the blocks of a row found, one row a block. Begins while
/// these still read.
template <class T>
__global__ void __launch_bounds__(kBestPartsThreads)
        bestOfPartsKernel(const __grid_constant__ SelectParams params) {
    constexpr int kWarps = kBestPartsThreads / kWarpSize;
    __shared__ uint64_t best[kWarps];
    const uint32_t row = params.firstRow + blockIdx.x;
    const uint64_t* parts =
            params.candidates + size_t(row) * params.numCandidates;
    waitForPrevious();
    uint64_t entry = kNoEntry;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < params.numCandidates;
         i += kBestPartsThreads) {
        const uint64_t other = __ldcg(parts + i);
        entry = other < entry ? other : entry;
    }
    entry = leastOfWarp(entry);
    if (threadIdx.x % kWarpSize == 0) {
        best[threadIdx.x / kWarpSize] = entry;
    }
    __syncthreads();
    entry = leastOfWarp(ofWarps<kWarps>(best, kNoEntry));
    if (threadIdx.x == 0) {
        writeResult<T>(params, row, 0, entry);
    }
}

} // namespace faiss_bits
