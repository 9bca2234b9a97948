/// What the multi-pass kernels do as a block: writing matches in the order of
/// their columns, histograms, and the k-th entry of a source.
#pragma once

#include <cub/block/block_scan.cuh>

#include "kernels/device/Bitonic.cuh"
#include "kernels/select/large_k/RowTile.cuh"

namespace faiss_bits {

/// Matches of one tile by pack, 16 bits each: those of a block fit.
using PackCounts = uint64_t;

/// Places of matches in the order of columns, by a block-wide prefix sum
/// (Hanak 2023, 4.3.1); the order that threads run in does not show.
class OrderedPlaces {
   public:
    using Scan = cub::BlockScan<PackCounts, kMultiPassThreads>;
    using SharedStorage = typename Scan::TempStorage;

    /// Counts what matches(entry). Every thread of the block takes part; the
    /// storage is free after the block's next barrier.
    template <class Tile, class Matches>
    __device__ OrderedPlaces(
            SharedStorage& shared,
            const Tile& tile,
            Matches matches) {
        PackCounts mine = 0;
#pragma unroll
        for (int i = 0; i < Tile::kItems; ++i) {
            mine += matches(tile.entry(i))
                    ? PackCounts(1) << (16 * (i / Tile::kPack))
                    : 0;
        }
        Scan(shared).ExclusiveSum(mine, before_, total_);
    }

    /// Matches of the whole tile.
    __device__ uint32_t total() const {
        return uint32_t(total_ & 0xFFFF) + uint32_t(total_ >> 16 & 0xFFFF) +
                uint32_t(total_ >> 32 & 0xFFFF) + uint32_t(total_ >> 48);
    }

    /// Calls write(place, entry) for this thread's matches; the first of the
    /// tile is at place `first`.
    template <class Tile, class Matches, class Write>
    __device__ __forceinline__ void forEach(
            const Tile& tile,
            uint32_t first,
            Matches matches,
            Write write) const {
#pragma unroll
        for (int v = 0; v < Tile::kPacks; ++v) {
            uint32_t place = first + (uint32_t(before_ >> (16 * v)) & 0xFFFF);
#pragma unroll
            for (int j = 0; j < Tile::kPack; ++j) {
                const uint64_t entry = tile.entry(v * Tile::kPack + j);
                if (matches(entry)) {
                    write(place++, entry);
                }
            }
            first += uint32_t(total_ >> (16 * v)) & 0xFFFF;
        }
    }

   private:
    PackCounts before_;
    PackCounts total_;
};

struct InRange {
    uint64_t lo;
    uint64_t hi;

    __device__ __forceinline__ bool operator()(uint64_t entry) const {
        return lo <= entry && entry <= hi;
    }
};

/// Writes the source's entries in `range` to consecutive places in the order
/// of columns. The block begins and ends in step.
template <class Row, class Write>
__device__ __forceinline__ void gatherInOrder(
        OrderedPlaces::SharedStorage& shared,
        const Row& source,
        uint32_t begin,
        uint32_t end,
        InRange range,
        uint32_t first,
        Write write) {
    forEachTile(source, begin, end, [&](const auto& tile) {
        const OrderedPlaces places(shared, tile, range);
        // Also: every thread has read its part of the tile before any thread
        // writes, which lets a row be packed where it lies.
        __syncthreads();
        places.forEach(tile, first, range, write);
        first += places.total();
        __syncthreads();
    });
}

/// Adds one to a bucket for every lane with `counts`. Warps are in step.
/// Neighbours of sorted rows fall into one bucket: one addition then.
__device__ __forceinline__ void addToHistogram(
        uint32_t* histogram,
        bool counts,
        uint32_t bucket) {
    const unsigned lanes = __ballot_sync(kFullWarp, counts);
    if (lanes == 0) {
        return;
    }
    const uint32_t common = __shfl_sync(kFullWarp, bucket, __ffs(lanes) - 1);
    if (__all_sync(kFullWarp, !counts || bucket == common)) {
        if (threadIdx.x % kWarpSize == 0) {
            atomicAdd(histogram + common, __popc(lanes));
        }
    } else if (counts) {
        atomicAdd(histogram + bucket, 1u);
    }
}

/// Radix digits of entries that are in [lo, hi]: the highest bits in which
/// such entries can differ.
struct DigitRange {
    uint64_t lo;
    uint64_t hi;

    __device__ __forceinline__ int shift() const {
        const int bits = 64 - __clzll((long long)(hi - lo));
        return bits > kDigitBits ? bits - kDigitBits : 0;
    }

    __device__ __forceinline__ static uint32_t bucketOf(
            uint64_t lo,
            int shift,
            uint64_t entry) {
        return uint32_t((entry - lo) >> shift);
    }

