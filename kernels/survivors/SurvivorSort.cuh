/// The sort of the buckets: nearly all by their entries' distances, those whose
/// entries lie together by bins between some of them, and the few that are too
/// large by merging, in the same launch: where rows are few, launches are most
/// of the time.
#pragma once

#include <cub/block/block_merge_sort.cuh>

#include "kernels/device/BucketSort.cuh"
#include "kernels/device/DrawnBinSort.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/survivors/SurvivorBuckets.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

using SurvivorBucketSort = BucketSort<kBucketThreads, kBucketItems>;
using SurvivorDrawnSort = DrawnBinSort<kBucketThreads, kBucketItems>;

/// Where sorted entries of level 0 go: to the result.
template <class T>
struct SurvivorResult {
    static constexpr bool kIsResult = true;

    /// Places that count.
    __device__ __forceinline__ static uint32_t wanted(
            const SurvivorSortParams& p) {
        return uint32_t(p.k);
    }

    __device__ __forceinline__ static void put(
            const SurvivorSortParams& p,
            uint32_t row,
            uint32_t place,
            uint64_t entry) {
        if (place < uint32_t(p.k)) {
            writeResult<T>(p, p.firstRow + row, place, entry);
        }
    }
};

/// Of the other levels: every 64th is a splitter.
struct SurvivorSplitters {
    static constexpr bool kIsResult = false;

    __device__ __forceinline__ static uint32_t wanted(
            const SurvivorSortParams&) {
        return ~0u;
    }

    __device__ __forceinline__ static void put(
            const SurvivorSortParams& p,
            uint32_t row,
            uint32_t place,
            uint64_t entry) {
        if (place % kBucketSamples == 0) {
            p.outSplitters
                    [uint64_t(row) * p.outBuckets + place / kBucketSamples] =
                    entry;
        }
    }
};

/// One bucket of a row.
struct SurvivorBucket {
    uint32_t row = 0;
    uint32_t number = 0;
    uint32_t buckets = 1; // of the row
    uint32_t rowCount = 0;
    uint32_t start = 0;                // place of its first entry: startOf
    uint32_t count = 0;                // may be more than kBucketRoom
    const uint64_t* entries = nullptr; // the first kBucketRoom

    __device__ __forceinline__
    SurvivorBucket(const SurvivorSortParams& p, uint32_t index) {
        row = index / p.buckets;
        number = index % p.buckets;
        rowCount = entriesOf(p, row);
        buckets = bucketsOf(rowCount, p.bucket);
        if (buckets == 1) {
            count = number == 0 ? rowCount : 0;
            entries = p.entries + uint64_t(row) * p.stride;
        } else if (number < buckets) {
            count = p.sizes[index];
            entries = p.slots + uint64_t(index) * kBucketRoom;
        }
    }

    /// A row that is one bucket.
    __device__ __forceinline__
    SurvivorBucket(uint32_t row, uint32_t count, const uint64_t* entries)
            : row(row), rowCount(count), count(count), entries(entries) {}
};

struct SurvivorLess {
    __device__ __forceinline__ bool operator()(uint64_t a, uint64_t b) const {
        return a < b;
    }
};
using SurvivorMerge =
        cub::BlockMergeSort<uint64_t, kBucketThreads, kBucketItems>;
using SurvivorNarrow = BlockNarrow<kBucketThreads>;

/// Of a block that sorts a bucket, one way or the other.
union SurvivorSortMemory {
    typename SurvivorBucketSort::SharedStorage sort;
    typename SurvivorDrawnSort::SharedStorage drawn;
    struct {
        union {
            typename SurvivorNarrow::SharedStorage narrow;
            typename SurvivorMerge::TempStorage merge;
            uint64_t room[kBucketRoom];
        };
        uint32_t count;
    } merging;
};

/// A bucket of any size: what follows in order, as much as a block can sort at
/// a time, until all is sorted.
template <class Out>
struct BucketMerge {
    SurvivorSortMemory& memory;
    const SurvivorSortParams& p;
    const SurvivorBucket& bucket;

