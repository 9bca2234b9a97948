/// A bitonic sort of entries in the registers of some neighbouring lanes.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Sorts the entries of kLanes lanes, kItems each, ascending: entry
/// lane * kItems + i of the result is item i of a lane. All lanes of the warp
/// call it, each group for itself.
template <int kLanes, int kItems>
struct GroupSort {
    /// Loops over few entries are short enough to be written out.
    static constexpr int kUnroll = kItems <= 4 ? kWarpSize : 1;

    __device__ __forceinline__ static void sort(uint64_t (&entries)[kItems]) {
        const int lane = threadIdx.x % kLanes;
        // Runs inside a lane, in alternating directions.
#pragma unroll
        for (int size = 2; size < kItems; size *= 2) {
#pragma unroll
            for (int stride = size / 2; stride >= 1; stride /= 2) {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    if ((i & stride) == 0) {
                        order(entries[i], entries[i + stride], (i & size) == 0);
                    }
                }
            }
        }
        // Runs of `lanes` lanes.
#pragma unroll kUnroll
        for (int lanes = 1; lanes <= kLanes; lanes *= 2) {
            const bool ascends = (lane & lanes) == 0;
#pragma unroll kUnroll
            for (int distance = lanes / 2; distance >= 1; distance /= 2) {
                const bool keepsLess = ((lane & distance) == 0) == ascends;
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    const uint64_t other =
                            __shfl_xor_sync(kFullWarp, entries[i], distance);
                    entries[i] = (other < entries[i]) == keepsLess ? other
                                                                   : entries[i];
                }
            }
#pragma unroll
            for (int stride = kItems / 2; stride >= 1; stride /= 2) {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    if ((i & stride) == 0) {
                        order(entries[i], entries[i + stride], ascends);
                    }
                }
            }
        }
    }

   private:
    __device__ __forceinline__ static void order(
            uint64_t& a,
            uint64_t& b,
            bool ascends) {
        const bool swaps = (b < a) == ascends;
        const uint64_t first = swaps ? b : a;
        b = swaps ? a : b;
        a = first;
    }
};

} // namespace faiss_bits
