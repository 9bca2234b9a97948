/// Canonical distances of the candidates of 32 vectors of a list that are few:
/// a warp takes such a group, and reads of it what its candidates are.
///
/// Bound by: the sectors of the candidates, and the instructions that decode
/// them. With ten candidates of 128 components a third of a group is decoded.
#pragma once

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// The first vector of a group, and the end of its list.
__device__ __forceinline__ TilePlace placeOfGroup(const IvfGroup& group) {
    TilePlace place = {};
    place.list = group.vectors;
    place.listNumber = group.list;
    place.last = group.last;
    place.first = group.first;
    return place;
}

/// The query of a candidate.
__device__ __forceinline__ const float* queryOf(
        const IvfParams& search,
        const IvfCandidate& candidate) {
    return search.queries +
            int64_t(candidate.rowAndPlace / kListGroup) * search.d;
}

/// By the first of the lanes that have it.
__device__ __forceinline__ void setDistance(
        const IvfRescoreParams& params,
        const IvfCandidate& candidate,
        bool isThere,
        double distance) {
    if (isThere && threadIdx.x % kPairLanes == 0) {
        // -0 counts as +0.
        params.distances[candidate.number] =
                canonical::toFloat32(distance) + 0.0f;
    }
}

template <Metric kMetric, ListCoding kCoding>
struct IvfFewCandidates {
    static constexpr int kThreads = 256;
    /// Of a multiprocessor, beside each other's registers.
    static constexpr int kBlocks = kCoding == ListCoding::Float32 ? 6 : 4;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr uint32_t kAtATime = kWarpSize / kPairLanes;

    const IvfRescoreParams& params;

    __device__ __forceinline__ void run() const {
        const uint32_t numGroups = params.numPlaced[kIvfFewPlaced];
        // So that few groups are spread over all multiprocessors.
        uint32_t at = threadIdx.x / kWarpSize * gridDim.x + blockIdx.x;
        if (at >= numGroups) {
            return;
        }
        VectorsOfLists<kCoding>::with(params.search, [&](const auto& lists) {
            IvfGroup next = params.groups[at];
            for (; at < numGroups; at += kWarps * gridDim.x) {
                const IvfGroup group = next;
                next = params.groups[min(
                        at + kWarps * gridDim.x, numGroups - 1)];
                score(lists, group);
            }
        });
    }

   private:
    template <class Lists>
    __device__ __forceinline__ void score(
            const Lists& lists,
            const IvfGroup& group) const {
        const IvfParams& search = params.search;
        const TilePlace place = placeOfGroup(group);
        for (uint32_t first = 0; first < group.count; first += kAtATime) {
            const uint32_t i = first + threadIdx.x % kWarpSize / kPairLanes;
            const bool isThere = i < group.count;
            const IvfCandidate candidate =
                    params.grouped[group.begin + min(i, group.count - 1)];
            const double distance = pairDistance<kMetric>(
                    lists.vector(place, candidate.rowAndPlace % kListGroup),
                    queryOf(search, candidate),
                    isThere ? search.d : 0,
                    search.power);
            setDistance(params, candidate, isThere, distance);
        }
    }
};

} // namespace faiss_bits
