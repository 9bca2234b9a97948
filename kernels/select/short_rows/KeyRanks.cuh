#pragma once

#include <cuda_fp16.h>

#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// Ranks of some keys by counting those that come before: kEach of each of
/// kLanes lanes, at most 32, key e of a lane at place e * kLanes + lane. All
/// lanes of the warp call it, each group for its row.
template <int kLanes, int kEach>
struct KeyRanks {
    using Group = LaneGroup<kLanes>;
    static_assert(kEach * kLanes <= 32 && kEach * kLanes % 8 == 0);
    static constexpr uint32_t kMostColumns = 1024; // of a row

    /// keys      [kEach * kLanes], `count` of them and NaN behind, aligned to
    ///           16 bytes
    /// room      the same, overwritten where keys are equal
    /// mine      of this lane
    /// columns   of those, below kMostColumns; of equal keys the lower column
    ///           comes before
    /// ranks     zero before
    __device__ __forceinline__ static void count(
            const float* keys,
            uint32_t* room,
            const float (&mine)[kEach],
            const uint32_t (&columns)[kEach],
            uint32_t count,
            float (&ranks)[kEach]) {
#pragma unroll
        for (int from = 0; from < kEach * kLanes; from += 4) {
            const float4 some = *reinterpret_cast<const float4*>(keys + from);
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                ranks[e] += some.x < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.y < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.z < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.w < mine[e] ? 1.0f : 0.0f;
            }
        }
        float sum = ranks[0];
#pragma unroll
        for (int e = 1; e < kEach; ++e) {
            sum += ranks[e];
        }
        sum = Group::join(sum, [](float a, float b) { return a + b; });
        // Pairs of different keys count once: all of them, unless some tie.
        if (__any_sync(kFullWarp, sum != float(count * (count - 1) / 2))) {
            addTies(room, mine, columns, count, ranks);
        }
    }

   private:
    /// Where keys are equal, rank so far and column are a number of 15 bits, no
    /// two of which are equal: a half, as one comparison and one sum of halves
    /// count two.
    __device__ __forceinline__ static void addTies(
            uint32_t* room,
            const float (&mine)[kEach],
            const uint32_t (&columns)[kEach],
            uint32_t count,
            float (&ranks)[kEach]) {
        // No less than any: 31 keys come before one of 32 only.
        constexpr uint32_t kInfinity = 0x7C00;
        static_assert(31 * kMostColumns == kInfinity);
        uint16_t* numbers = reinterpret_cast<uint16_t*>(room);
        uint32_t number[kEach];
        __syncwarp();
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            number[e] = mine[e] == mine[e]
                    ? min(uint32_t(ranks[e]) * kMostColumns + columns[e],
                          kInfinity)
                    : kInfinity;
            numbers[e * kLanes + Group::lane()] = uint16_t(number[e]);
        }
        __syncwarp();
        __half2 sums[kEach] = {};
        for (uint32_t from = 0; from < count; from += 8) {
            const uint4 some = *reinterpret_cast<const uint4*>(numbers + from);
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                const __half2 own = halvesOf(number[e] * 0x10001u);
                const auto add = [&](uint32_t two) {
                    sums[e] = __hadd2(sums[e], __hlt2(halvesOf(two), own));
                };
                add(some.x);
                add(some.y);
                add(some.z);
                add(some.w);
            }
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            ranks[e] = __low2float(sums[e]) + __high2float(sums[e]);
        }
        __syncwarp();
    }

    __device__ __forceinline__ static __half2 halvesOf(uint32_t two) {
        return *reinterpret_cast<const __half2*>(&two);
    }
};

} // namespace faiss_bits
