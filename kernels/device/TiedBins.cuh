/// The last step of SpreadSort.cuh where many entries share a bin: where all of
/// a bin have one key, as those of few values do, they are spread once more, by
/// their columns. To hold each against all of its bin takes the square.
#pragma once

#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// For up to kMost entries of a block.
template <int Threads, int kMost>
struct BlockTiedBins {
    static constexpr int kEach = (kMost + Threads - 1) / Threads;
    static constexpr int kWords = kEach * Threads; // of `bins`
    static_assert(kWords < 1 << 16);
    /// Bins of fewer entries are left as they are.
    static constexpr uint32_t kFew = 16;

    /// `entries` are in the order of their bins, whose ends are in `bins`; calls
    /// put(place, entry) for those of the first `wanted` places. A bin that
    /// begins there has all of its entries, 255 at most. Both arrays are free
    /// afterwards, once the block is in step. `sums`: a word a warp. Begins with
    /// the block in step.
    template <class BinOf, class Put>
    __device__ __forceinline__ static void put(
            uint32_t* bins, // [kWords]
            uint32_t* sums,
            uint64_t* entries,
            uint32_t size,
            uint32_t wanted,
            BinOf binOf,
            Put put) {
        uint64_t mine[kEach];
        // Where an entry's bin begins, and how many it has, 0 if it is not
        // wanted; packed, as registers are few.
        uint32_t ranges[kEach];
        uint32_t greatest = 0; // column
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t at = i * Threads + threadIdx.x;
            ranges[i] = 0;
            if (at < size) {
                mine[i] = entries[at];
                greatest = max(greatest, entryColumn(mine[i]));
                const uint32_t bin = binOf(mine[i]);
                const uint32_t begin = bin > 0 ? bins[bin - 1] : 0;
                ranges[i] = begin < wanted ? begin << 16 | (bins[bin] - begin)
                                           : 0;
            }
        }
        greatest = __reduce_max_sync(kFullWarp, greatest);
        if (threadIdx.x % kWarpSize == 0) {
            sums[threadIdx.x / kWarpSize] = greatest;
        }
        __syncthreads();
        greatest = __reduce_max_sync(
                kFullWarp, ofWarps<Threads / kWarpSize>(sums, 0u));
        // From now on a word is the number of entries that have a place, and
        // for the first place of a bin, whether that has several keys.
        for (int b = threadIdx.x; b < kWords; b += Threads) {
            bins[b] = 0;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t begin = ranges[i] >> 16;
            if (countOf(ranges[i]) > kFew &&
                entryKey(mine[i]) != entryKey(entries[begin])) {
                atomicOr(&bins[begin], kMixed);
            }
        }
        __syncthreads();
        const float scale = 1.0f / (float(greatest) + 1.0f);
        uint32_t places[kEach]; // and how many came before
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t begin = ranges[i] >> 16;
            const uint32_t count = countOf(ranges[i]);
            places[i] = i * Threads + threadIdx.x;
            if (count > kFew && bins[begin] < kMixed) {
                const float part = float(entryColumn(mine[i])) * scale;
                places[i] = begin + min(uint32_t(part * count), count - 1);
                ranges[i] |= kSpread;
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            if (i * Threads + threadIdx.x < size) {
                const uint32_t before = atomicAdd(&bins[places[i]], 1);
                places[i] = places[i] << 16 | (before & ~kMixed);
            }
        }
        __syncthreads();
        startPlaces(bins, sums);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            if (i * Threads + threadIdx.x < size) {
                const uint32_t before = places[i] & 0xFFFFu;
                entries[bins[places[i] >> 16] + before] = mine[i];
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            if (countOf(ranges[i]) > 0) {
                uint32_t place = ranges[i] >> 16;
                uint32_t end = place + countOf(ranges[i]);
                if ((ranges[i] & kSpread) != 0) {
                    const uint32_t own = places[i] >> 16;
                    end = own + 1 < end ? bins[own + 1] : end;
                    place = bins[own];
                }
                for (uint32_t j = place; j < end; ++j) {
                    place += entries[j] < mine[i];
                }
                if (place < wanted) {
                    put(place, mine[i]);
                }
            }
        }
    }

   private:
    static constexpr uint32_t kMixed = 1u << 31;  // of a word of `bins`
    static constexpr uint32_t kSpread = 1u << 15; // of a range

    __device__ __forceinline__ static uint32_t countOf(uint32_t range) {
        return range & (kSpread - 1);
    }

    /// Turns how many begin in each place into how many begin before it.
    __device__ __forceinline__ static void startPlaces(
            uint32_t* bins,
            uint32_t* sums) {
        uint32_t counts[kEach];
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            counts[i] = bins[threadIdx.x * kEach + i] & ~kMixed;
            sum += counts[i];
        }
        uint32_t start = sumOfThreadsBefore<Threads>(sum, sums);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            bins[threadIdx.x * kEach + i] = start;
            start += counts[i];
        }
    }
};

} // namespace faiss_bits