    /// The entries of one bucket. `lastColumn`: of the row, so that digits of
    /// columns that do not exist are skipped.
    __device__ DigitRange of(uint32_t bucket, uint32_t lastColumn) const {
        const int s = shift();
        DigitRange part;
        part.lo = lo + (uint64_t(bucket) << s);
        const uint64_t width = (uint64_t(1) << s) - 1;
        part.hi = hi - part.lo < width ? hi : part.lo + width;
        if (entryKey(part.lo) == entryKey(part.hi)) {
            const uint64_t last = makeEntry(entryKey(part.lo), lastColumn);
            part.hi = part.hi < last ? part.hi : last;
        }
        return part;
    }
};

/// The k-th entry of a source by one block: histograms of digits until few
/// candidates are left, which are sorted (Hanak 2023, 3.7.2). Ends whatever
/// the keys are: each histogram narrows the range, at last to one entry.
class BlockKth {
   public:
    static constexpr int kItems = 2;
    static constexpr uint32_t kSorted = kMultiPassThreads * kItems;
    using Sorter = BlockBitonic<kMultiPassThreads, kItems>;
    using Scan = cub::BlockScan<uint32_t, kMultiPassThreads>;

    struct SharedStorage {
        union {
            uint32_t histogram[kDigitBuckets];
            uint64_t entries[kSorted];
        };
        union {
            typename Scan::TempStorage scan;
            typename Sorter::SharedStorage sorter;
        };
        uint64_t result;
        uint32_t bucket;
        uint32_t less;
        uint32_t count;
        uint32_t collected;
    };

    /// Entry number `wanted` (from 1) of the `count` entries of
    /// source[begin, end) that are in `range`. Every thread gets it. The block
    /// begins and ends in step.
    template <class Row>
    __device__ __noinline__ static uint64_t find(
            SharedStorage& shared,
            const Row& source,
            uint32_t begin,
            uint32_t end,
            InRange range,
            uint32_t count,
            uint32_t wanted,
            uint32_t lastColumn) {
        while (count > kSorted && range.lo < range.hi) {
            const DigitRange digits{range.lo, range.hi};
            countDigits(shared, source, begin, end, range, digits.shift());
            findBucket(shared, wanted);
            wanted -= shared.less;
            count = shared.count;
            const DigitRange part = digits.of(shared.bucket, lastColumn);
            range = {part.lo, part.hi};
            __syncthreads();
        }
        if (range.lo == range.hi) {
            return range.lo;
        }
        return sortFew(shared, source, begin, end, range, wanted);
    }

   private:
    template <class Row>
    __device__ __forceinline__ static void countDigits(
            SharedStorage& shared,
            const Row& source,
            uint32_t begin,
            uint32_t end,
            InRange range,
            int shift) {
        for (int b = threadIdx.x; b < kDigitBuckets; b += kMultiPassThreads) {
            shared.histogram[b] = 0;
        }
        __syncthreads();
        forEachTile(source, begin, end, [&](const auto& tile) {
#pragma unroll
            for (int i = 0; i < Row::Tile::kItems; ++i) {
                const uint64_t entry = tile.entry(i);
                addToHistogram(
                        shared.histogram,
                        range(entry),
                        DigitRange::bucketOf(range.lo, shift, entry));
            }
        });
        __syncthreads();
    }

    __device__ static void findBucket(SharedStorage& shared, uint32_t wanted) {
        constexpr int kEach = kDigitBuckets / kMultiPassThreads;
        uint32_t counts[kEach];
        uint32_t mine = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            counts[i] = shared.histogram[threadIdx.x * kEach + i];
            mine += counts[i];
        }
        uint32_t before;
        Scan(shared.scan).ExclusiveSum(mine, before);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            if (before < wanted && wanted <= before + counts[i]) {
                shared.bucket = threadIdx.x * kEach + i;
                shared.less = before;
                shared.count = counts[i];
            }
            before += counts[i];
        }
        __syncthreads();
    }

    template <class Row>
    __device__ __forceinline__ static uint64_t sortFew(
            SharedStorage& shared,
            const Row& source,
            uint32_t begin,
            uint32_t end,
            InRange range,
            uint32_t wanted) {
        if (threadIdx.x == 0) {
            shared.collected = 0;
        }
        __syncthreads();
        forEachTile(source, begin, end, [&](const auto& tile) {
#pragma unroll
            for (int i = 0; i < Row::Tile::kItems; ++i) {
                const uint64_t entry = tile.entry(i);
                if (range(entry)) {
                    // In any order: they are sorted next.
                    shared.entries[atomicAdd(&shared.collected, 1u)] = entry;
                }
            }
        });
        __syncthreads();
        uint64_t items[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at = i * kMultiPassThreads + threadIdx.x;
            items[i] = at < shared.collected ? shared.entries[at] : kNoEntry;
        }
        Sorter{shared.sorter}.sort(
                items, true, [](uint64_t a, uint64_t b) { return a < b; });
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (threadIdx.x * kItems + i == wanted - 1) {
                shared.result = items[i];
            }
        }
        __syncthreads();
        const uint64_t result = shared.result;
        __syncthreads();
        return result;
    }
};

} // namespace faiss_bits
