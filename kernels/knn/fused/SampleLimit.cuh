/// A limit for each query from its distances to a sample of the vectors.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/knn/certified/RowBound.cuh"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampledVector.cuh"

namespace faiss_bits {

constexpr int kSampleLimitThreads = 512;

/// One block a query. The keys of its sample stay in registers.
template <Metric kMetric, int Items>
struct SampleLimit {
    using Narrow = BlockNarrow<kSampleLimitThreads>;

    struct SharedStorage {
        typename Narrow::SharedStorage narrow;
        uint64_t least[kSampleLimitThreads / kWarpSize];
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
        key += sampleError(bound, key);
        if (threadIdx.x == 0) {
            // Keys of all vectors up to this one are not above the limit.
            float limit = __double2float_ru(key + bound.at(key));
            float complete = __double2float_rd(key);
            if (!(limit < __uint_as_float(0x7f800000u))) {
                limit = complete = __uint_as_float(0x7f800000u);
            }
            if (bound.norm != bound.norm) {
                // No neighbours: what is no number passes all the same.
                limit = -__uint_as_float(0x7f800000u);
                complete = nanf("");
            }
            params.limits[row] = limit;
            params.complete[row] = complete;
            params.counts[row] = 0;
        }
    }

   private:
    /// What the distances to a sample in bfloat16 are off by, some deviations
    /// of it: the limit is of the asked rank with it. Nothing rests on it.
    __device__ __forceinline__ double sampleError(
            const RowBound<kMetric>& bound,
            double key) const {
        if (!params.search.imageResidual) {
            return 0;
        }
        const double x =
                kMetric == Metric::L2 ? bound.norm + sqrt(key) : bound.greatest;
        return 0x1p-6 * bound.norm * x * rsqrt(double(params.search.d));
    }

    __device__ __forceinline__ static uint32_t column(int i) {
        return i * kSampleLimitThreads + threadIdx.x;
    }

    __device__ __forceinline__ void load(
            uint32_t row,
            float squaredNorm,
            float (&keys)[Items]) {
        const float* values = params.values + int64_t(row) * params.samples;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const bool exists =
                    column(i) < params.samples && isAllowed(column(i));
            const float value = exists ? values[column(i)] : nanf("");
            keys[i] = kIsSimilarity<kMetric> ? -value : value;
            if (kMetric == Metric::L2 && params.columnBias && exists) {
                keys[i] += params.columnBias[column(i)] + squaredNorm;
            }
        }
    }

    __device__ __forceinline__ bool isAllowed(uint32_t sample) const {
        const uint32_t* bits = params.search.allowedBits;
        if (!bits) {
            return true;
        }
        const int64_t vector =
                sampledVector(sample, params.samples, params.search.n);
        return (bits[vector / 32] >> (vector % 32) & 1) != 0;
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
        constexpr uint32_t kMostSteps = 16;
        const uint64_t entry = params.rank <= kMostSteps
                ? stepTo(params.rank, forEach)
                : Narrow{shared.narrow}.limit(
                          forEach, params.rank, params.room);
        return keyValue(entryKey(entry));
    }

    /// The rank'th entry, from one to the next.
    template <class ForEach>
    __device__ __forceinline__ uint64_t
    stepTo(uint32_t rank, const ForEach& forEach) {
        uint64_t last = 0;
        uint64_t own = 0; // the least of this thread that is above `last`
        for (uint32_t i = 0; i < rank; ++i) {
            // Of one thread alone, but for the first time.
            if (own == last) {
                own = kNoEntry;
                // No entry is 0: its key would be a NaN.
                forEach([&](uint64_t entry) {
                    own = entry > last && entry < own ? entry : own;
                });
            }
            const uint64_t least = leastOfWarp(own);
            __syncthreads();
            if (threadIdx.x % kWarpSize == 0) {
                shared.least[threadIdx.x / kWarpSize] = least;
            }
            __syncthreads();
            last = leastOfWarp(ofWarps<kSampleLimitThreads / kWarpSize>(
                    shared.least, kNoEntry));
        }
        return last;
    }
};

template <Metric kMetric, int Items>
__global__ __launch_bounds__(kSampleLimitThreads) void sampleLimitKernel(
        const SampleLimitParams params) {
    using Limit = SampleLimit<kMetric, Items>;
    __shared__ typename Limit::SharedStorage shared;
    allowNext();
    waitForPrevious();
    Limit{shared, params}.run(blockIdx.x);
}

constexpr int kSampleFewThreads = 256;

/// Distances of a query (y) to the sample, by several blocks.
template <Metric kMetric>
__global__ __launch_bounds__(kSampleFewThreads) void sampleFewKernel(
        const SampleLimitParams params) {
    constexpr int kGroups = kSampleFewThreads / kPairLanes;
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t row = blockIdx.y;
    const int group = threadIdx.x / kPairLanes;
    for (uint32_t base = blockIdx.x * kGroups; base < params.samples;
         base += gridDim.x * kGroups) {
        const uint32_t sample = base + group;
        const int64_t vector = sampledVector(
                min(sample, params.samples - 1), params.samples, search.n);
        double distance = 0;
        withVectors(search.vectors, [&](const auto* data) {
            distance = pairDistance<kMetric>(
                    data + vector * search.vectors.rowStride,
                    search.vectors.columnStride,
                    search.queries + int64_t(row) * search.d,
                    search.d,
                    search.power);
        });
        if (sample < params.samples && threadIdx.x % kPairLanes == 0) {
            params.values[int64_t(row) * params.samples + sample] =
                    canonical::toFloat32(distance);
        }
    }
}

} // namespace faiss_bits
