/// From some thousand entries to a few more than the k least: histograms over
/// ever smaller ranges (the idea of Radix Select, Hanak 2023, 3.7.2, with the
/// range of the entries in place of digits).
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

template <int Threads>
struct BlockNarrow {
    static constexpr int kBinsPerThread = 4;
    static constexpr int kBins = Threads * kBinsPerThread;
    static constexpr int kWarps = Threads / kWarpSize;

    struct SharedStorage {
        uint32_t bins[kBins];
        uint64_t least[kWarps];
        uint64_t most[kWarps];
        uint32_t sums[kWarps];
        uint32_t bin;
        uint32_t below;
        uint32_t inBin;
    };

    SharedStorage& shared;

    /// An entry that at least k and at most `room` of the entries are not
    /// above; the greatest entry if there are fewer than k. The entries are
    /// distinct; forEach(take) calls take(entry) for those of this thread.
    /// Begins and ends with the block in step.
    template <class ForEach>
    __device__ __forceinline__ uint64_t
    limit(ForEach forEach, uint32_t k, uint32_t room) {
        uint64_t least = kNoEntry;
        uint64_t most = 0;
        forEach([&](uint64_t e) {
            least = e < least ? e : least;
            most = e > most ? e : most;
        });
        reduceRange(least, most);
        uint32_t below = 0; // entries below `least`
        while (true) {
            const int bits = 64 - __clzll((most - least) | 1);
            const int shift = max(0, bits - kLogBins);
            countBins(forEach, least, most, shift);
            findBin(k - below);
            // Not beyond `most`: the sums might pass the end of 64 bits.
            const uint64_t first =
                    least + lesser(uint64_t(shared.bin) << shift, most - least);
            const uint64_t last =
                    first + lesser((uint64_t(1) << shift) - 1, most - first);
            const uint32_t upTo = below + shared.below + shared.inBin;
            below += shared.below;
            if (upTo <= room || shift == 0) {
                return last;
            }
            __syncthreads();
            // Entries of one bin may lie far closer together than it is wide,
            // as those of one key do.
            least = kNoEntry;
            most = 0;
            forEach([&](uint64_t e) {
                if (e >= first && e <= last) {
                    least = e < least ? e : least;
                    most = e > most ? e : most;
                }
            });
            reduceRange(least, most);
        }
    }

   private:
    static constexpr int kLogBins = 2 +
            (Threads == 64            ? 6
                     : Threads == 128 ? 7
                     : Threads == 256 ? 8
                     : Threads == 512 ? 9
                                      : 10);
    static_assert(kBins == 1 << kLogBins);

    __device__ __forceinline__ static uint64_t lesser(uint64_t a, uint64_t b) {
        return a < b ? a : b;
    }

    __device__ __forceinline__ void reduceRange(
            uint64_t& least,
            uint64_t& most) {
        least = leastOfWarp(least);
        most = greatestOfWarp(most);
        if (threadIdx.x % kWarpSize == 0) {
            shared.least[threadIdx.x / kWarpSize] = least;
            shared.most[threadIdx.x / kWarpSize] = most;
        }
        __syncthreads();
        least = leastOfWarp(ofWarps<kWarps>(shared.least, kNoEntry));
        most = greatestOfWarp(ofWarps<kWarps>(shared.most, uint64_t(0)));
    }

    template <class ForEach>
    __device__ __forceinline__ void countBins(
            ForEach forEach,
            uint64_t least,
            uint64_t most,
            int shift) {
        for (int b = threadIdx.x; b < kBins; b += Threads) {
            shared.bins[b] = 0;
        }
        __syncthreads();
        forEach([&](uint64_t e) {
            if (e >= least && e <= most) {
                atomicAdd(&shared.bins[(e - least) >> shift], 1);
            }
        });
        __syncthreads();
    }

    /// The bin that holds the place'th entry (from 1) of the range.
    __device__ __forceinline__ void findBin(uint32_t place) {
        uint32_t bins[kBinsPerThread];
        uint32_t sum = 0;
#pragma unroll
        for (int b = 0; b < kBinsPerThread; ++b) {
            bins[b] = shared.bins[threadIdx.x * kBinsPerThread + b];
            sum += bins[b];
        }
        uint32_t below = sumOfThreadsBefore<Threads>(sum, shared.sums);
        const uint32_t upTo = below + sum;
        // With fewer than k entries, the last bin.
        const bool isLast = threadIdx.x == Threads - 1;
        if (below < place && (place <= upTo || isLast)) {
            int b = 0;
#pragma unroll
            for (int i = 0; i < kBinsPerThread - 1; ++i) {
                if (b == i && below + bins[i] < place) {
                    below += bins[i];
                    b = i + 1;
                }
            }
            shared.bin = threadIdx.x * kBinsPerThread + b;
            shared.below = below;
            shared.inBin = shared.bins[shared.bin];
        }
        __syncthreads();
    }
};

} // namespace faiss_bits
