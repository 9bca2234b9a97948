/// A limit for each query from its distances to a sample of the vectors.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

constexpr int kSampleLimitThreads = 512;

/// One block a query. The keys of its sample stay in registers.
template <Metric kMetric, int Items>
struct SampleLimit {
    using Narrow = BlockNarrow<kSampleLimitThreads>;

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        double norms[2 * kSampleLimitThreads / kWarpSize];
        uint32_t found;
    };

    SharedStorage& shared;
    const SampleLimitParams& params;

    __device__ void run(uint32_t row) {
        if (threadIdx.x == 0) {
            shared.found = 0;
        }
        const auto bound = rowBound<kMetric, kSampleLimitThreads>(
                params.search, row, shared.norms);
        float keys[Items];
        load(row, float(bound.norm * bound.norm), keys);
        double key = rankedKey(keys);
        if (kMetric == Metric::L2) {
            key = fmax(key, 0.0);
        }
        if (threadIdx.x == 0) {
            // All vectors nearer than the limit less the bound have passed.
            params.limits[row] = __double2float_ru(key + bound.at(key));
            params.counts[row] = 0;
        }
    }

   private:
    __device__ __forceinline__ static uint32_t column(int i) {
        return i * kSampleLimitThreads + threadIdx.x;
    }

    __device__ __forceinline__ void
    load(uint32_t row, float squaredNorm, float (&keys)[Items]) {
        const float* values = params.values + int64_t(row) * params.samples;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const bool exists = column(i) < params.samples;
            const float value = exists ? values[column(i)] : nanf("");
            keys[i] = kIsSimilarity<kMetric> ? -value : value;
            if (kMetric == Metric::L2 && params.columnBias && exists) {
                keys[i] += params.columnBias[column(i)] + squaredNorm;
            }
        }
    }

    /// The key of the asked rank; infinity if fewer are numbers.
    __device__ __forceinline__ double rankedKey(const float (&keys)[Items]) {
        uint32_t found = 0;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            found += keys[i] == keys[i];
        }
        found = __reduce_add_sync(kFullWarp, found);
        if (threadIdx.x % kWarpSize == 0) {
            atomicAdd(&shared.found, found);
        }
        __syncthreads();
        if (shared.found < params.rank) {
            return __longlong_as_double(0x7ff0000000000000ll);
        }
        const auto forEach = [&](auto take) {
#pragma unroll
            for (int i = 0; i < Items; ++i) {
                if (keys[i] == keys[i]) {
                    take(makeEntry(orderedKey(keys[i]), column(i)));
                }
            }
        };
        const uint64_t entry =
                Narrow{shared.narrow}.limit(forEach, params.rank, params.room);
        return keyValue(entryKey(entry));
    }
};

template <Metric kMetric, int Items>
__global__ __launch_bounds__(kSampleLimitThreads) void sampleLimitKernel(
        const SampleLimitParams params) {
    using Limit = SampleLimit<kMetric, Items>;
    __shared__ typename Limit::SharedStorage shared;
    waitForPrevious();
    Limit{shared, params}.run(blockIdx.x);
}

} // namespace faiss_bits
