/// From the survivors of a row of FewOfBlock.cuh to its results: ranks are
/// counted.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/FewOfBlockFull.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// All threads of the block call run(). shared: columns, `count` of them, and
/// rankSum zero.
template <int kThreads>
struct FewOfBlockFinish {
    using Shared = FewOfBlockShared<kThreads>;
    static constexpr uint32_t kRankStep = 16384; // no fewer than the columns
    // Rank and column are exact as a float.
    static_assert(Shared::kRoom * kRankStep <= 1 << 24);

    const SelectParams& params;
    const uint32_t row;
    Shared& shared;

    /// As orderedKey, of a number or of the one NaN that fminf has.
    __device__ __forceinline__ static uint32_t keyOf(float value) {
        const int32_t bits = __float_as_int(__fadd_rn(value, 0.0f));
        return uint32_t(bits) ^ (uint32_t(bits >> 31) | 0x80000000u);
    }

    __device__ __forceinline__ static float signOf(const SelectParams& params) {
        return __uint_as_float(0x3F800000u ^ params.signMask);
    }

    /// Ranks of the survivors, at most kEach of a thread, and the results.
    template <int kEach>
    __device__ __forceinline__ void run(uint32_t count) const {
        const float* from = FewOfBlockFull<kThreads>::keysOf(params, row);
        uint32_t columns[kEach] = {};
        float mine[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t place = e * kThreads + threadIdx.x;
            mine[e] = __uint_as_float(0x7FC00000u);
            if (place < count) {
                columns[e] = shared.columns[place];
                mine[e] = __ldg(from + columns[e]);
            }
        }
        const float times = signOf(params);
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t place = e * kThreads + threadIdx.x;
            mine[e] *= times;
            shared.keys[place] = mine[e];
        }
        __syncthreads();
        float ranks[kEach];
        const bool isIdle = threadIdx.x / kWarpSize * kWarpSize >= count;
        if (!isIdle) {
            countBefore(mine, count, ranks);
            uint32_t sum = 0;
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                sum += uint32_t(ranks[e]);
            }
            sum = __reduce_add_sync(kFullWarp, sum);
            if (threadIdx.x % kWarpSize == 0) {
                atomicAdd(&shared.rankSum, sum);
            }
        }
        __syncthreads();
        // Pairs of different keys count once: all of them, unless some tie.
        const bool hasTies = shared.rankSum != count * (count - 1) / 2;
        if (hasTies) {
            // Rank so far and column are a number, no two of which are equal.
            float numbers[kEach];
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                const uint32_t place = e * kThreads + threadIdx.x;
                numbers[e] = place < count
                        ? __fmaf_rn(
                                  ranks[e], float(kRankStep), float(columns[e]))
                        : __uint_as_float(0x7FC00000u);
                shared.keys[place] = numbers[e];
            }
            __syncthreads();
            if (!isIdle) {
                countBefore(numbers, count, ranks);
            }
        }
        if (isIdle) {
            return;
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const int rank = int(ranks[e]);
            if (e * kThreads + threadIdx.x < count && rank < params.k) {
                writeResult<float>(
                        params,
                        row,
                        rank,
                        makeEntry(keyOf(mine[e]), columns[e]));
            }
        }
    }

   private:
    /// How many of the `count` in shared.keys, NaN behind them, are less.
    template <int kEach>
    __device__ __forceinline__ void countBefore(
            const float (&mine)[kEach],
            uint32_t count,
            float (&ranks)[kEach]) const {
#pragma unroll
        for (float& rank : ranks) {
            rank = 0;
        }
#pragma unroll 4
        for (uint32_t i = 0; i < count; i += 4) {
            const float4 some =
                    *reinterpret_cast<const float4*>(shared.keys + i);
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                ranks[e] += some.x < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.y < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.z < mine[e] ? 1.0f : 0.0f;
                ranks[e] += some.w < mine[e] ? 1.0f : 0.0f;
            }
        }
    }
};

} // namespace faiss_bits
