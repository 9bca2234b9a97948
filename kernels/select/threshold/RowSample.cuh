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
    static constexpr int kRunThreads = SamplePlaces::kThreads;
    static constexpr int kSets = Threads / kRunThreads;

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        uint32_t hits[kSets]; // groups of a set that are not above a limit
    };

    SharedStorage& shared;

    /// Least entries of groups of random columns, each of one place in some
    /// runs: the p-th least of disjoint groups is no less than the p-th least
    /// of all. Of `parts` blocks, each draws from the whole row.
    __device__ __forceinline__ static void draw(
            const ThresholdParams& params,
            uint32_t row,
            uint32_t part,
            uint32_t parts,
            bool isAgain,
            uint64_t (&least)[kSampleItems]) {
        const Tile tile(params, row);
#pragma unroll
        for (int i = 0; i < kSampleItems; ++i) {
            least[i] = kNoEntry;
        }
        // Several loads in flight, with no branch between them.
        if (!params.vectorLoads && params.samplePlaces % 4 == 0) {
            drawPlaces<false, 4>(
                    tile, params, row, part, parts, isAgain, least);
        } else if (!params.vectorLoads && params.samplePlaces % 2 == 0) {
            drawPlaces<false, 2>(
                    tile, params, row, part, parts, isAgain, least);
        } else if (!params.vectorLoads) {
            drawPlaces<false, 1>(
                    tile, params, row, part, parts, isAgain, least);
        } else if (params.samplePlaces % 4 == 0) {
            drawPlaces<true, 4>(tile, params, row, part, parts, isAgain, least);
        } else if (params.samplePlaces % 2 == 0) {
            drawPlaces<true, 2>(tile, params, row, part, parts, isAgain, least);
        } else {
            drawPlaces<true, 1>(tile, params, row, part, parts, isAgain, least);
        }
    }

    /// Leaves the least entries of this block's groups, one of `parts` blocks.
    /// A group has one place of several runs: neighbouring columns must not
    /// fall into one, or the sample of a sorted row would count all of a run as
    /// one. drawn: shared memory for the runs that are drawn at a time.
    __device__ __forceinline__ static void leave(
            uint64_t (*drawn)[kSampleRun],
            uint32_t parts,
            uint64_t (&least)[kSampleItems],
            uint64_t* to) {
        const int groups = kSampledGroups / parts;
        const int sets = groups / kSampleRun; // of runs
        int run = threadIdx.x / kRunThreads;
        int runs = kSets;
        bool leads = true;
        if (sets == 1) {
            // The runs of a warp first.
#pragma unroll
            for (int lanes = kRunThreads; lanes < kWarpSize; lanes *= 2) {
#pragma unroll
                for (int i = 0; i < kSampleItems; ++i) {
                    const uint64_t e =
                            __shfl_xor_sync(kFullWarp, least[i], lanes);
                    least[i] = e < least[i] ? e : least[i];
                }
            }
            leads = threadIdx.x % kWarpSize < kRunThreads;
            run = threadIdx.x / kWarpSize;
            runs = Threads / kWarpSize;
        }
        if (leads) {
            const int place = threadIdx.x % kRunThreads * kSampleItems;
#pragma unroll
            for (int i = 0; i < kSampleItems; ++i) {
                drawn[run][place + i] = least[i];
            }
        }
        __syncthreads();
        for (int g = threadIdx.x; g < groups; g += Threads) {
            uint64_t mine = kNoEntry;
#pragma unroll 8
            for (int r = g / kSampleRun; r < runs; r += sets) {
                const uint64_t e = drawn[r][g % kSampleRun];
                mine = e < mine ? e : mine;
            }
            to[g] = mine;
        }
    }

    /// The limit of a row, from the groups that draw() left this thread.
    /// `more`: steps that are added to those that the dispersion asks for.
    __device__ __forceinline__ uint64_t
    limit(const uint64_t (&entries)[kSampleItems],
          const ThresholdParams& params,
          int more = 0) {
        // Eight threads drew the places of the same runs.
        const auto countHits = [&](uint64_t limit) {
            uint32_t hits = 0;
#pragma unroll
            for (int i = 0; i < kSampleItems; ++i) {
                hits += entries[i] <= limit;
            }
#pragma unroll
            for (int lanes = 1; lanes < kRunThreads; lanes *= 2) {
                hits += __shfl_xor_sync(kFullWarp, hits, lanes);
            }
            shared.hits[threadIdx.x / kRunThreads] = hits;
        };
        return limitOf(entries, params, more, countHits);
    }

    /// The same from the groups that `parts` blocks left: entries[i] of a warp
    /// are the places of a set of runs.
    __device__ __forceinline__ uint64_t limitOfParts(
            const uint64_t (&entries)[kSampleItems],
            const ThresholdParams& params,
            int more = 0) {
        static_assert(Threads * kSampleItems == kSampledGroups);
        const auto countHits = [&](uint64_t limit) {
#pragma unroll
            for (int i = 0; i < kSampleItems; ++i) {
                const uint32_t hits =
                        __popc(__ballot_sync(kFullWarp, entries[i] <= limit));
                const int set = (i * Threads + threadIdx.x) / kSampleRun;
                // A part has every so many-th run: in the order of the row.
                const int sets = kSets / params.sampleParts;
                shared.hits[set % sets * params.sampleParts + set / sets] =
                        hits;
            }
        };
        return limitOf(entries, params, more, countHits);
    }

   private:
    template <class CountHits>
    __device__ __forceinline__ uint64_t
    limitOf(const uint64_t (&entries)[kSampleItems],
            const ThresholdParams& params,
            int more,
            CountHits countHits) {
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < kSampleItems; ++i) {
                if (entries[i] != kNoEntry) {
                    take(entries[i]);
                }
            }
        };
        SampleRank wanted = params.sampleRanks[0];
        uint64_t limit =
                Narrow{shared.narrow}.limit(forEach, wanted.rank, wanted.most);
        // Ranks are above such a k: no sample has too few for it.
        if (params.k <= kSampleRun) {
            return limit;
        }
        countHits(limit);
        __syncthreads();
        const int step =
                min(max(stepFor(dispersion()) + more, 0), kSampleRanks - 1);
        if (params.sampleRanks[step].rank > wanted.most) {
            wanted = params.sampleRanks[step];
            limit = Narrow{shared.narrow}.limit(
                    forEach, wanted.rank, wanted.most);
        }
        return limit;
    }

    /// How alike neighbours are, as kLeastDispersion says: by the differences
    /// of consecutive sets, since the sample has one run of each piece of the
    /// row (an estimate that a slow rise or fall does not raise; Wolter,
    /// Introduction to Variance Estimation, 8.2). The largest of them is left
    /// out: ranks allow for one run more anyway.
    __device__ __forceinline__ float dispersion() const {
        uint32_t hits = 0;
        uint32_t squares = 0;
        uint32_t largest = 0;
        const int lane = threadIdx.x % kWarpSize;
#pragma unroll
        for (int i = 0; i < (kSets + kWarpSize - 1) / kWarpSize; ++i) {
            const int set = i * kWarpSize + lane;
            if (set < kSets) {
                const int mine = shared.hits[set];
                const int next = shared.hits[min(set + 1, kSets - 1)];
                const uint32_t square = (mine - next) * (mine - next);
                hits += mine;
                squares += square;
                largest = max(largest, square);
            }
        }
        hits = __reduce_add_sync(kFullWarp, hits);
        squares = __reduce_add_sync(kFullWarp, squares);
        largest = __reduce_max_sync(kFullWarp, largest);
        return 0.5f * float(squares - largest) / float(max(hits, 1u));
    }

    __device__ __forceinline__ static int stepFor(float dispersion) {
        // Few sets differ by chance: four standard deviations.
        constexpr float kDeviations = 4;
        const float chance = 1 + kDeviations * sqrtf(3.0f / kSets);
        int step = 0;
#pragma unroll
        for (int i = 0; i < kSampleRanks - 1; ++i) {
            const float bound = kLeastDispersion * (1 << i);
            step += dispersion > fmaxf(bound, chance);
        }
        return step;
    }

    template <bool Vector, int Together>
    __device__ __forceinline__ static void drawPlaces(
            const Tile& tile,
            const ThresholdParams& params,
            uint32_t row,
            uint32_t part,
            uint32_t parts,
            bool isAgain,
            uint64_t (&least)[kSampleItems]) {
        const SamplePlaces places(
                params.cols, Threads, params.samplePlaces, parts, row, isAgain);
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
