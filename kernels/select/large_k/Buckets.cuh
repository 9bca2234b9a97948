/// How entries fall into buckets: by splitters from a sample (Hanak 2023,
/// 3.7.1 and 4.3) or by radix digits (3.7.2).
#pragma once

// Of cuRAND only the generator: curand_kernel.h brings large tables along.
#include <curand_philox4x32_x.h>

#include "kernels/select/large_k/BlockOps.cuh"

namespace faiss_bits {

/// Four random places below `count`, the same in every run, by Philox.
__device__ __forceinline__ void drawPlaces(
        uint64_t seed,
        uint64_t number,
        uint32_t count,
        uint32_t (&places)[4]) {
    const uint4 random = curand_Philox4x32_10(
            make_uint4(uint32_t(number), uint32_t(number >> 32), 0, 0),
            make_uint2(uint32_t(seed), uint32_t(seed >> 32)));
    places[0] = uint32_t((uint64_t(random.x) * count) >> 32);
    places[1] = uint32_t((uint64_t(random.y) * count) >> 32);
    places[2] = uint32_t((uint64_t(random.z) * count) >> 32);
    places[3] = uint32_t((uint64_t(random.w) * count) >> 32);
}

/// Splitters as a search tree: node i has the children 2i + 1 and 2i + 2, so
/// that the lanes of a warp meet in few banks. Keys alone decide, save where
/// one equals a splitter's key.
class SplitterBuckets {
   public:
    static constexpr int kBuckets = kSampleBuckets;
    static constexpr int kLevels = 8;
    static_assert(kBuckets == 1 << kLevels);

    struct SharedStorage {
        uint64_t splitters[kBuckets]; // ascending, the last is kNoEntry
        uint32_t tree[kBuckets];
    };

    __device__ SplitterBuckets(
            SharedStorage& shared,
            const MultiPassParams& p,
            uint32_t row,
            const RowState&)
            : shared_(shared) {
        const uint64_t* splitters = p.splitters + uint64_t(row) * kBuckets;
        for (int i = threadIdx.x; i < kBuckets; i += kMultiPassThreads) {
            shared.splitters[i] = splitters[i];
            if (i < kBuckets - 1) {
                const int level = 31 - __clz(i + 1);
                const int number = i + 1 - (1 << level);
                const int sorted =
                        ((2 * number + 1) << (kLevels - 1 - level)) - 1;
                shared.tree[i] = entryKey(splitters[sorted]);
            }
        }
    }

    /// The number of splitters that are not above the entry.
    __device__ __forceinline__ uint32_t bucketOf(uint64_t entry) const {
        const uint32_t key = entryKey(entry);
        uint32_t node = 0;
#pragma unroll
        for (int level = 0; level < kLevels; ++level) {
            node = 2 * node + (key < shared_.tree[node] ? 1 : 2);
        }
        const uint32_t bucket = node - (kBuckets - 1);
        return bucket > 0 && entryKey(shared_.splitters[bucket - 1]) == key
                ? bucketOfTie(entry)
                : bucket;
    }

   private:
    __device__ uint32_t bucketOfTie(uint64_t entry) const {
        uint32_t bucket = 0;
#pragma unroll
        for (int step = kBuckets / 2; step >= 1; step /= 2) {
            bucket += shared_.splitters[bucket + step - 1] <= entry ? step : 0;
        }
        return bucket;
    }

    SharedStorage& shared_;
};

/// The highest bits in which the candidates of the row can differ.
class DigitBuckets {
   public:
    static constexpr int kBuckets = kDigitBuckets;

    struct SharedStorage {};

    __device__ DigitBuckets(
            SharedStorage&,
            const MultiPassParams&,
            uint32_t,
            const RowState& state)
            : lo_(state.lo), shift_(DigitRange{state.lo, state.hi}.shift()) {}

    __device__ __forceinline__ uint32_t bucketOf(uint64_t entry) const {
        return DigitRange::bucketOf(lo_, shift_, entry);
    }

   private:
    uint64_t lo_;
    int shift_;
};

/// Draws the sample of one row, sorts it, and keeps percentiles of it as
/// splitters. One block a row.
class SplitterSample {
   public:
    static constexpr int kItems = 4;
    static constexpr int kSize = kMultiPassThreads * kItems;
    using Sorter = BlockBitonic<kMultiPassThreads, kItems>;

    struct SharedStorage {
        typename Sorter::SharedStorage sorter;
        uint64_t sample[kSize];
    };

    template <class Row>
    __device__ static void draw(
            SharedStorage& shared,
            const Row& source,
            const RowState& state,
            uint64_t seed,
            uint64_t number,
            uint64_t* splitters) {
        uint32_t places[kItems];
        drawPlaces(seed, number, state.sourceCount, places);
        const InRange range{state.lo, state.hi};
        uint64_t items[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint64_t entry = source.entryAt(places[i]);
            items[i] = range(entry) ? entry : kNoEntry;
        }
        Sorter{shared.sorter}.sort(
                items, true, [](uint64_t a, uint64_t b) { return a < b; });
        int found = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            shared.sample[threadIdx.x * kItems + i] = items[i];
            found += __syncthreads_count(items[i] != kNoEntry);
        }
        for (int i = threadIdx.x; i < kSampleBuckets; i += kMultiPassThreads) {
            const bool exists = found > 0 && i < kSampleBuckets - 1;
            splitters[i] = exists
                    ? shared.sample[(i + 1) * found / kSampleBuckets]
                    : kNoEntry;
        }
    }
};

} // namespace faiss_bits
