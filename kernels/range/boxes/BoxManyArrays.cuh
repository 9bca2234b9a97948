/// A bit for every id of a chunk, and how many are before each: ranks.
#pragma once

#include "kernels/range/boxes/BoxResults.cuh"

namespace faiss_bits {

/// Ids that are counted together, beside a bit for each.
constexpr uint32_t kGroupIds = 128;

/// In shared memory of a block.
struct ManyArrays {
    uint4* bits;      // [groups] a bit for every id of the chunk
    uint32_t* counts; // [groups] of bits, then how many are before
    uint32_t* large;  // [large boxes of the chunk] that are touched

    static constexpr __host__ __device__ size_t bytes(uint32_t chunkIds) {
        return size_t(chunkIds) / kGroupIds *
                (sizeof(uint4) + sizeof(uint32_t)) +
                size_t(chunkIds) / (kBoxVectors * kLargeBoxes) *
                sizeof(uint32_t);
    }

    __device__ __forceinline__ ManyArrays(uint4* memory, uint32_t chunkIds)
            : bits(memory),
              counts(reinterpret_cast<uint32_t*>(
                      memory + chunkIds / kGroupIds)),
              large(counts + chunkIds / kGroupIds) {}

    __device__ __forceinline__ uint32_t* words() const {
        return reinterpret_cast<uint32_t*>(bits);
    }

    __device__ __forceinline__ void set(uint32_t id) const {
        atomicOr(words() + id / 32, 1u << id % 32);
    }

    /// And counts it.
    __device__ __forceinline__ void add(uint32_t id) const {
        set(id);
        atomicAdd(counts + id / kGroupIds, 1u);
    }

    /// Those of a group that are only set.
    __device__ __forceinline__ void count(uint32_t group) const {
        const uint4 four = bits[group];
        counts[group] = __popc(four.x) + __popc(four.y) + __popc(four.z) +
                __popc(four.w);
    }

    /// How many are before, once counts are sums.
    __device__ __forceinline__ uint32_t rankOf(uint32_t id) const {
        const uint32_t group = id / kGroupIds;
        const uint4 four = bits[group];
        const uint32_t word = id / 32 % 4;
        const uint32_t below = (1u << id % 32) - 1;
        const auto of = [&](uint32_t value, uint32_t at) {
            return __popc(at < word ? value : at == word ? value & below : 0u);
        };
        return counts[group] + of(four.x, 0) + of(four.y, 1) + of(four.z, 2) +
                of(four.w, 3);
    }
};

/// Which bit of a word is its n-th, from 0; it has more than n.
__device__ __forceinline__ uint32_t nthBit(uint32_t word, uint32_t n) {
    uint32_t at = 0;
#pragma unroll
    for (uint32_t width = 16; width > 0; width /= 2) {
        const uint32_t low = __popc(word & ((1u << width) - 1));
        if (n >= low) {
            n -= low;
            word >>= width;
            at += width;
        }
    }
    return at;
}

/// counts [groups] to sums of those before. Begins and ends with a barrier.
/// totals: [warps of the block].
template <int kThreads>
__device__ __forceinline__ void sumCounts(
        uint32_t* counts,
        uint32_t groups,
        uint32_t* totals) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t each = (groups + kThreads - 1) / kThreads;
    const uint32_t begin = min(threadIdx.x * each, groups);
    const uint32_t end = min(begin + each, groups);
    __syncthreads();
    uint32_t own = 0;
    for (uint32_t g = begin; g < end; ++g) {
        own += counts[g];
    }
    const uint32_t upTo = sumUpToLane(own);
    if (lane == 31) {
        totals[warp] = upTo;
    }
    __syncthreads();
    uint32_t before = upTo - own +
            __reduce_add_sync(kAllLanes, lane < warp ? totals[lane] : 0);
    for (uint32_t g = begin; g < end; ++g) {
        const uint32_t count = counts[g];
        counts[g] = before;
        before += count;
    }
    __syncthreads();
}

} // namespace faiss_bits
