/// The queries whose candidates were not proved to be enough: canonical
/// distances to all vectors, in bounded scratch, by one kernel of the whole
/// GPU that ends at once where there are none.
#pragma once

#include <cooperative_groups.h>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/knn/certified/FlaggedRows.cuh"
#include "kernels/knn/certified/ScannedDistance.cuh"
#include "kernels/knn/certified/SortAscending.cuh"

namespace faiss_bits {

constexpr int kScanThreads = 256;
/// Up to so many, a vector is read by eight lanes and met with each query;
/// more make tiles.
constexpr int kFewSlots = 8;
/// Entries that are sorted in shared memory.
constexpr int kSharedSort = 2048;
/// Vectors of the first step, for every place of the result; each later step
/// has as many vectors as all before it and more, so that about this many
/// entries a place pass the limit.
constexpr int64_t kFirstStep = 8;

template <Metric kMetric>
struct ScanAgain {
    using Tile = ScanTile<kMetric>;
    using Narrow = BlockNarrow<kScanThreads>;
    using Flagged = FlaggedRows<kScanThreads>;
    static_assert(Tile::kThreads == kScanThreads);

    struct SharedStorage {
        union {
            typename Tile::SharedStorage tile;
            typename Narrow::SharedStorage narrow;
            uint64_t sort[kSharedSort];
        };
        uint32_t rows[kMaxScanSlots];
        uint64_t limits[kMaxScanSlots];
        double most[kMaxScanSlots]; // keys above it are beyond the limit
        typename Flagged::SharedStorage flagged;
        uint32_t kept;
    };

    SharedStorage& shared;
    const ScanParams& params;

    __device__ void run() {
        const auto grid = cooperative_groups::this_grid();
        const CertifiedParams& search = params.search;
        uint32_t next = 0;
        while (true) {
            const uint32_t used = takeRows(next);
            if (used == 0) {
                return;
            }
            if (blockIdx.x == 0) {
                for (uint32_t s = threadIdx.x; s < used; s += kScanThreads) {
                    params.counts[s] = 0;
                    params.limits[s] = kNoEntry;
                }
                if (threadIdx.x == 0 && search.numRepeated) {
                    atomicAdd(search.numRepeated, used);
                }
            }
            grid.sync();
            const int64_t most = params.capacity - params.keep;
            for (int64_t first = 0; first < search.n;) {
                const int64_t step =
                        max(min(kFirstStep * params.keep + 8192, most),
                            min(first * kFirstStep, most));
                const int64_t last = min(search.n, first + step);
                readLimits(used);
                used <= kFewSlots ? scanFew(first, last, used)
                                  : scanTiles(first, last, used);
                grid.sync();
                for (uint32_t s = blockIdx.x; s < used; s += gridDim.x) {
                    keepNearest(s);
                }
                grid.sync();
                first = last;
            }
            for (uint32_t s = blockIdx.x; s < used; s += gridDim.x) {
                finish(s);
            }
            grid.sync(); // the lists are free again
        }
    }

   private:
    /// The next flagged rows from `next` on, at most as many as there are
    /// slots, to shared.rows; the same in every block, which asks by itself.
    __device__ __forceinline__ uint32_t takeRows(uint32_t& next) {
        const uint32_t most = min(params.slots, uint32_t(kMaxScanSlots));
        __syncthreads();
        return Flagged{shared.flagged, params.search.flags, params.search.rows}
                .take(next, most, shared.rows);
    }

    __device__ __forceinline__ void readLimits(uint32_t used) {
        __syncthreads();
        for (uint32_t s = threadIdx.x; s < used; s += kScanThreads) {
            const uint64_t limit =
                    __ldcg(reinterpret_cast<const unsigned long long*>(
                            params.limits + s));
            shared.limits[s] = limit;
            // A little above, as distances are rounded after this test.
            const double key = keyValue(entryKey(limit));
            shared.most[s] = limit == kNoEntry || !isfinite(key)
                    ? double(INFINITY)
                    : key + fabs(key) * 0x1p-20 + 0x1p-140;
        }
        __syncthreads();
    }

    __device__ __forceinline__ bool isAllowed(int64_t vector) const {
        const uint32_t* bits = params.search.allowedBits;
        return !bits || (bits[vector / 32] >> (vector % 32) & 1) != 0;
    }

    __device__ __forceinline__ void append(
            uint32_t slot,
            int64_t vector,
            double distance) {
        // Most are, and need no more than this. NaN goes on.
        if ((kIsSimilarity<kMetric> ? -distance : distance) >
            shared.most[slot]) {
            return;
        }
        distance = scannedDistance<kMetric>(
                params.search, shared.rows[slot], vector, distance);
        const uint64_t entry =
                distanceEntry<kMetric>(distance, uint32_t(vector));
        // kNoEntry is not below the first limit, which is kNoEntry.
        if (entry < shared.limits[slot] && isAllowed(vector)) {
            const uint32_t place = atomicAdd(params.counts + slot, 1u);
            params.lists[slot * params.capacity + place] = entry;
        }
    }

