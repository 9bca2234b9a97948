/// Canonical distances of what a scan by estimates has found: of 32 vectors of
/// a list at a time, which come through shared memory once for all queries that
/// they are candidates of.
///
/// Bound by: one read of the lists that are probed.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

constexpr int kIvfRescoreThreads = 128;

template <Metric kMetric, ListCoding kCoding>
struct IvfRescore {
    static constexpr int kThreads = kIvfRescoreThreads;
    // Words from component to component, and from vector to vector: the lanes
    // of a candidate read eight components.
    static constexpr int kPitch = kListGroup + 1;

    const IvfRescoreParams& params;
    float* vectors; // [d, kPitch]; nullptr: there is no room for them

    __device__ __forceinline__ void run() {
        const uint32_t numGroups = params.numPlaced[1];
        if (blockIdx.x >= numGroups) {
            return;
        }
        IvfGroup next = params.groups[blockIdx.x];
        for (uint32_t i = blockIdx.x; i < numGroups; i += gridDim.x) {
            const IvfGroup group = next;
            next = params.groups[min(i + gridDim.x, numGroups - 1)];
            TilePlace place = {};
            place.list = group.vectors;
            place.listNumber = group.list;
            place.last = group.last;
            place.first = group.first;
            // Known before it is needed.
            const IvfCandidate first =
                    params.grouped
                            [group.begin +
                             min(threadIdx.x / kPairLanes, group.count - 1)];
            if (vectors) {
                __syncthreads(); // those of the group before are read
                stage(place);
                __syncthreads();
            }
            score(place, group.begin, group.count, first);
        }
    }

   private:
    __device__ __forceinline__ void stage(const TilePlace& place) const {
        const int d = params.search.d;
        const int numVectors =
                int(min(place.last - place.first, int64_t(kListGroup)));
        if constexpr (kCoding == ListCoding::Float32) {
            if (params.search.lists.layout == ListLayout::Interleaved) {
                return stageFloats(place);
            }
        }
        const bool isRows = params.search.lists.layout == ListLayout::Rows;
        VectorsOfLists<kCoding>::with(params.search, [&](const auto& lists) {
            // Threads side by side read what lies side by side.
            for (int i = threadIdx.x; i < kListGroup * d; i += kThreads) {
                const int v = isRows ? i / d : i % kListGroup;
                const int c = isRows ? i % d : i / kListGroup;
                if (v < numVectors) {
                    vectors[c * kPitch + v] = lists.vector(place, v)(c);
                }
            }
        });
    }

    /// Interleaved: a group is there as a whole.
    __device__ __forceinline__ void stageFloats(const TilePlace& place) const {
        const int d = params.search.d;
        constexpr int kFours = kListGroup / 4;
        const auto* from = reinterpret_cast<const float4*>(
                static_cast<const float*>(place.list) + place.first * d);
#pragma unroll 8
        for (int i = threadIdx.x; i < kFours * d; i += kThreads) {
            const float4 x = from[i];
            float* to = vectors + i / kFours * kPitch + i % kFours * 4;
            to[0] = x.x;
            to[1] = x.y;
            to[2] = x.z;
            to[3] = x.w;
        }
    }

    __device__ __forceinline__ void score(
            const TilePlace& place,
            uint32_t begin,
            uint32_t count,
            IvfCandidate candidate) const {
        const IvfParams& search = params.search;
        constexpr uint32_t kAtATime = kThreads / kPairLanes;
        for (uint32_t first = 0; first < count; first += kAtATime) {
            const uint32_t i = first + threadIdx.x / kPairLanes;
            const bool isThere = i < count;
            const IvfCandidate now = candidate;
            if (first + kAtATime < count) {
                candidate =
                        params.grouped[begin + min(i + kAtATime, count - 1)];
            }
            const int v = int(now.rowAndPlace % kListGroup);
            const float* query = search.queries +
                    int64_t(now.rowAndPlace / kListGroup) * search.d;
            const int d = isThere ? search.d : 0;
            double distance = 0;
            if (vectors) {
                const float* x = vectors + v;
                distance = pairDistance<kMetric>(
                        [&](int c) { return x[c * kPitch]; },
                        query,
                        d,
                        search.power);
            } else {
                VectorsOfLists<kCoding>::with(search, [&](const auto& lists) {
                    distance = pairDistance<kMetric>(
                            lists.vector(place, v), query, d, search.power);
                });
            }
            if (isThere && threadIdx.x % kPairLanes == 0) {
                // -0 counts as +0.
                params.distances[now.number] =
                        canonical::toFloat32(distance) + 0.0f;
            }
        }
    }
};

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(kIvfRescoreThreads) void ivfRescoreKernel(
        const __grid_constant__ IvfRescoreParams params) {
    extern __shared__ float ivfRescoreVectors[];
    allowNext();
    waitForPrevious();
    IvfRescore<kMetric, kCoding>{
            params, params.stagesVectors ? ivfRescoreVectors : nullptr}
            .run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfRescore(
        IvfRescoreParams params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream) {
    const size_t wanted = sizeof(float) * IvfRescore<kMetric, kCoding>::kPitch *
            params.search.d;
    params.stagesVectors = wanted <= sharedBytes;
    const size_t bytes = params.stagesVectors ? wanted : 0;
    constexpr int64_t kMostBlocks = 16; // of a multiprocessor
    const int64_t blocks = std::max<int64_t>(
            1,
            std::min<int64_t>(
                    kMostBlocks,
                    int64_t(sharedBytes) / std::max<int64_t>(bytes, 1)));
    launchAfterPrevious(
            ivfRescoreKernel<kMetric, kCoding>,
            dim3(unsigned(blocks * multiprocessors)),
            kIvfRescoreThreads,
            allowSharedBytes(ivfRescoreKernel<kMetric, kCoding>, bytes),
            stream,
            params);
}

} // namespace faiss_bits
