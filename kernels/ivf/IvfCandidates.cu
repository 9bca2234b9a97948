// Candidates of an IVF search by where they lie: those in the same 32 vectors
// of a list stand together, so that these are read once for all.

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/ListScan.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// Groups of 32 vectors of the lists before.
struct FirstGroupsParams {
    IvfLists lists;
    uint32_t* firstGroups = nullptr; // [numLists + 1]
};

__global__ __launch_bounds__(ListScan<1>::kThreads) void firstGroupsKernel(
        const __grid_constant__ FirstGroupsParams params) {
    __shared__ ListScan<1>::SharedStorage storage;
    allowNext();
    waitForPrevious();
    ListScan<1>{storage}.run(
            uint32_t(params.lists.numLists),
            [&](uint32_t list, uint32_t(&groups)[1]) {
                groups[0] = (listLength(params.lists, list) + kListGroup - 1) /
                        kListGroup;
            },
            [&](uint32_t list, const uint32_t(&before)[1]) {
                params.firstGroups[list] = before[0];
            });
}

/// Where the candidates of a group begin: in any order of the groups, which no
/// result shows. A thread a group.
__global__ __launch_bounds__(kThreads) void placeGroupsKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint32_t numGroups = params.firstGroups[params.search.lists.numLists];
    const uint32_t group = blockIdx.x * kThreads + threadIdx.x;
    const uint32_t count = group < numGroups ? params.groupCounts[group] : 0;
    const int lane = threadIdx.x % kWarpSize;
    uint32_t until = count; // sum of the lanes up to this one
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const uint32_t other = __shfl_up_sync(kFullWarp, until, distance);
        until += lane >= distance ? other : 0;
    }
    uint32_t first = 0;
    if (lane == kWarpSize - 1 && until > 0) {
        first = atomicAdd(params.numPlaced, until);
    }
    first = __shfl_sync(kFullWarp, first, kWarpSize - 1);
    if (group < numGroups) {
        params.groupEnds[group] = first + until - count;
    }
}

/// The place of a candidate, and its group.
struct Candidate {
    bool isThere = false;
    uint64_t place = 0;
    uint32_t group = 0;

    __device__ Candidate(const IvfRescoreParams& params, uint64_t number) {
        const IvfParams& search = params.search;
        if (number >= uint64_t(search.rows) * params.candidates) {
            return;
        }
        const uint32_t row = uint32_t(number / params.candidates);
        const int i = int(number % params.candidates);
        const int32_t at =
                params.chosen[int64_t(row) * (params.candidates + 1) + i];
        if (at < 0) {
            return;
        }
        isThere = true;
        place = search.found[int64_t(row) * search.room + at];
        group = params.firstGroups[place >> 32] + uint32_t(place) / kListGroup;
    }
};

/// A thread a candidate: its place, and how many a group has.
__global__ __launch_bounds__(kThreads) void countCandidatesKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint64_t number = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
    const Candidate candidate(params, number);
    if (candidate.isThere) {
        params.places[number] = candidate.place;
        atomicAdd(&params.groupCounts[candidate.group], 1u);
    } else if (number < uint64_t(params.search.rows) * params.candidates) {
        params.places[number] = 0;
        params.distances[number] = NAN;
    }
}

/// A thread a candidate. groupEnds are the begins of the groups before.
__global__ __launch_bounds__(kThreads) void placeCandidatesKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint64_t number = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
    const Candidate candidate(params, number);
    if (candidate.isThere) {
        const uint32_t at = atomicAdd(&params.groupEnds[candidate.group], 1u);
        params.grouped[at] = uint32_t(number);
    }
}

unsigned blocksFor(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

} // namespace

void launchIvfGroups(
        const IvfLists& lists,
        uint32_t* firstGroups,
        cudaStream_t stream) {
    FirstGroupsParams params;
    params.lists = lists;
    params.firstGroups = firstGroups;
    launchAfterPrevious(
            firstGroupsKernel,
            dim3(1),
            ListScan<1>::kThreads,
            0,
            stream,
            params);
}

void launchIvfCandidates(const IvfRescoreParams& params, cudaStream_t stream) {
    const unsigned blocks =
            blocksFor(uint64_t(params.search.rows) * params.candidates);
    BITS_CUDA_CHECK(cudaMemsetAsync(
            params.groupCounts,
            0,
            size_t(params.mostGroups) * sizeof(uint32_t),
            stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(params.numPlaced, 0, sizeof(uint32_t), stream));
    launchAfterPrevious(
            countCandidatesKernel, dim3(blocks), kThreads, 0, stream, params);
    launchAfterPrevious(
            placeGroupsKernel,
            dim3(blocksFor(params.mostGroups)),
            kThreads,
            0,
            stream,
            params);
    launchAfterPrevious(
            placeCandidatesKernel, dim3(blocks), kThreads, 0, stream, params);
}

} // namespace faiss_bits
