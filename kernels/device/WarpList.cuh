/// The least entries of many, in the registers of a warp.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Keeps the 32 * kRows least entries that it is given, in order: the one of
/// place 32 * r + l is in lane l's item r. All lanes of the warp call each
/// function; blocks have whole warps.
template <int kRows>
class WarpList {
   public:
    __device__ __forceinline__ WarpList() {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            items_[r] = kNoEntry;
        }
    }

    /// An entry a lane, kNoEntry where there is none.
    __device__ __forceinline__ void add(uint64_t entry) {
        const uint64_t last =
                __shfl_sync(kFullWarp, items_[kRows - 1], kWarpSize - 1);
        if (!__any_sync(kFullWarp, entry < last)) {
            return;
        }
        addSorted(sorted(entry));
    }

    /// The same of entries that ascend from lane to lane.
    __device__ __forceinline__ void addSorted(uint64_t entry) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            // Ascending, then descending: the lesser of each two are the 32
            // least of both, and either half is bitonic.
            const uint64_t other =
                    __shfl_xor_sync(kFullWarp, entry, kWarpSize - 1);
            const uint64_t mine = items_[r];
            items_[r] = merged(mine < other ? mine : other);
            if (r + 1 < kRows) {
                entry = merged(mine < other ? other : mine);
            }
        }
    }

    /// In place of all that it has: entries that ascend from lane to lane.
    __device__ __forceinline__ void assignSorted(uint64_t entry) {
        items_[0] = entry;
#pragma unroll
        for (int r = 1; r < kRows; ++r) {
            items_[r] = kNoEntry;
        }
    }

    __device__ __forceinline__ uint64_t item(int row) const {
        return items_[row];
    }

   private:
    /// Compares and swaps with the lane of the other number in bit `lanes`.
    __device__ __forceinline__ static uint64_t exchanged(
            uint64_t entry,
            int lanes,
            bool ascending) {
        const uint64_t other = __shfl_xor_sync(kFullWarp, entry, lanes);
        const bool first = (threadIdx.x & lanes) == 0;
        return (other < entry) == (first == ascending) ? other : entry;
    }

    __device__ __forceinline__ static uint64_t merged(uint64_t entry) {
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            entry = exchanged(entry, lanes, true);
        }
        return entry;
    }

    __device__ __forceinline__ static uint64_t sorted(uint64_t entry) {
#pragma unroll
        for (int size = 2; size <= kWarpSize; size *= 2) {
            const bool ascending =
                    size == kWarpSize || (threadIdx.x & size) == 0;
#pragma unroll
            for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
                if (lanes < size) {
                    entry = exchanged(entry, lanes, ascending);
                }
            }
        }
        return entry;
    }

    uint64_t items_[kRows];
};

} // namespace faiss_bits
