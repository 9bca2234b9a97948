/// What BlockNarrow does (Narrow.cuh), by one warp: where there are many lists
/// several at a time wait for memory together.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

struct WarpNarrow {
    static constexpr int kLogBins = 9;
    static constexpr int kBins = 1 << kLogBins;

    struct SharedStorage {
        uint32_t bins[kBins];
    };

    SharedStorage& shared; // of the warp

    /// An entry that at least k and at most `room` of the entries are not
    /// above; the greatest entry if there are fewer than k. The entries are
    /// distinct; forEach(take) calls take(entry) for those of this lane. All
    /// lanes call it, and get it.
    template <class ForEach>
    __device__ __forceinline__ uint64_t
    limit(const ForEach& forEach, uint32_t k, uint32_t room) const {
        const int lane = threadIdx.x % kWarpSize;
        uint64_t least = 0;
        uint64_t most = kNoEntry;
        uint32_t below = 0; // entries below `least`
        while (true) {
            // Entries of one bin may lie far closer together than it is wide,
            // as those of one key do.
            uint64_t lower = kNoEntry;
            uint64_t upper = 0;
            forEach([&](uint64_t e) {
                if (e >= least && e <= most) {
                    lower = e < lower ? e : lower;
                    upper = e > upper ? e : upper;
                }
            });
            least = leastOfWarp(lower);
            most = greatestOfWarp(upper);
            const int bits = 64 - __clzll((most - least) | 1);
            const int shift = max(0, bits - kLogBins);
            for (int b = lane; b < kBins; b += kWarpSize) {
                shared.bins[b] = 0;
            }
            __syncwarp();
            forEach([&](uint64_t e) {
                if (e >= least && e <= most) {
                    atomicAdd(&shared.bins[(e - least) >> shift], 1u);
                }
            });
            __syncwarp();
            uint32_t inBin = 0;
            const uint32_t bin = findBin(k, below, inBin);
            // Not beyond `most`: the sums might pass the end of 64 bits.
            const uint64_t first =
                    least + lesser(uint64_t(bin) << shift, most - least);
            most = first + lesser((uint64_t(1) << shift) - 1, most - first);
            least = first;
            if (below + inBin <= room || shift == 0) {
                return most;
            }
        }
    }

   private:
    __device__ __forceinline__ static uint64_t lesser(uint64_t a, uint64_t b) {
        return a < b ? a : b;
    }

    /// The bin that holds the k'th entry, or the last; `below` grows by what is
    /// in those before it.
    __device__ __forceinline__ uint32_t
    findBin(uint32_t k, uint32_t& below, uint32_t& inBin) const {
        const int lane = threadIdx.x % kWarpSize;
        constexpr int kLast = kBins - kWarpSize;
        int begin = 0;
        uint32_t count = 0;
        while (true) {
            count = shared.bins[begin + lane];
            const uint32_t sum = __reduce_add_sync(kFullWarp, count);
            if (below + sum >= k || begin == kLast) {
                break;
            }
            below += sum;
            begin += kWarpSize;
        }
        const uint32_t upTo = sumUpToLane(count);
        const uint32_t isThere = __ballot_sync(kFullWarp, below + upTo >= k);
        const int which = isThere != 0 ? __ffs(isThere) - 1 : kWarpSize - 1;
        inBin = __shfl_sync(kFullWarp, count, which);
        below += __shfl_sync(kFullWarp, upTo, which) - inBin;
        return uint32_t(begin + which);
    }
};

} // namespace faiss_bits
