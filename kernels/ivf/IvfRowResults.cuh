/// Distances of the candidates of a row, and its results, in one kernel: where
/// rows are so few that they seldom want vectors of the same 32, sorting them
/// by these gains nothing, and each step of it is a wait.
///
/// Bound by: waits for memory, one after another: places, codes, ids.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfFewCandidates.cuh"
#include "kernels/ivf/IvfFewResults.cuh"

namespace faiss_bits {

/// Threads of a row; eight have a candidate.
constexpr int kRowThreads = 256;

template <Metric kMetric, ListCoding kCoding, int kItems>
__global__ __launch_bounds__(kRowThreads) void ivfRowResultsKernel(
        const __grid_constant__ IvfResultParams params) {
    constexpr uint32_t kAtATime = kRowThreads / kPairLanes;
    constexpr uint32_t kOfWarp = kWarpSize / kPairLanes;
    __shared__ typename FewResults<kItems>::Storage storage;
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.x;
    const auto most = uint32_t(params.rescored.candidates);
    const int64_t begin = int64_t(row) * most;
    const float* query = search.queries + int64_t(row) * search.d;
    VectorsOfLists<kCoding>::with(search, [&](const auto& lists) {
        for (uint32_t first = threadIdx.x / kWarpSize * kOfWarp; first < most;
             first += kAtATime) {
            const uint32_t i = first + threadIdx.x % kWarpSize / kPairLanes;
            const uint64_t at =
                    i < most ? params.rescored.places[begin + i] : kIvfNoPlace;
            const bool isThere = at != kIvfNoPlace;
            // Those that are there come first.
            if (!__any_sync(kFullWarp, isThere)) {
                break;
            }
            const auto vector = isThere ? uint32_t(at) : 0;
            TilePlace place = {};
            place.listNumber = isThere ? uint32_t(at >> 32) : 0;
            place.list = search.lists.vectors[place.listNumber];
            place.last = listLength(search.lists, place.listNumber);
            place.first = vector / kListGroup * kListGroup;
            const double distance = pairDistance<kMetric>(
                    lists.vector(place, vector % kListGroup),
                    query,
                    isThere ? search.d : 0,
                    search.power);
            if (isThere && threadIdx.x % kPairLanes == 0) {
                // -0 counts as +0.
                params.rescored.distances[begin + i] =
                        canonical::toFloat32(distance) + 0.0f;
            }
        }
    });
    __syncthreads();
    if (threadIdx.x < kWarpSize) {
        FewResults<kItems>{params, storage, row}.run();
    }
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfRowResults(const IvfResultParams& params, cudaStream_t stream) {
    withFewItems(params, [&](auto items) {
        launchAfterPrevious(
                ivfRowResultsKernel<kMetric, kCoding, items()>,
                dim3(params.search.rows),
                kRowThreads,
                0,
                stream,
                params);
    });
}

} // namespace faiss_bits
