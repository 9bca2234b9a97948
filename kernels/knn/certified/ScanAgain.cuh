/// The queries whose candidates were not proved to be enough: canonical
/// distances to all vectors, in bounded scratch, by one kernel of the whole
/// GPU that ends at once where there are none.
#pragma once

#include <cooperative_groups.h>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/device/WarpNarrow.cuh"
#include "kernels/knn/certified/DistanceTile.cuh"
#include "kernels/knn/certified/FlaggedRows.cuh"
#include "kernels/knn/certified/PieceSort.cuh"
#include "kernels/knn/certified/ScanSizes.cuh"
#include "kernels/knn/certified/SortAscending.cuh"
#include "kernels/knn/certified/VectorGroups.h"

namespace faiss_bits {

/// What a block does before it begins a step: nothing. For tests, which have
/// some come late, as they do where a GPU is shared and kernels are suspended.
struct BeginAtOnce {
    __device__ static void wait() {}
};

template <Metric kMetric, class Begin>
struct ScanAgain {
    using Tile = DistanceTile<kMetric, 6>;
    static constexpr int kThreads = Tile::kThreads;
    using Narrow = BlockNarrow<kThreads>;
    using Flagged = FlaggedRows<kThreads>;
    using Pieces = PieceSort<kThreads>;
    /// Vectors side by side that a step takes. Chunks are taken in a scattered
    /// order: where neighbours are alike, the first ones say little of others.
    static constexpr int kChunk = Tile::kVectors >= 128 ? Tile::kVectors : 128;
    static constexpr int kTilesOfChunk = kChunk / Tile::kVectors;
    static_assert(kChunk % Tile::kVectors == 0);
    static_assert(kThreads <= kMaxScanSlots); // rows that sortAlike() lists
    /// Tiles of pairs that are looked at before they are computed: vectors,
    /// queries, these where few are left, and components at a time.
    static constexpr int kFilterVectors = 64;
    static constexpr int kFilterQueries = kIsOfProducts<kMetric> ? 64 : 32;
    static constexpr int kFewFilterQueries = 16;
    static constexpr int kFewestFilterQueries =
            kMetric == Metric::JensenShannon ? 4 : kFewFilterQueries;
    /// Of a few operations each a step of sixteen is too short for the reads of
    /// the next.
    static constexpr int kFilterLanes = 16; // that read a row
    static constexpr int kFilterDepth = kIsOfProducts<kMetric> ? 32 : 16;
    static constexpr int kFilterPad = kIsOfProducts<kMetric> ? 4 : 1;
    static_assert(kChunk % kFilterVectors == 0);
    /// Slots that have an end of the scan together: as many as tiles have, or
    /// several tiles.
    static constexpr uint32_t kEndSlots = 64;
    static constexpr uint32_t kEnds = kMaxScanSlots / kEndSlots;
    static_assert(kEndSlots % Tile::kQueries == 0);
    static_assert(kEndSlots % kFilterQueries == 0);
    static_assert(kEndSlots % kFewFilterQueries == 0);
    static_assert(kEndSlots % kFewestFilterQueries == 0);
    static_assert(kFewSlots<kMetric> <= kEndSlots);
    /// Whether tiles are made of queries that are alike.
    static constexpr bool kHasKinds = kMetric == Metric::L2;
    static constexpr uint32_t kMostTiles =
            kMaxScanSlots / Tile::kQueries + kMostKinds;
    /// Tiles of the slots: tile i has slots first[i] to first[i + 1] - 1.
    struct SlotTiles {
        uint16_t first[kMostTiles + 1];
        uint16_t count;
    };
    struct NoTiles {};
    /// Slots that there is room for: a tile may look behind the last.
    static constexpr int kSlotRoom =
            kMaxScanSlots + (kHasKinds ? Tile::kQueries : 0);
    /// Vectors of an item: a tile of products is as wide as its chunk.
    static constexpr int kPartVectors =
            kIsOfProducts<kMetric> ? kChunk : kFilterVectors;

