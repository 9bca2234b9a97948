/// What is left of a list of entries when a limit is lowered.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Appends the entries that are not above the limit to `to`, from to[*kept] on,
/// in any order; *kept, in shared memory, grows by their number. A chunk is
/// read before what is left of it is written: with *kept = 0, `to` may be
/// `entries`. Begins and ends with the block in step.
template <int Threads>
__device__ __forceinline__ void keepEntries(
        const uint64_t* entries,
        uint32_t count,
        uint64_t limit,
        uint64_t* to,
        uint32_t* kept) {
    constexpr int kChunk = 4;
    for (uint32_t at = 0; at < count; at += Threads * kChunk) {
        uint64_t chunk[kChunk];
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const uint32_t from = at + i * Threads + threadIdx.x;
            chunk[i] = from < count ? entries[from] : kNoEntry;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const bool keeps = chunk[i] <= limit && chunk[i] != kNoEntry;
            const unsigned lanes = __ballot_sync(kFullWarp, keeps);
            uint32_t base = 0;
            if (lanes != 0 && threadIdx.x % kWarpSize == 0) {
                base = atomicAdd(kept, uint32_t(__popc(lanes)));
            }
            base = __shfl_sync(kFullWarp, base, 0);
            if (keeps) {
                const unsigned below = (1u << threadIdx.x % kWarpSize) - 1;
                to[base + __popc(lanes & below)] = chunk[i];
            }
        }
    }
    __syncthreads();
}

} // namespace faiss_bits