    __device__ __forceinline__ void scanFew(
            int64_t first,
            int64_t last,
            uint32_t used) {
        const CertifiedParams& search = params.search;
        constexpr int kGroups = kScanThreads / kPairLanes;
        const int group = threadIdx.x / kPairLanes;
        const int64_t step = int64_t(gridDim.x) * kGroups;
        for (int64_t base = first + int64_t(blockIdx.x) * kGroups; base < last;
             base += step) {
            const int64_t vector = base + group;
            for (uint32_t s = 0; s < used; ++s) {
                double distance = 0;
                withVectors(search.vectors, [&](const auto* data) {
                    distance = pairDistance<kMetric>(
                            data +
                                    min(vector, last - 1) *
                                            search.vectors.rowStride,
                            search.vectors.columnStride,
                            search.queries + int64_t(shared.rows[s]) * search.d,
                            search.d,
                            search.power);
                });
                if (vector < last && threadIdx.x % kPairLanes == 0) {
                    append(s, vector, distance);
                }
            }
        }
    }

    __device__ __forceinline__ void scanTiles(
            int64_t first,
            int64_t last,
            uint32_t used) {
        const uint32_t queryTiles =
                (used + Tile::kQueries - 1) / Tile::kQueries;
        const int64_t tiles = (last - first + Tile::kVectors - 1) /
                Tile::kVectors * queryTiles;
        // Tiles of the same vectors side by side.
        const auto placeOf = [&](int64_t tile) {
            const uint32_t slot = uint32_t(tile % queryTiles) * Tile::kQueries;
            return typename Tile::Place{
                    first + tile / queryTiles * Tile::kVectors,
                    tile < tiles ? last : 0,
                    shared.rows + slot,
                    used - slot};
        };
        Tile tile(shared.tile, params.search);
        typename Tile::Place place = placeOf(blockIdx.x);
        tile.begin(place);
        for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const typename Tile::Place after = placeOf(t + gridDim.x);
            const uint32_t slot = uint32_t(place.rows - shared.rows);
            tile.run(place, after, [&](int q, int v, double distance) {
                if (slot + q < used && place.first + v < last) {
                    append(slot + q, place.first + v, distance);
                }
            });
            place = after;
        }
    }

    /// Leaves the k nearest entries of a list, and the limit that they set.
    __device__ __forceinline__ void keepNearest(uint32_t slot) {
        __syncthreads();
        const uint32_t k = params.keep;
        const uint32_t count = __ldcg(params.counts + slot);
        if (count <= k) {
            return;
        }
        unsigned long long* list = reinterpret_cast<unsigned long long*>(
                params.lists + slot * params.capacity);
        const auto forEach = [&](auto take) {
            // Several loads in flight.
            constexpr int kChunk = 8;
            for (uint32_t i = threadIdx.x; i < count;
                 i += kChunk * kScanThreads) {
                uint64_t chunk[kChunk];
#pragma unroll
                for (int j = 0; j < kChunk; ++j) {
                    const uint32_t at = i + j * kScanThreads;
                    chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
                }
#pragma unroll
                for (int j = 0; j < kChunk; ++j) {
                    if (chunk[j] != kNoEntry) {
                        take(chunk[j]);
                    }
                }
            }
        };
        const uint64_t limit = Narrow{shared.narrow}.limit(forEach, k, k);
        if (threadIdx.x == 0) {
            shared.kept = 0;
        }
        __syncthreads();
        // Places before those that are still to be read are free.
        constexpr int kChunk = 8;
        for (uint32_t base = 0; base < count; base += kChunk * kScanThreads) {
            uint64_t chunk[kChunk];
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                const uint32_t at = base + j * kScanThreads + threadIdx.x;
                chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
            }
            __syncthreads();
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                if (chunk[j] <= limit && chunk[j] != kNoEntry) {
                    list[atomicAdd(&shared.kept, 1u)] = chunk[j];
                }
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            params.counts[slot] = shared.kept;
            // k entries are below what is appended from now on.
            params.limits[slot] = limit;
        }
    }

    /// Sorts a list and writes the row's result.
    __device__ __forceinline__ void finish(uint32_t slot) {
        __syncthreads();
        const int k = params.search.k;
        const uint32_t row = shared.rows[slot];
        uint64_t* list = params.lists + slot * params.capacity;
        const uint32_t count = min(__ldcg(params.counts + slot), uint32_t(k));
        uint64_t* entries = count <= kSharedSort ? shared.sort : list;
        if (entries != list) {
            for (uint32_t i = threadIdx.x; i < count; i += kScanThreads) {
                entries[i] = list[i];
            }
        }
        sortAscending<kScanThreads>(entries, count);
        for (int i = threadIdx.x; i < k; i += kScanThreads) {
            writePlace<kMetric>(
                    params.search,
                    row,
                    i,
                    uint32_t(i) < count ? entries[i] : kNoEntry);
        }
        __syncthreads();
    }
};

template <Metric kMetric>
__global__ void __launch_bounds__(kScanThreads, ScanTile<kMetric>::kBlocks)
        scanAgainKernel(const __grid_constant__ ScanParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Scan = ScanAgain<kMetric>;
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(memory);
    waitForPrevious();
    Scan{shared, params}.run();
}

} // namespace faiss_bits