    /// Begins and ends with the block in step.
    __device__ __forceinline__ void run() {
        const uint64_t* entries = bucket.entries;
        uint32_t count = bucket.count;
        uint64_t least = 0;
        uint64_t greatest = kNoEntry - 1;
        if (count > kBucketRoom) {
            // Not all of them are in its slot, but all are in the row.
            const uint64_t* splitters =
                    p.splitters + uint64_t(bucket.row) * p.buckets;
            entries = p.entries + uint64_t(bucket.row) * p.stride;
            count = bucket.rowCount;
            if (bucket.number > 0) {
                least = splitters[bucket.number];
            }
            if (bucket.number + 1 < bucket.buckets) {
                greatest = splitters[bucket.number + 1] - 1;
            }
        }
        uint32_t done = 0;
        while (done < bucket.count && bucket.start + done < Out::wanted(p)) {
            const auto forEach = [&](auto take) {
                for (uint32_t i = threadIdx.x; i < count; i += kBucketThreads) {
                    const uint64_t entry = entries[i];
                    if (entry >= least && entry <= greatest) {
                        take(entry);
                    }
                }
            };
            uint64_t last = greatest;
            if (bucket.count - done > kBucketRoom) {
                last = SurvivorNarrow{memory.merging.narrow}.limit(
                        forEach, kBucketRoom / 2, kBucketRoom);
            }
            done += sortUpTo(forEach, last, done);
            least = last + 1;
        }
    }

   private:
    /// Sorts the entries that are not above `last`; returns how many.
    template <class ForEach>
    __device__ __forceinline__ uint32_t
    sortUpTo(ForEach forEach, uint64_t last, uint32_t done) {
        auto& shared = memory.merging;
        __syncthreads();
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        forEach([&](uint64_t entry) {
            if (entry <= last) {
                shared.room[atomicAdd(&shared.count, 1u)] = entry;
            }
        });
        __syncthreads();
        const uint32_t count = shared.count;
        const uint32_t mine = threadIdx.x * kBucketItems;
        uint64_t items[kBucketItems];
#pragma unroll
        for (int i = 0; i < kBucketItems; ++i) {
            items[i] = mine + i < count ? shared.room[mine + i] : kNoEntry;
        }
        __syncthreads();
        SurvivorMerge(shared.merge).Sort(items, SurvivorLess{});
        // Turned round, so that warps write consecutive places.
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kBucketItems; ++i) {
            shared.room[mine + i] = items[i];
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count; i += kBucketThreads) {
            Out::put(p, bucket.row, bucket.start + done + i, shared.room[i]);
        }
        __syncthreads();
        return count;
    }
};

/// Of a bucket that is too large, or whose entries lie together. Out of line,
/// so that it costs the others no registers.
template <class Out>
__device__ __noinline__ void sortCrowded(
        SurvivorSortMemory& memory,
        const SurvivorSortParams& p,
        SurvivorBucket bucket) {
    if (bucket.count <= kBucketRoom) {
        const auto put = [&](uint32_t place, uint64_t entry) {
            Out::put(p, bucket.row, bucket.start + place, entry);
        };
        if (SurvivorDrawnSort{memory.drawn}.sort(
                    bucket.entries, bucket.count, put)) {
            return;
        }
    }
    BucketMerge<Out>{memory, p, bucket}.run();
}

/// Sorts a bucket whose start is known.
template <class Out>
__device__ __forceinline__ void sortBucket(
        SurvivorSortMemory& memory,
        const SurvivorSortParams& p,
        const SurvivorBucket& bucket) {
    if (bucket.count <= kBucketRoom) {
        // From shared memory, for want of registers.
        auto& shared = memory.sort;
        if (threadIdx.x == 0) {
            shared.row = bucket.row;
            shared.start = bucket.start;
        }
        const auto put = [&](uint32_t place, uint64_t entry) {
            Out::put(p, shared.row, shared.start + place, entry);
        };
        const EntryDistance distance = {p.keyBit, p.columns};
        if (SurvivorBucketSort{shared, distance}.sort(
                    bucket.entries, bucket.count, put)) {
            return;
        }
    }
    sortCrowded<Out>(memory, p, bucket);
}

/// Where the buckets of a row begin, for more than kMostSummed. One block a
/// row.
__global__ void __launch_bounds__(kBucketThreads)
        startBucketsKernel(const __grid_constant__ SurvivorSortParams p) {
    using Scan = cub::BlockScan<uint32_t, kBucketThreads>;
    constexpr uint32_t kItems = 4;
    waitForPrevious();
    __shared__ typename Scan::TempStorage scan;
    const uint32_t row = blockIdx.x;
    const uint32_t buckets = bucketsOf(entriesOf(p, row), p.bucket);
    if (buckets == 1) {
        return;
    }
    const uint32_t* sizes = p.sizes + uint64_t(row) * p.buckets;
    uint32_t* starts = p.starts + uint64_t(row) * p.buckets;
    uint32_t before = 0;
    for (uint32_t b = 0; b < buckets; b += kItems * kBucketThreads) {
        const uint32_t mine = b + threadIdx.x * kItems;
        uint32_t counts[kItems];
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < kItems; ++i) {
            counts[i] = mine + i < buckets ? sizes[mine + i] : 0;
            sum += counts[i];
        }
        uint32_t start;
        uint32_t total;
        Scan(scan).ExclusiveSum(sum, start, total);
        start += before;
        before += total;
#pragma unroll
        for (uint32_t i = 0; i < kItems; ++i) {
            if (mine + i < buckets) {
                starts[mine + i] = start;
            }
            start += counts[i];
        }
        __syncthreads();
    }
}

