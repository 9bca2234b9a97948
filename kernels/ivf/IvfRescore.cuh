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

constexpr int kIvfRescoreThreads = 256;

template <Metric kMetric, ListCoding kCoding>
struct IvfRescore {
    static constexpr int kThreads = kIvfRescoreThreads;
    // Words from component to component, and from vector to vector: the lanes
    // of a candidate read eight components.
    static constexpr int kPitch = kListGroup + 1;

    const IvfRescoreParams& params;
    float* vectors; // [d, kPitch]; nullptr: there is no room for them

    __device__ __forceinline__ void run() {
        const IvfLists& lists = params.search.lists;
        const uint32_t numGroups = params.firstGroups[lists.numLists];
        for (uint32_t group = blockIdx.x; group < numGroups;
             group += gridDim.x) {
            const uint32_t count = params.groupCounts[group];
            if (count == 0) {
                continue;
            }
            const uint32_t list = listOf(group);
            const uint32_t first =
                    (group - params.firstGroups[list]) * kListGroup;
            TilePlace place = {};
            place.list = lists.vectors[list];
            place.listNumber = list;
            place.last = listLength(lists, list);
            place.first = first;
            if (vectors) {
                __syncthreads(); // those of the group before are read
                stage(place);
                __syncthreads();
            }
            score(place, params.groupEnds[group] - count, count);
        }
    }

   private:
    /// The last list whose first group is no later.
    __device__ __forceinline__ uint32_t listOf(uint32_t group) const {
        uint32_t low = 0;
        uint32_t high = uint32_t(params.search.lists.numLists);
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            (params.firstGroups[middle] <= group ? low : high) = middle;
        }
        return low;
    }

    __device__ __forceinline__ void stage(const TilePlace& place) const {
        const int d = params.search.d;
        const int numVectors =
                int(min(place.last - place.first, int64_t(kListGroup)));
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

    __device__ __forceinline__ void score(
            const TilePlace& place,
            uint32_t begin,
            uint32_t count) const {
        const IvfParams& search = params.search;
        constexpr uint32_t kAtATime = kThreads / kPairLanes;
        for (uint32_t first = 0; first < count; first += kAtATime) {
            const uint32_t i = first + threadIdx.x / kPairLanes;
            const bool isThere = i < count;
            const uint32_t candidate =
                    params.grouped[begin + min(i, count - 1)];
            const int v = int(
                    uint32_t(params.places[candidate]) - uint32_t(place.first));
            const float* query = search.queries +
                    int64_t(candidate / params.candidates) * search.d;
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
                params.distances[candidate] =
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
    constexpr int64_t kMostBlocks = 8; // of a multiprocessor
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