    struct SharedStorage {
        union {
            typename Tile::SharedStorage tile;
            typename Narrow::SharedStorage narrow;
            WarpNarrow::SharedStorage narrowOfWarps[kThreads / kWarpSize];
            struct {
                uint64_t sort[kSharedSort];
                typename Pieces::SharedStorage pieces;
            } lists;
            uint32_t ofGroups[kGroupSlots]; // sizes, or keys of a query
            struct {
                // Four more: sixteen bytes of a row at a time, from banks that
                // differ as the rows do. Two steps of components.
                alignas(16) float vectors[2][kFilterDepth][kFilterVectors + 4];
                alignas(16) float queries[2][kFilterDepth]
                                         [kFilterQueries + kFilterPad];
                uint16_t near[kFilterVectors * kFilterQueries]; // pairs
                bool isOdd[kFilterVectors + kFilterQueries];    // not finite
            } filter;
            struct {
                float nearest[kMaxScanSlots]; // squared, to a kind's first
                uint32_t rows[kMaxScanSlots];
                uint8_t ofSlots[kMaxScanSlots];
                uint32_t ends[kMostKinds]; // slots
                unsigned long long farthest;
            } kinds;
        };
        uint32_t rows[kMaxScanSlots];
        uint64_t limits[kSlotRoom];
        double beyond[kSlotRoom]; // of keys that are: see Concerns
        uint32_t ends[kEnds];     // vectors from here on are within no limit
        // Entries that keepNearest() left in the lists of this block: slots
        // blockIdx.x, blockIdx.x + gridDim.x, ...
        uint32_t counts[kMaxScanSlots];
        typename Flagged::SharedStorage flagged;
        uint32_t kept;
        uint32_t sums[2][kThreads / kWarpSize];
        double norms[2 * kThreads / kWarpSize];
        std::conditional_t<kHasKinds, SlotTiles, NoTiles> tiles;
    };

    SharedStorage& shared;
    const ScanAgainParams& params;
    /// Sets of equal vectors, where these are scanned in place of vectors; else
    /// 0.
    uint32_t numGroups = 0;
    /// Chunks of which only upper bounds are looked at, for limits: those of
    /// the steps at work; else 0.
    uint32_t numRough = 0;
    /// L2: products of float64 leave many pairs in doubt.
    bool areNear = false;
    /// Tiles of L2 subtract their first query: as the last one before did.
    bool hasCenter = true;
    /// k = 1 by tiles of products: the limit of a slot is the nearest vector
    /// that is known, and there are no lists.
    bool isOne = false;

    /// Inlined: a call would have all that is shared in memory behind pointers.
    __device__ __forceinline__ void run();

   private:
    // What is done step by step: ScanAgainRun.cuh.
    __device__ __forceinline__ uint32_t takeRows(uint32_t& next);

    __device__ __forceinline__ uint32_t firstChunks(uint32_t growth) const;

    __device__ __forceinline__ uint32_t
    fullTurns(uint32_t first, uint32_t most, uint32_t used) const;

    /// The first vector of the i-th chunk.
    __device__ __forceinline__ int64_t chunkAt(uint32_t i) const {
        const ScanOrder& order = params.order;
        const uint64_t product = uint64_t(i) * order.scatter;
        // Modulo the number of chunks; the quotient may be off by one.
        const uint64_t quotient = uint64_t(double(product) * order.inverse);
        int64_t chunk = int64_t(product - quotient * order.chunks);
        chunk += chunk < 0 ? order.chunks : 0;
        chunk -= chunk >= order.chunks ? order.chunks : 0;
        return chunk * kChunk;
    }

    __device__ __forceinline__ bool isAllowed(int64_t vector) const {
        const uint32_t* bits = params.search.allowedBits;
        return !bits || (bits[vector / 32] >> (vector % 32) & 1) != 0;
    }

    /// Whether a pair of a tile may belong to the result, of which the key is
    /// no less than `least`.
    struct Concerns {
        const SharedStorage& shared;
        uint32_t slot;  // of the tile's first query
        int64_t vector; // its first

        __device__ __forceinline__ bool operator()(int q, int v, float least)
                const {
            return makeEntry(orderedKey(least), uint32_t(vector + v)) <=
                    shared.limits[slot + q];
        }

        /// A distance that is as large, before it is rounded, is beyond the
        /// limit: it is the least float32 that is. NaN: none is known to be.
        __device__ __forceinline__ double beyond(int q) const {
            return shared.beyond[slot + q];
        }
    };

