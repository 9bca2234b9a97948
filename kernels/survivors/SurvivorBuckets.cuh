/// From the entries of a row to buckets, every entry of which is below all of
/// the next: a random sample, and after it was sorted, the distribution. The
/// kernels here are no templates: included by SurvivorSort.cu only.
#pragma once

#include <cub/block/block_scan.cuh>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/device/Hash.h"
#include "kernels/survivors/SurvivorSortParams.h"

namespace faiss_bits {

/// Buckets of a row of `count` entries.
__host__ __device__ constexpr uint32_t bucketsOf(
        uint32_t count,
        uint32_t bucket) {
    return count <= kBucketRoom ? 1 : (count - 1) / bucket + 1;
}

/// Entries that are drawn from `count`, to be sorted by the next level.
__host__ __device__ constexpr uint32_t samplesOf(
        uint32_t count,
        uint32_t bucket) {
    const uint32_t buckets = bucketsOf(count, bucket);
    return buckets > 1 ? buckets * kBucketSamples : 0;
}

/// Entries of a row at a level.
__device__ __forceinline__ uint32_t
entriesAt(const SurvivorSortParams& p, uint32_t row, int level) {
    // What a list had no room for is lost.
    uint32_t count = min(p.counts[row], p.capacity);
    for (int l = 0; l < level; ++l) {
        count = samplesOf(count, p.bucket);
    }
    return count;
}

/// The same at the level of `p`.
__device__ __forceinline__ uint32_t
entriesOf(const SurvivorSortParams& p, uint32_t row) {
    return entriesAt(p, row, p.level);
}

/// A sample of a row's entries, one from each of as many equal parts, so that
/// none is drawn twice.
struct SurvivorSample {
    const uint64_t* entries;
    uint64_t part; // of 2^32
    uint32_t seed; // differs from row to row and level to level

    /// `samples` of the `count` entries of a level.
    __device__ __forceinline__ SurvivorSample(
            const uint64_t* entries,
            uint32_t count,
            uint32_t samples,
            uint32_t row,
            int level)
            : entries(entries),
              part(samples > 0 ? (uint64_t(count) << 32) / samples : 0),
              seed(mixBits(row * 8 + level + 1)) {}

    __device__ __forceinline__ uint64_t entry(uint32_t s) const {
        const uint32_t from = uint32_t(s * part >> 32);
        const uint32_t to = uint32_t((s + 1) * part >> 32);
        return entries[from + __umulhi(mixBits(s ^ seed), to - from)];
    }
};

constexpr int kSampleThreads = 256;
constexpr uint32_t kSamplesPerBlock = 4 * kSampleThreads;

/// Draws the sample of every row, and clears the sizes of the buckets. Grid:
/// rows times the blocks that the largest sample needs.
__global__ void __launch_bounds__(kSampleThreads)
        sampleSurvivorsKernel(const __grid_constant__ SurvivorSortParams p) {
    waitForPrevious();
    const uint32_t most = p.buckets * kBucketSamples;
    const uint32_t parts = (most - 1) / kSamplesPerBlock + 1;
    const uint32_t row = blockIdx.x / parts;
    const uint32_t begin = blockIdx.x % parts * kSamplesPerBlock;
    const uint32_t count = entriesOf(p, row);
    const uint32_t samples = samplesOf(count, p.bucket);
    const SurvivorSample sample(
            p.entries + uint64_t(row) * p.stride,
            count,
            samples,
            p.firstRow + row,
            p.level);
#pragma unroll
    for (uint32_t i = 0; i < kSamplesPerBlock; i += kSampleThreads) {
        const uint32_t s = begin + i + threadIdx.x;
        if (s < p.buckets) {
            p.sizes[uint64_t(row) * p.buckets + s] = 0;
        }
        if (s < samples) {
            p.sample[uint64_t(row) * most + s] = sample.entry(s);
        }
    }
}

/// Splitters of a row as a search tree: the children of node i are 2i and
/// 2i + 1, so that the nodes of a level are neighbours and the first levels,
/// which all lanes of a warp read at once, are free of bank conflicts.
template <uint32_t Nodes>
struct SplitterTree {
    uint64_t* nodes; // [Nodes], in shared memory
    const uint64_t* splitters;
    uint32_t buckets; // at least 2
    int depth;

    __device__ __forceinline__ SplitterTree(
            uint64_t* nodes,
            const SurvivorSortParams& p,
            uint32_t row,
            uint32_t buckets)
            : nodes(nodes),
              splitters(p.splitters + uint64_t(row) * p.buckets),
              buckets(buckets) {
        depth = 32 - __clz(int(buckets - 1));
    }

