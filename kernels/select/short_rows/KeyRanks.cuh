#pragma once

#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// Ranks of some keys by counting those that come before: kEach of each of
/// kLanes lanes, key e of a lane at place e * kLanes + lane. All lanes of the
/// warp call it, each group for its row.
template <int kLanes, int kEach>
struct KeyRanks {
    using Group = LaneGroup<kLanes>;

    /// keys      [kEach * kLanes], `count` of them and NaN behind, aligned to
    ///           16 bytes
    /// room      the same, overwritten where keys are equal
    /// mine, columns  of this lane; of equal keys the lower column comes before
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
            addTies(keys, room, mine, columns, count, ranks);
        }
    }

   private:
    /// Equal keys of lower columns.
    __device__ __forceinline__ static void addTies(
            const float* keys,
            uint32_t* room,
            const float (&mine)[kEach],
            const uint32_t (&columns)[kEach],
            uint32_t count,
            float (&ranks)[kEach]) {
        __syncwarp();
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            room[e * kLanes + Group::lane()] = columns[e];
        }
        __syncwarp();
        for (uint32_t from = 0; from < count; from += 4) {
            const float4 some = *reinterpret_cast<const float4*>(keys + from);
            const uint4 at = *reinterpret_cast<const uint4*>(room + from);
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                const auto add = [&](float key, uint32_t column) {
                    const bool is = key == mine[e] && column < columns[e];
                    ranks[e] += is ? 1.0f : 0.0f;
                };
                add(some.x, at.x);
                add(some.y, at.y);
                add(some.z, at.z);
                add(some.w, at.w);
            }
        }
        __syncwarp();
    }
};

} // namespace faiss_bits