    // Of few slots: ScanAgainFew.cuh.
    __device__ __forceinline__ bool areFew(uint32_t used) const;
    __device__ __forceinline__ void scanFew(
            uint32_t begin,
            uint32_t count,
            uint32_t used);
    template <int kQueries>
    __device__ __forceinline__ void scanChunk(
            int64_t first,
            uint32_t s,
            uint32_t used);
    __device__ __forceinline__ void scanSingly(
            uint32_t begin,
            uint32_t count,
            uint32_t used);

    // Of more: ScanAgainTiles.cuh.
    struct Slots {
        uint32_t first;
        uint32_t count;
    };
    __device__ __forceinline__ uint32_t tilesOf(uint32_t used) const;
    __device__ __forceinline__ Slots
    slotsOfTile(uint32_t tile, uint32_t used) const;
    __device__ __forceinline__ void scanTiles(
            uint32_t begin,
            uint32_t count,
            uint32_t used);

    // Of the one nearest: NearestOfSlots.cuh.
    __device__ __forceinline__ bool takesOne(uint32_t used) const;
    __device__ __forceinline__ void readNearest(uint32_t slot, uint32_t used);
    __device__ __forceinline__ void putNearest(uint32_t slot, uint64_t entry);
    template <class Places, int kDown, int kAcross>
    __device__ __forceinline__ void putNearestOfTile(
            uint32_t slot,
            int64_t first,
            const float (&distances)[kDown][kAcross][4],
            uint64_t sure);
    __device__ __forceinline__ void writeNearest(uint32_t used);

    // Of queries that are alike: SlotKinds.cuh.
    __device__ __forceinline__ void makeTiles(uint32_t used);
    __device__ __forceinline__ uint32_t findKinds(uint32_t used);
    __device__ __forceinline__ bool divideByKinds(
            uint32_t used,
            uint32_t numKinds);
    __device__ __forceinline__ bool arePairsNear(uint32_t used) const;

    /// Whether a tile that begins with a vector has none within the limits of
    /// the slots that have a share of an end with this one.
    __device__ __forceinline__ bool isBehind(int64_t first, uint32_t slot)
            const {
        return first >= shared.ends[slot / kEndSlots];
    }

    // What is found, to the lists: ScanAppend.cuh.
    struct AppendPairs;
    __device__ __forceinline__ bool belongs(uint32_t slot, uint64_t entry)
            const;
    __device__ __forceinline__ void putEntry(
            uint32_t slot,
            uint32_t at,
            uint64_t entry);
    __device__ __forceinline__ void append(
            uint32_t slot,
            int64_t vector,
            float distance);
    template <int kCount>
    __device__ __forceinline__ void appendSome(
            uint32_t slot,
            int64_t vector,
            const float (&distances)[kCount],
            uint32_t mask);
    template <int kWidth, int kDown, int kAcross>
    __device__ __forceinline__ void appendLanes(
            uint32_t slot,
            int64_t vector,
            const float (&distances)[kDown][kAcross]);
    template <class Places, int kDown, int kAcross>
    __device__ __forceinline__ void appendTile(
            uint32_t slot,
            int64_t first,
            const float (&distances)[kDown][kAcross][4],
            uint64_t sure);

    // Limits: ScanLimits.cuh.
    __device__ __forceinline__ uint64_t rankedLimit(uint32_t row) const;
    __device__ __forceinline__ uint32_t readLimit(uint32_t slot);
    __device__ __forceinline__ void readLimits(uint32_t used);

    // Lists: ScanAgainLists.cuh.
    __device__ __forceinline__ bool isOverfull(uint32_t used) const;
    __device__ __forceinline__ void forgetStep(uint32_t used);
    __device__ __forceinline__ uint32_t
    uncutEntries(uint32_t sortable, bool isLast) const;
    __device__ __forceinline__ uint32_t mostKept() const;
    __device__ __forceinline__ bool keepByWarps(
            uint32_t used,
            uint32_t longest,
            bool isLast);
    __device__ __forceinline__ void keepNearest(uint32_t used, bool isLast);
    __device__ __forceinline__ void keepByBlock(
            uint32_t slot,
            uint32_t done,
            bool isLast);
    template <int kTeam>
    __device__ __forceinline__ void finishShort(uint32_t used);
    __device__ __forceinline__ void finish(uint32_t slot);
    __device__ __forceinline__ void finishTogether(uint32_t used);
    __device__ __forceinline__ void writeEntry(
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint32_t i);

