/// Canonical distances of few queries to a sample of the vectors.
///
/// Bound by: latency; of long vectors by conversions to float64.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/certified/JoinSlots.cuh"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampledVector.cuh"

namespace faiss_bits {

template <Metric kMetric>
constexpr bool kCanSampleSome = canonical::Terms<kMetric>::kSums == 1 &&
        isOfProducts(kMetric);
constexpr int kSampleFewThreads = 256;
constexpr int kSampleFewGroups = kSampleFewThreads / kPairLanes;
/// Of sampleSomeKernel: vectors of a group of lanes, and queries of a block. It
/// is for metrics of one sum.
constexpr int kSomeVectors = 2;
constexpr int kSomeQueries = 4;

/// The vectors of kCount members of a sample from `first` on, or of the last
/// one. A thread each finds them, as that takes some divisions of 64 bits. All
/// threads of the block call it; ends with the block in step.
template <int kCount>
__device__ __forceinline__ void findSampled(
        const SampleLimitParams& params,
        uint32_t first,
        int64_t (&vectors)[kCount]) {
    static_assert(kCount <= kSampleFewThreads);
    if (threadIdx.x < kCount) {
        vectors[threadIdx.x] = sampledVector(
                min(first + threadIdx.x, params.samples - 1),
                params.samples,
                params.search.n);
    }
    __syncthreads();
}

/// Of a query (y), by several blocks.
template <Metric kMetric>
__global__ __launch_bounds__(kSampleFewThreads) void sampleFewKernel(
        const SampleLimitParams params) {
    __shared__ int64_t vectors[kSampleFewGroups];
    allowNext();
    const CertifiedParams& search = params.search;
    const uint32_t row = blockIdx.y;
    const int group = threadIdx.x / kPairLanes;
    const uint32_t first = blockIdx.x * kSampleFewGroups;
    findSampled(params, first, vectors);
    waitForPrevious();
    double distance = 0;
    withVectors(search.vectors, [&](const auto* data) {
        distance = pairDistance<kMetric>(
                data + vectors[group] * search.vectors.rowStride,
                search.vectors.columnStride,
                search.queries + int64_t(row) * search.d,
                search.d,
                search.power);
    });
    const uint32_t sample = first + group;
    if (sample < params.samples && threadIdx.x % kPairLanes == 0) {
        params.values[int64_t(row) * params.samples + sample] =
                canonical::toFloat32(distance);
    }
}

/// The same of kSomeQueries queries (y): what is read, found and widened of a
/// vector serves all of them.
template <Metric kMetric, class T>
__device__ __forceinline__ void sampleSome(
        const SampleLimitParams& params,
        const T* data,
        uint32_t first,
        const int64_t* vectors) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 4; // components of a vector
    const CertifiedParams& search = params.search;
    const int lane = threadIdx.x % kPairLanes;
    const int group = threadIdx.x / kPairLanes;
    const uint32_t firstRow = blockIdx.y * kSomeQueries;
    const T* x[kSomeVectors];
    const float* q[kSomeQueries];
#pragma unroll
    for (int v = 0; v < kSomeVectors; ++v) {
        x[v] = data +
                vectors[v * kSampleFewGroups + group] *
                        search.vectors.rowStride;
    }
#pragma unroll
    for (int j = 0; j < kSomeQueries; ++j) {
        q[j] = search.queries +
                int64_t(min(firstRow + j, search.rows - 1)) * search.d;
    }
    double sums[kSomeVectors][kSomeQueries][Terms::kSums] = {};
    for (int begin = 0; begin < search.d; begin += kPairLanes * kAhead) {
        float xs[kSomeVectors][kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes + lane;
#pragma unroll
            for (int v = 0; v < kSomeVectors; ++v) {
                xs[v][i] = c < search.d
                        ? toFloat(x[v][c * search.vectors.columnStride])
                        : 0.0f;
            }
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            if (begin + i * kPairLanes >= search.d) {
                break;
            }
            const int c = begin + i * kPairLanes + lane;
#pragma unroll
            for (int j = 0; j < kSomeQueries; ++j) {
                const double y = c < search.d ? q[j][c] : 0.0f;
#pragma unroll
                for (int v = 0; v < kSomeVectors; ++v) {
                    Terms::add(sums[v][j], double(xs[v][i]), y, search.power);
                }
            }
        }
    }
#pragma unroll
    for (int v = 0; v < kSomeVectors; ++v) {
        const uint32_t sample = first + v * kSampleFewGroups + group;
#pragma unroll
        for (int j = 0; j < kSomeQueries; ++j) {
            joinSlots<Terms>(sums[v][j]);
            if (lane == j && sample < params.samples &&
                firstRow + j < search.rows) {
                params.values[int64_t(firstRow + j) * params.samples + sample] =
                        canonical::toFloat32(Terms::finish(sums[v][j]));
            }
        }
    }
}

template <Metric kMetric>
__global__ __launch_bounds__(kSampleFewThreads) void sampleSomeKernel(
        const SampleLimitParams params) {
    constexpr int kCount = kSomeVectors * kSampleFewGroups;
    __shared__ int64_t vectors[kCount];
    allowNext();
    const uint32_t first = blockIdx.x * kCount;
    findSampled(params, first, vectors);
    waitForPrevious();
    withVectors(params.search.vectors, [&](const auto* data) {
        sampleSome<kMetric>(params, data, first, vectors);
    });
}

} // namespace faiss_bits