    /// The splitter of a node; behind the last one none is greater.
    __device__ __forceinline__ uint64_t splitter(uint32_t node) const {
        const int level = 31 - __clz(int(node));
        const uint32_t before = node - (1u << level);
        const uint32_t number = (2 * before + 1) << (depth - level - 1);
        return number < buckets ? splitters[number] : kNoEntry;
    }

    __device__ __forceinline__ void fill() const {
        const uint32_t end = min(1u << depth, Nodes);
        for (uint32_t n = 1 + threadIdx.x; n < end; n += kBucketThreads) {
            nodes[n] = splitter(n);
        }
    }

    /// The buckets of some entries.
    template <int Items>
    __device__ __forceinline__ void find(
            const uint64_t (&entries)[Items],
            uint32_t (&found)[Items]) const {
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            found[i] = 1;
        }
        int level = 0;
        for (; level < depth && (1u << level) < Nodes; ++level) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                found[i] = 2 * found[i] + (entries[i] >= nodes[found[i]]);
            }
        }
        for (; level < depth; ++level) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                found[i] = 2 * found[i] + (entries[i] >= splitter(found[i]));
            }
        }
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            found[i] -= 1u << depth;
        }
    }
};

/// Adds this lane to sizes[bucket]; returns what was there before it. Lanes
/// that are valid come first. Entries that come in order fall to one bucket all
/// together, and would wait for each other.
__device__ __forceinline__ uint32_t
joinBucket(uint32_t* sizes, uint32_t bucket, bool valid) {
    const uint32_t first = __shfl_sync(kFullWarp, bucket, 0);
    const uint32_t lanes = __ballot_sync(kFullWarp, valid);
    if (__all_sync(kFullWarp, bucket == first || !valid)) {
        const uint32_t lane = threadIdx.x % kWarpSize;
        uint32_t before = 0;
        if (lane == 0 && lanes != 0) {
            before = atomicAdd(sizes + bucket, uint32_t(__popc(lanes)));
        }
        return __shfl_sync(kFullWarp, before, 0) + lane;
    }
    return valid ? atomicAdd(sizes + bucket, 1u) : 0;
}

/// A block's part of a row, for at most kMostGrouped buckets: its entries are
/// grouped by bucket in shared memory, so that neighbours go to neighbouring
/// places. Entries that their bucket has no room for are only counted.
struct GroupedScatter {
    using Scan = cub::BlockScan<uint32_t, kBucketThreads>;
    static constexpr int kPerThread = kMostGrouped / kBucketThreads;

    struct SharedStorage {
        union {
            uint64_t tree[kMostGrouped];
            uint64_t grouped[kBucketRoom];
        };
        uint16_t buckets[kBucketRoom];  // of the grouped entries
        uint32_t sizes[kMostGrouped];   // then where the groups begin
        uint32_t offsets[kMostGrouped]; // from there to the bucket's places
        typename Scan::TempStorage scan;
    };

    SharedStorage& shared;
    const SurvivorSortParams& p;

    __device__ __forceinline__ void run(
            uint32_t row,
            uint32_t begin,
            uint32_t end,
            uint32_t buckets) {
        uint64_t items[kBucketItems];
        const uint64_t* entries = p.entries + uint64_t(row) * p.stride;
#pragma unroll
        for (int i = 0; i < kBucketItems; ++i) {
            const uint32_t at = begin + i * kBucketThreads + threadIdx.x;
            items[i] = at < end ? entries[at] : 0;
        }
        const SplitterTree<kMostGrouped> tree(shared.tree, p, row, buckets);
        tree.fill();
        for (uint32_t b = threadIdx.x; b < kMostGrouped; b += kBucketThreads) {
            shared.sizes[b] = 0;
        }
        __syncthreads();
        uint32_t found[kBucketItems];
        tree.find(items, found);
#pragma unroll
        for (int i = 0; i < kBucketItems; ++i) {
            const uint32_t at = begin + i * kBucketThreads + threadIdx.x;
            // Both are below 2^16.
            found[i] |= joinBucket(shared.sizes, found[i], at < end) << 16;
        }
        __syncthreads();
        reserve(p.sizes + uint64_t(row) * p.buckets);
#pragma unroll
        for (int i = 0; i < kBucketItems; ++i) {
            const uint32_t at = begin + i * kBucketThreads + threadIdx.x;
            if (at < end) {
                const uint32_t bucket = found[i] & 0xFFFF;
                const uint32_t place = shared.sizes[bucket] + (found[i] >> 16);
                shared.grouped[place] = items[i];
                shared.buckets[place] = uint16_t(bucket);
            }
        }
        __syncthreads();
        uint64_t* slots = p.slots + uint64_t(row) * p.buckets * kBucketRoom;
        for (uint32_t i = threadIdx.x; i < end - begin; i += kBucketThreads) {
            const uint32_t bucket = shared.buckets[i];
            const uint32_t place = i + shared.offsets[bucket];
            if (place < kBucketRoom) {
                slots[uint64_t(bucket) * kBucketRoom + place] =
                        shared.grouped[i];
            }
        }
    }

