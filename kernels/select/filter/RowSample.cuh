/// The limit of a row, from a random sample of its columns: an entry that k
/// others are expected to beat, and some more, whatever order they are in
/// (Hanak 2023, 3.7.1 takes splitters from a sample in this way).
#pragma once

#include "kernels/select/filter/FilterParams.h"
#include "kernels/select/filter/Narrow.cuh"

namespace faiss_bits {

template <class Tile, int Threads>
struct RowSample {
    using Narrow = BlockNarrow<Threads>;
    using SharedStorage = typename Narrow::SharedStorage;
    static constexpr int kRunThreads = kSampleRun / kSampleItems;

    SharedStorage& shared;

    /// Least entries of groups of random columns, each of one place in some
    /// runs: the p-th least of disjoint groups is no less than the p-th least
    /// of all. Of `parts` blocks, each draws from the whole row.
    __device__ __forceinline__ static void draw(
            const FilterParams& params,
            uint32_t row,
            uint32_t part,
            uint32_t parts,
            uint64_t (&least)[kSampleItems]) {
        const Tile tile(params, row);
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            least[i] = kNoEntry;
        }
        // Several loads in flight, with no branch between them.
        if (!params.vectorLoads) {
            drawPlaces<false, 1>(tile, params, part, parts, least);
        } else if (params.samplePlaces % 4 == 0) {
            drawPlaces<true, 4>(tile, params, part, parts, least);
        } else if (params.samplePlaces % 2 == 0) {
            drawPlaces<true, 2>(tile, params, part, parts, least);
        } else {
            drawPlaces<true, 1>(tile, params, part, parts, least);
        }
    }

    /// An entry that `rank` to `mostRank` of the block's are not above.
    __device__ __forceinline__ uint64_t
    limit(const uint64_t (&entries)[kSampleItems], int rank, int mostRank) {
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < kSampleItems; ++i) {
                if (entries[i] != kNoEntry) {
                    take(entries[i]);
                }
            }
        };
        return Narrow{shared}.limit(forEach, rank, mostRank);
    }

   private:
    template <bool Vector, int Together>
    __device__ __forceinline__ static void drawPlaces(
            const Tile& tile,
            const FilterParams& params,
            uint32_t part,
            uint32_t parts,
            uint64_t (&least)[kSampleItems]) {
        // One run in each of as many pieces of even length. Neighbours in a
        // row are drawn by other threads and blocks, into other groups.
        const float piece = float(params.cols) * kRunThreads /
                (float(Threads) * params.samplePlaces * parts);
        const uint32_t last = (params.cols - kSampleRun) & ~(kSampleRun - 1u);
        const uint32_t inRun = threadIdx.x % kRunThreads * kSampleItems;
        for (int s = 0; s < params.samplePlaces; s += Together) {
            uint32_t columns[Together];
            typename Tile::Four keys[Together];
#pragma unroll
            for (int j = 0; j < Together; ++j) {
                const uint32_t run =
                        ((s + j) * Threads + threadIdx.x) / kRunThreads;
                const uint32_t number = run * parts + part;
                const float at = (number + randomFraction(number)) * piece;
                columns[j] =
                        min(uint32_t(at) & ~(kSampleRun - 1u), last) + inRun;
                keys[j] = tile.template fourAt<Vector>(columns[j]);
            }
#pragma unroll
            for (int j = 0; j < Together; ++j) {
#pragma unroll
                for (int i = 0; i < kSampleItems; ++i) {
                    const uint64_t e = tile.entryOf(keys[j], i, columns[j]);
                    least[i] = e < least[i] ? e : least[i];
                }
            }
        }
    }

    /// In [0, 1), the same in every run.
    __device__ __forceinline__ static float randomFraction(uint32_t number) {
        uint32_t x = number * 0x9E3779B1u + 1;
        x = (x ^ (x >> 16)) * 0x7FEB352Du;
        x = (x ^ (x >> 15)) * 0x846CA68Bu;
        return float((x ^ (x >> 16)) >> 8) * (1.0f / 16777216.0f);
    }
};

} // namespace faiss_bits
