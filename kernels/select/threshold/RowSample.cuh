/// The limit of a row, from a random sample of its columns: an entry that k
/// others are expected to beat, and some more, whatever order they are in
/// (Hanak 2023, 3.7.1 takes splitters from a sample in this way).
#pragma once

#include "kernels/device/KeyTile.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

template <class Tile, int Threads>
struct RowSample {
    using Narrow = BlockNarrow<Threads>;
    using SharedStorage = typename Narrow::SharedStorage;
    static constexpr int kRunThreads = SamplePlaces::kThreads;

    SharedStorage& shared;

    /// Least entries of groups of random columns, each of one place in some
    /// runs: the p-th least of disjoint groups is no less than the p-th least
    /// of all. Of `parts` blocks, each draws from the whole row.
    __device__ __forceinline__ static void draw(
            const ThresholdParams& params,
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
            drawPlaces<false, 1>(tile, params, row, part, parts, least);
        } else if (params.samplePlaces % 4 == 0) {
            drawPlaces<true, 4>(tile, params, row, part, parts, least);
        } else if (params.samplePlaces % 2 == 0) {
            drawPlaces<true, 2>(tile, params, row, part, parts, least);
        } else {
            drawPlaces<true, 1>(tile, params, row, part, parts, least);
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
            const ThresholdParams& params,
            uint32_t row,
            uint32_t part,
            uint32_t parts,
            uint64_t (&least)[kSampleItems]) {
        const SamplePlaces places(
                params.cols, Threads, params.samplePlaces, parts, row);
        for (int s = 0; s < params.samplePlaces; s += Together) {
            uint32_t columns[Together];
            uint32_t turns[Together];
            typename Tile::Four keys[Together];
#pragma unroll
            for (int j = 0; j < Together; ++j) {
                const uint32_t thread = s * Threads + j * Threads + threadIdx.x;
                const SamplePlace place = places.at(
                        thread / kRunThreads * parts + part, threadIdx.x);
                columns[j] = place.column;
                turns[j] = place.turn;
                keys[j] = tile.template fourAt<Vector>(columns[j]);
            }
#pragma unroll
            for (int j = 0; j < Together; ++j) {
                uint64_t entries[kSampleItems];
#pragma unroll
                for (int i = 0; i < kSampleItems; ++i) {
                    entries[i] = tile.entryOf(keys[j], i, columns[j]);
                }
                turn<1>(entries, turns[j] & 1);
                turn<2>(entries, turns[j] & 2);
#pragma unroll
                for (int i = 0; i < kSampleItems; ++i) {
                    const uint64_t e = entries[i];
                    least[i] = e < least[i] ? e : least[i];
                }
            }
        }
    }

    /// Moves every entry By places on, in a circle.
    template <int By>
    __device__ __forceinline__ static void turn(
            uint64_t (&entries)[kSampleItems],
            bool really) {
        uint64_t turned[kSampleItems];
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            turned[i] = entries[(i + By) % kSampleItems];
        }
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            entries[i] = really ? turned[i] : entries[i];
        }
    }
};

} // namespace faiss_bits