    // Of pairs that may be within limits, and what a step is done by:
    // ScanFiltered.cuh.
    __device__ __forceinline__ void scanStep(
            uint32_t begin,
            uint32_t count,
            uint32_t used);
    __device__ __forceinline__ bool mayFilter(uint32_t used) const;
    __device__ __forceinline__ int usualPower() const;
    __device__ __forceinline__ bool hasLimits(uint32_t used) const;
    __device__ __forceinline__ bool filterTiles(
            const TilePlace& place,
            uint32_t slot);
    __device__ __forceinline__ void scanFiltered(
            uint32_t begin,
            uint32_t count,
            uint32_t used);
    __device__ __forceinline__ void wholeTile(
            int64_t first,
            int64_t end,
            uint32_t slot,
            uint32_t rows);
    template <int kQueries, int kHalves>
    __device__ __forceinline__ uint32_t
    filteredTile(int64_t first, uint32_t slot, uint32_t rows);

    // Limits by upper bounds: ScanRough.cuh.
    __device__ __forceinline__ uint32_t roughChunks(uint32_t used) const;
    __device__ __forceinline__ void forgetRough(uint32_t used);

    // Of rows whose candidates are to be sorted: SortAlike.cuh.
    __device__ __forceinline__ void sortAlike();
    __device__ __forceinline__ void sortAlikeRows();
    __device__ __forceinline__ void sortAlikeTogether();
    __device__ __forceinline__ void sortCandidates(uint32_t row);
    __device__ __forceinline__ uint64_t placeCandidate(
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint32_t i);
    __device__ __forceinline__ bool proveCandidates(
            uint32_t row,
            const uint64_t* entries,
            uint32_t count,
            uint64_t last);

    // Of vectors that are equal: ScanGroups.cuh, MakeGroups.cuh.
    __device__ __forceinline__ bool isAmiss(uint32_t used) const;
    __device__ __forceinline__ void forgetCuts(uint32_t used);
    __device__ __forceinline__ bool wantsGroups(uint32_t used) const;
    __device__ __forceinline__ bool mayBeEqual();
    __device__ __forceinline__ void clearGroups();
    __device__ __forceinline__ void makeGroups();
    __device__ __forceinline__ void findGroupKeys(uint32_t used);
    __device__ __forceinline__ void findGroupLimits(uint32_t used);
    __device__ __forceinline__ void scanGroups(
            uint32_t begin,
            uint32_t count,
            uint32_t used);
    template <class T>
    __device__ __forceinline__ void groupChunk(const T* data, int64_t first);
};

template <Metric kMetric, class Begin>
__global__ void __launch_bounds__(
        ScanAgain<kMetric, Begin>::Tile::kThreads,
        ScanAgain<kMetric, Begin>::Tile::kBlocks)
        scanAgainKernel(const __grid_constant__ ScanAgainParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Scan = ScanAgain<kMetric, Begin>;
    auto& shared = *reinterpret_cast<typename Scan::SharedStorage*>(memory);
    waitForPrevious();
    Begin::wait();
    // Most often there are none: little of the code is read then.
    const typename Scan::Flagged flagged{
            shared.flagged, params.search.flags, params.search.rows};
    if (flagged.areThere(params.counts)) {
        Scan{shared, params}.run();
    }
}

} // namespace faiss_bits

#include "kernels/knn/certified/MakeGroups.cuh"
#include "kernels/knn/certified/NearestOfSlots.cuh"
#include "kernels/knn/certified/ScanAgainFew.cuh"
#include "kernels/knn/certified/ScanAgainLists.cuh"
#include "kernels/knn/certified/ScanAgainRun.cuh"
#include "kernels/knn/certified/ScanAgainTiles.cuh"
#include "kernels/knn/certified/ScanAppend.cuh"
#include "kernels/knn/certified/ScanFiltered.cuh"
#include "kernels/knn/certified/ScanGroups.cuh"
#include "kernels/knn/certified/ScanLimits.cuh"
#include "kernels/knn/certified/ScanRough.cuh"
#include "kernels/knn/certified/SlotKinds.cuh"
#include "kernels/knn/certified/SortAlike.cuh"
