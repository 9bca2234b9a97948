/// What a block does with a list of entries: pass over it, copy it, and keep
/// what is left of it when a limit is lowered.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Calls take(place, entry) for the entries of a list that are there, each in
/// one thread, which has kChunk loads in flight: the list may be in global
/// memory.
template <int Threads, int kChunk, class Take>
__device__ __forceinline__ void forEachPlace(
        const uint64_t* entries,
        uint32_t count,
        Take take) {
    for (uint32_t at = threadIdx.x; at < count; at += Threads * kChunk) {
        uint64_t chunk[kChunk];
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const uint32_t from = at + i * Threads;
            chunk[i] = from < count ? entries[from] : kNoEntry;
        }
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            if (chunk[i] != kNoEntry) {
                take(at + i * Threads, chunk[i]);
            }
        }
    }
}

/// The same, where places do not matter.
template <int Threads, int kChunk, class Take>
__device__ __forceinline__ void forEachEntry(
        const uint64_t* entries,
        uint32_t count,
        Take take) {
    forEachPlace<Threads, kChunk>(
            entries, count, [&](uint32_t, uint64_t entry) { take(entry); });
}

/// Copies a list, as from global to shared memory. Ends with the block in step.
template <int Threads>
__device__ __forceinline__ void copyEntries(
        const uint64_t* entries,
        uint32_t count,
        uint64_t* to) {
    constexpr int kChunk = 8;
    for (uint32_t at = threadIdx.x; at < count; at += Threads * kChunk) {
        uint64_t chunk[kChunk];
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            const uint32_t from = at + i * Threads;
            chunk[i] = from < count ? entries[from] : kNoEntry;
        }
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            if (at + i * Threads < count) {
                to[at + i * Threads] = chunk[i];
            }
        }
    }
    __syncthreads();
}

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