/// The place of a bucket's first entry. Begins and ends with the block in step.
__device__ __forceinline__ uint32_t
startOf(SurvivorSortMemory& memory,
        const SurvivorSortParams& p,
        const SurvivorBucket& bucket) {
    const uint64_t first = uint64_t(bucket.row) * p.buckets;
    if (p.buckets > kMostSummed) {
        return p.starts[first + bucket.number];
    }
    constexpr uint32_t kWarps = kBucketThreads / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    uint32_t sum = 0;
    for (uint32_t b = threadIdx.x; b < bucket.number; b += kBucketThreads) {
        sum += p.sizes[first + b];
    }
    sum = __reduce_add_sync(kFullWarp, sum);
    if (lane == 0) {
        memory.sort.sums[threadIdx.x / kWarpSize] = sum;
    }
    __syncthreads();
    sum = __reduce_add_sync(
            kFullWarp, lane < kWarps ? memory.sort.sums[lane] : 0);
    __syncthreads();
    return sum;
}

/// One block a bucket: rows x buckets blocks.
template <class Out>
__global__ void __launch_bounds__(kBucketThreads, Out::kIsResult ? 3 : 2)
        sortBucketsKernel(const __grid_constant__ SurvivorSortParams p) {
    waitForPrevious();
    __shared__ SurvivorSortMemory memory;
    SurvivorBucket bucket(p, blockIdx.x);
    if constexpr (Out::kIsResult) {
        // Fewer entries than k: every block of the row writes its part.
        if (bucket.rowCount < uint32_t(p.k)) {
            const uint32_t part = (uint32_t(p.k) - 1) / p.buckets + 1;
            const uint64_t begin = uint64_t(bucket.number) * part;
            for (uint64_t i = threadIdx.x; i < part; i += kBucketThreads) {
                if (begin + i >= bucket.rowCount && begin + i < uint32_t(p.k)) {
                    Out::put(p, bucket.row, uint32_t(begin + i), kNoEntry);
                }
            }
        }
    }
    if (bucket.count == 0) {
        return;
    }
    if (bucket.buckets > 1) {
        bucket.start = startOf(memory, p, bucket);
    }
    if (bucket.start >= Out::wanted(p)) {
        return;
    }
    if (Out::kIsResult && p.anyOrder && bucket.count <= kBucketRoom &&
        bucket.start + bucket.count <= Out::wanted(p)) {
        for (uint32_t i = threadIdx.x; i < bucket.count; i += kBucketThreads) {
            Out::put(p, bucket.row, bucket.start + i, bucket.entries[i]);
        }
        return;
    }
    sortBucket<Out>(memory, p, bucket);
}

/// Draws the sample of the level before, which one block a row can sort, sorts
/// it, and clears the sizes of that level's buckets. One block a row.
__global__ void __launch_bounds__(kBucketThreads)
        sortSampleKernel(const __grid_constant__ SurvivorSortParams p) {
    waitForPrevious();
    __shared__ SurvivorSortMemory memory;
    const uint32_t row = blockIdx.x;
    for (uint32_t b = threadIdx.x; b < p.outBuckets; b += kBucketThreads) {
        p.sizesBefore[uint64_t(row) * p.outBuckets + b] = 0;
    }
    const uint32_t count = entriesAt(p, row, p.level - 1);
    const uint32_t samples = samplesOf(count, p.bucket);
    if (samples == 0) {
        return;
    }
    const SurvivorSample sample(
            p.before + uint64_t(row) * p.strideBefore,
            count,
            samples,
            p.firstRow + row,
            p.level - 1);
    uint64_t* drawn = p.drawn + uint64_t(row) * p.stride;
    for (uint32_t s = threadIdx.x; s < samples; s += kBucketThreads) {
        drawn[s] = sample.entry(s);
    }
    __syncthreads();
    sortBucket<SurvivorSplitters>(
            memory, p, SurvivorBucket(row, samples, drawn));
}

} // namespace faiss_bits
