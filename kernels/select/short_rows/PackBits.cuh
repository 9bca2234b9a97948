#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// A bit for each of a lane's keys, packs of four of them, in the order of a
/// row's columns: pack after pack, and in a pack lane after lane, turned.
template <int kLanes, int kPacks>
struct PackBits {
    static constexpr int kPack = 4;
    static constexpr int kWords = (kPacks * kPack + 31) / 32;
    using Group = LaneGroup<kLanes>;

    /// Of the packs of all lanes side by side a lane has number
    /// lane ^ turn(pack): keys at even distances do not meet in one lane.
    __host__ __device__ static constexpr int turn(int pack) {
        static_assert(kPacks <= 16);
        return pack * kLanes / 16;
    }

    uint32_t words[kWords] = {};

    __device__ __forceinline__ uint32_t count() const {
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t word : words) {
            sum += __popc(word);
        }
        return sum;
    }
    /// Of the first so many packs.
    __device__ __forceinline__ PackBits ofPacks(int packs) const {
        PackBits some;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            const int keys = min(max(packs * kPack - w * 32, 0), 32);
            some.words[w] = words[w] & uint32_t((uint64_t(1) << keys) - 1);
        }
        return some;
    }
    __device__ __forceinline__ PackBits with(const PackBits& other) const {
        PackBits both;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            both.words[w] = words[w] | other.words[w];
        }
        return both;
    }
    __device__ __forceinline__ PackBits without(const PackBits& other) const {
        PackBits rest;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            rest.words[w] = words[w] & ~other.words[w];
        }
        return rest;
    }

    /// The first `wanted` of the row's, which has as many. All lanes of the
    /// warp call it.
    __device__ __forceinline__ PackBits first(uint32_t wanted) const {
        // So many packs of each lane have no more.
        int packs = 0;
        uint32_t before = 0;
#pragma unroll
        for (int step = 16; step >= 1; step /= 2) {
            if (step <= kPacks) {
                const int more = min(packs + step, kPacks);
                const uint32_t all = Group::sum(ofPacks(more).count());
                if (all <= wanted) {
                    packs = more;
                    before = all;
                }
            }
        }
        PackBits taken = ofPacks(packs);
        const PackBits next = ofPacks(packs + 1).without(taken);
        // In the order of columns, and back.
        const int number = Group::lane() ^ turn(packs);
        const uint32_t turned =
                __shfl_sync(kFullWarp, next.count(), number, kLanes);
        const uint32_t earlier =
                before +
                __shfl_sync(
                        kFullWarp, Group::sumBefore(turned), number, kLanes);
        uint32_t left = wanted - min(wanted, earlier);
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            uint32_t word = next.words[w];
            while (word != 0 && left > 0) {
                taken.words[w] |= word & (0u - word);
                word &= word - 1;
                --left;
            }
        }
        __syncwarp();
        return taken;
    }
};

} // namespace faiss_bits
