/// A limit for the k least keys of a block, a little above the k-th.
#pragma once

#include "kernels/device/Narrow.cuh"

namespace faiss_bits {

/// Of a key a thread or more, by warps where k is small: in the time of three
/// barriers, where a histogram takes that of seven.
template <int kThreads>
struct IvfGroupLimit {
    using Narrow = BlockNarrow<kThreads>;
    /// Neighbours; of more than a third of what warps find, the k-th would be
    /// far above that of all.
    static constexpr uint32_t kMostByWarps = 12;

    typename Narrow::SharedStorage& shared;

    /// A key that k of all keys are not above, and few more; the greatest if
    /// there are fewer. forEach(take) calls take(entry) for those of this
    /// thread. Begins and ends with the block in step.
    template <class ForEach>
    __device__ __forceinline__ uint32_t of(ForEach forEach, uint32_t k) const {
        if (k <= kMostByWarps) {
            uint32_t least = kNanKey;
            forEach([&](uint64_t entry) {
                least = min(least, entryKey(entry));
            });
            const uint32_t limit = byWarps(least, k);
            const int count = __syncthreads_count(least <= limit);
            if (limit != kNanKey && uint32_t(count) <= 2 * k + 8) {
                return limit;
            }
        }
        return entryKey(Narrow{shared}.limit(forEach, k, k + k / 8 + 8));
    }

   private:
    /// The k-th of the few least that each warp has, of a key a thread; no key,
    /// if there are fewer.
    __device__ __forceinline__ uint32_t
    byWarps(uint32_t key, uint32_t k) const {
        constexpr int kWarps = kThreads / kWarpSize;
        constexpr int kOfWarp = kWarpSize / kWarps;
        constexpr int kRow = kWarpSize + 1; // other banks than the row before
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t warp = threadIdx.x / kWarpSize;
        uint32_t* rows = shared.bins;
        uint32_t* found = rows + kWarps * kRow;
        static_assert(kWarps * kRow + kWarpSize <= Narrow::kBins);
        // Threads side by side have groups of one list, which may have all of
        // the least: a warp takes threads that are apart.
        rows[threadIdx.x % kWarps * kRow + threadIdx.x / kWarps] = key;
        __syncthreads();
        uint32_t left = rows[warp * kRow + lane];
#pragma unroll
        for (int i = 0; i < kOfWarp; ++i) {
            const uint32_t least = __reduce_min_sync(kFullWarp, left);
            left = left == least ? kNanKey : left;
            if (lane == 0) {
                found[warp * kOfWarp + i] = least;
            }
        }
        __syncthreads();
        const uint32_t own = found[lane];
        uint32_t before = 0;
#pragma unroll
        for (int i = 0; i < kWarpSize; ++i) {
            before += found[i] < own;
        }
        return __reduce_max_sync(kFullWarp, before < k ? own : 0u);
    }
};

} // namespace faiss_bits
