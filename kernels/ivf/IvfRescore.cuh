/// Canonical distances of what a scan by estimates has found: of 32 vectors of
/// a list at a time, which come through shared memory once for all queries that
/// they are candidates of.
///
/// Bound by: one read of the lists that are probed. Lists of float32 are copied
/// while the vectors before them are used.
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
    // of a candidate read eight components. Copies are of sixteen bytes.
    static constexpr int kPitch = kListGroup + 4;

    const IvfRescoreParams& params;
    float* vectors; // [params.stages, d, kPitch]

    __device__ __forceinline__ void run() {
        const uint32_t numGroups = params.numPlaced[1];
        if (blockIdx.x >= numGroups) {
            return;
        }
        if constexpr (kCoding == ListCoding::Float32) {
            if (params.stages > 1) {
                return runAhead(numGroups);
            }
        }
        IvfGroup next = params.groups[blockIdx.x];
        for (uint32_t i = blockIdx.x; i < numGroups; i += gridDim.x) {
            const IvfGroup group = next;
            next = groupAt(uint64_t(i) + gridDim.x, numGroups);
            const TilePlace place = placeOf(group);
            const IvfCandidate first = firstOf(group);
            if (params.stages > 0) {
                __syncthreads(); // those of the group before are read
                stage(place);
                __syncthreads();
                score(vectors, place, group.begin, group.count, first);
            } else {
                score(nullptr, place, group.begin, group.count, first);
            }
        }
    }

   private:
    /// With a group on its way while the one before it is used.
    __device__ __forceinline__ void runAhead(uint32_t numGroups) const {
        IvfGroup next = params.groups[blockIdx.x];
        IvfGroup following =
                groupAt(uint64_t(blockIdx.x) + gridDim.x, numGroups);
        copy(placeOf(next), vectors);
        uint32_t slot = 0;
        for (uint32_t i = blockIdx.x; i < numGroups; i += gridDim.x) {
            const IvfGroup group = next;
            const TilePlace place = placeOf(group);
            const IvfCandidate first = firstOf(group);
            float* of = vectors + slot * params.search.d * kPitch;
            slot ^= 1;
            next = following;
            if (numGroups - i > gridDim.x) {
                copy(placeOf(next), vectors + slot * params.search.d * kPitch);
            } else {
                endCopy();
            }
            following = groupAt(i + 2 * uint64_t(gridDim.x), numGroups);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();
            score(of, place, group.begin, group.count, first);
            __syncthreads(); // it is read
        }
    }

    /// The last one, behind the last.
    __device__ __forceinline__ IvfGroup
    groupAt(uint64_t number, uint32_t numGroups) const {
        return params.groups[min(number, uint64_t(numGroups - 1))];
    }

    __device__ __forceinline__ static TilePlace placeOf(const IvfGroup& group) {
        TilePlace place = {};
        place.list = group.vectors;
        place.listNumber = group.list;
        place.last = group.last;
        place.first = group.first;
        return place;
    }

    /// Before it is needed.
    __device__ __forceinline__ IvfCandidate
    firstOf(const IvfGroup& group) const {
        return params.grouped
                [group.begin + min(threadIdx.x / kPairLanes, group.count - 1)];
    }

    __device__ __forceinline__ static void endCopy() {
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    /// Begins to copy 32 vectors of an interleaved list, where a group is there
    /// as a whole.
    __device__ __forceinline__ void copy(const TilePlace& place, float* to)
            const {
        constexpr int kFours = kListGroup / 4;
        const auto* from = static_cast<const float*>(place.list) +
                place.first * params.search.d;
        const auto shared = uint32_t(__cvta_generic_to_shared(to));
#pragma unroll 4
        for (int i = threadIdx.x; i < kFours * params.search.d; i += kThreads) {
            const int at = i / kFours * kPitch + i % kFours * 4;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                 shared + uint32_t(sizeof(float)) * at),
                         "l"(from + 4 * i)
                         : "memory");
        }
        endCopy();
    }

    __device__ __forceinline__ void stage(const TilePlace& place) const {
        const int d = params.search.d;
        const int numVectors =
                int(min(place.last - place.first, int64_t(kListGroup)));
        const bool isRows = params.search.lists.layout == ListLayout::Rows;
        if constexpr (kCoding == ListCoding::Float32) {
            if (!isRows) {
                copy(place, vectors);
                asm volatile("cp.async.wait_group 0;" ::: "memory");
                return;
            }
        }
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

    /// staged: the group's vectors; nullptr: they are read where they are.
    __device__ __forceinline__ void score(
            const float* staged,
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
            if (staged) {
                const float* x = staged + v;
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
    IvfRescore<kMetric, kCoding>{params, ivfRescoreVectors}.run();
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfRescore(
        IvfRescoreParams params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream) {
    const size_t wanted = sizeof(float) * IvfRescore<kMetric, kCoding>::kPitch *
            params.search.d;
    // Of a multiprocessor: each block has some more of its own.
    constexpr size_t kOfBlock = 1024;
    const size_t room = sharedBytes + kOfBlock;
    const bool isCopied = kCoding == ListCoding::Float32 &&
            params.search.lists.layout == ListLayout::Interleaved;
    params.stages = isCopied && 2 * (2 * wanted + kOfBlock) <= room ? 2
            : wanted <= sharedBytes                                 ? 1
                                                                    : 0;
    const size_t bytes = wanted * params.stages;
    // More do not fit beside each other's registers.
    constexpr size_t kMostBlocks = 6;
    const size_t blocks =
            std::clamp<size_t>(room / (bytes + kOfBlock), 1, kMostBlocks);
    launchAfterPrevious(
            ivfRescoreKernel<kMetric, kCoding>,
            dim3(unsigned(blocks * multiprocessors)),
            kIvfRescoreThreads,
            allowSharedBytes(ivfRescoreKernel<kMetric, kCoding>, bytes),
            stream,
            params);
}

} // namespace faiss_bits
