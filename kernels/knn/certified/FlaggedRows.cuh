/// The rows of a batch whose flags are set.
#pragma once

#include <cooperative_groups.h>

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Of a block of Threads.
template <int Threads>
struct FlaggedRows {
    static constexpr int kWarps = Threads / kWarpSize;
    static constexpr uint32_t kRows = 32; // of a thread

    struct SharedStorage {
        uint32_t found[kWarps];
        uint32_t next;
    };

    SharedStorage& shared;
    /// [rows, 2], from a multiple of 64 bytes on.
    const uint8_t* flags;
    uint32_t rows;

    /// Writes up to `most` rows with a flag, ascending from `next` on, to `out`
    /// in shared memory, and moves `next` behind them. Returns their number.
    /// All threads call it, and the block is in step afterwards.
    __device__ __forceinline__ uint32_t
    take(uint32_t& next, uint32_t most, uint32_t* out) const {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t warp = threadIdx.x / kWarpSize;
        uint32_t used = 0;
        while (next < rows && used < most) {
            const uint32_t begin = next / kRows * kRows;
            const uint32_t row = begin + threadIdx.x * kRows;
            uint32_t mask = 0;
#pragma unroll
            for (uint32_t i = 0; i < kRows; i += 8) {
                mask |= row + i < rows ? ofEight(row + i) << i : 0;
            }
            if (threadIdx.x == 0) {
                mask &= ~0u << (next - begin); // those before were taken
            }
            // Of this warp's threads up to this one.
            uint32_t before = sumUpToLane(__popc(mask));
            if (lane == kWarpSize - 1) {
                shared.found[warp] = before;
            }
            if (threadIdx.x == 0) {
                shared.next = begin + Threads * kRows;
            }
            before -= __popc(mask);
            __syncthreads();
            uint32_t found = 0;
#pragma unroll
            for (uint32_t w = 0; w < kWarps; ++w) {
                before += w < warp ? shared.found[w] : 0;
                found += shared.found[w];
            }
            for (uint32_t place = used + before; mask != 0 && place <= most;
                 ++place, mask &= mask - 1) {
                const uint32_t flagged = row + __ffs(mask) - 1;
                if (place < most) {
                    out[place] = flagged;
                } else {
                    shared.next = flagged; // of one thread
                }
            }
            __syncthreads();
            used = min(used + found, most);
            next = shared.next;
            __syncthreads();
        }
        return used;
    }

    /// Whether there are any, the same in all blocks of a cooperative kernel,
    /// which call it together.
    ///
    /// counts  [kMaxScanSlots], free before and after
    __device__ __forceinline__ bool areThere(uint32_t* counts) const {
        // Of many rows each block reads a share: all of them, read by each
        // block, take longer than to wait for one another.
        constexpr uint32_t kMany = 1 << 16;
        if (rows < kMany || gridDim.x > uint32_t(kMaxScanSlots)) {
            return areThere(0, rows);
        }
        const auto grid = cooperative_groups::this_grid();
        const uint32_t share = (rows / gridDim.x + 8) / 8 * 8;
        const uint32_t begin = min(blockIdx.x * share, rows);
        const bool has = areThere(begin, min(begin + share, rows));
        if (threadIdx.x == 0) {
            counts[blockIdx.x] = has;
        }
        grid.sync();
        uint32_t any = 0;
        for (uint32_t b = threadIdx.x; b < gridDim.x; b += Threads) {
            any |= __ldcg(counts + b);
        }
        any = __syncthreads_or(any != 0);
        if (any) {
            grid.sync(); // the counts are free again
        }
        return any;
    }

   private:
    /// Whether any of rows begin .. end - 1 has one; begin is a multiple of 8.
    /// All threads call it.
    __device__ __forceinline__ bool areThere(uint32_t begin, uint32_t end)
            const {
        // Mostly there are none, and this is all that the kernel does: reads
        // that do not wait for one another.
        constexpr uint32_t kAhead = 8;
        constexpr uint32_t kStep = 8 * Threads; // rows of a read
        uint32_t any = 0;
        uint32_t row = begin + 8 * threadIdx.x;
        for (; row + (kAhead - 1) * kStep + 8 <= end; row += kAhead * kStep) {
            uint4 read[kAhead];
#pragma unroll
            for (uint32_t i = 0; i < kAhead; ++i) {
                read[i] = *reinterpret_cast<const uint4*>(
                        flags + 2 * int64_t(row + i * kStep));
            }
#pragma unroll
            for (uint32_t i = 0; i < kAhead; ++i) {
                any |= read[i].x | read[i].y | read[i].z | read[i].w;
            }
        }
        for (; row < end; row += kStep) {
            any |= ofEight(row);
        }
        return __syncthreads_or(any != 0);
    }

    /// Bit i: row + i has a flag; row is a multiple of 8.
    __device__ __forceinline__ uint32_t ofEight(uint32_t row) const {
        const uint8_t* mine = flags + 2 * int64_t(row);
        uint32_t mask = 0;
        if (row + 8 <= rows) {
            const uint4 eight = *reinterpret_cast<const uint4*>(mine);
            const uint32_t words[] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                mask |= (words[i] & 0xffffu ? 1u : 0u) << 2 * i;
                mask |= (words[i] >> 16 ? 2u : 0u) << 2 * i;
            }
        } else {
            for (uint32_t i = 0; row + i < rows; ++i) {
                mask |= uint32_t((mine[2 * i] | mine[2 * i + 1]) != 0) << i;
            }
        }
        return mask;
    }
};

} // namespace faiss_bits