   private:
    /// Sizes of the groups to their beginnings, and places for each group.
    __device__ __forceinline__ void reserve(uint32_t* sizes) {
        uint32_t counts[kPerThread];
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
            counts[i] = shared.sizes[threadIdx.x * kPerThread + i];
            sum += counts[i];
        }
        uint32_t start;
        Scan(shared.scan).ExclusiveSum(sum, start);
#pragma unroll
        for (int i = 0; i < kPerThread; ++i) {
            const uint32_t bucket = threadIdx.x * kPerThread + i;
            if (counts[i] > 0) {
                shared.sizes[bucket] = start;
                shared.offsets[bucket] =
                        atomicAdd(sizes + bucket, counts[i]) - start;
                start += counts[i];
            }
        }
        __syncthreads();
    }
};

/// rows x tiles blocks.
__global__ void __launch_bounds__(kBucketThreads, 2)
        scatterGroupedKernel(const __grid_constant__ SurvivorSortParams p) {
    waitForPrevious();
    __shared__ typename GroupedScatter::SharedStorage shared;
    const uint32_t row = blockIdx.x / p.tiles;
    const uint32_t begin = blockIdx.x % p.tiles * kBucketRoom;
    const uint32_t count = entriesOf(p, row);
    const uint32_t buckets = bucketsOf(count, p.bucket);
    if (buckets > 1 && begin < count) {
        GroupedScatter{shared, p}.run(
                row, begin, min(count, begin + kBucketRoom), buckets);
    }
}

/// For any number of buckets: so many that groups would be of one entry. What
/// the tree has no room for is read from memory. rows x tiles blocks.
__global__ void __launch_bounds__(kBucketThreads, 2)
        scatterKernel(const __grid_constant__ SurvivorSortParams p) {
    constexpr uint32_t kNodes = 4096;
    constexpr int kItems = 4;
    waitForPrevious();
    __shared__ union {
        uint64_t nodes[kNodes];
        typename GroupedScatter::SharedStorage grouped;
    } shared;
    uint64_t* nodes = shared.nodes;
    const uint32_t row = blockIdx.x / p.tiles;
    const uint32_t tile = blockIdx.x % p.tiles;
    const uint32_t count = entriesOf(p, row);
    const uint32_t buckets = bucketsOf(count, p.bucket);
    if (buckets == 1) {
        return;
    }
    if (buckets <= kMostGrouped) {
        // The list has far more room than entries.
        for (uint64_t begin = uint64_t(tile) * kBucketRoom; begin < count;
             begin += uint64_t(p.tiles) * kBucketRoom) {
            GroupedScatter{shared.grouped, p}.run(
                    row,
                    uint32_t(begin),
                    uint32_t(min(uint64_t(count), begin + kBucketRoom)),
                    buckets);
            __syncthreads();
        }
        return;
    }
    const SplitterTree<kNodes> tree(nodes, p, row, buckets);
    tree.fill();
    __syncthreads();
    const uint64_t* entries = p.entries + uint64_t(row) * p.stride;
    uint32_t* sizes = p.sizes + uint64_t(row) * p.buckets;
    uint64_t* slots = p.slots + uint64_t(row) * p.buckets * kBucketRoom;
    constexpr uint32_t kStep = kItems * kBucketThreads;
    for (uint64_t at = uint64_t(tile) * kStep; at < count;
         at += uint64_t(p.tiles) * kStep) {
        uint64_t items[kItems];
        uint32_t found[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint64_t from = at + i * kBucketThreads + threadIdx.x;
            items[i] = from < count ? entries[from] : 0;
        }
        tree.find(items, found);
        uint32_t places[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint64_t from = at + i * kBucketThreads + threadIdx.x;
            places[i] = joinBucket(sizes, found[i], from < count);
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint64_t from = at + i * kBucketThreads + threadIdx.x;
            if (from < count && places[i] < kBucketRoom) {
                slots[uint64_t(found[i]) * kBucketRoom + places[i]] = items[i];
            }
        }
    }
}

} // namespace faiss_bits
