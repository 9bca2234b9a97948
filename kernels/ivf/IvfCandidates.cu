// Candidates of an IVF search by where they lie: those in the same 32 vectors
// of a list stand together, so that these are read once for all.

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneSums.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfColumns.cuh"
#include "kernels/ivf/IvfQueryParts.cuh"
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

/// The place of this lane among `count` of the lanes' numbers, in a sum that
/// all warps share. All lanes of the warp call it.
__device__ uint32_t placeFor(uint32_t* sum, uint32_t count) {
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t until = sumUpToLane(count);
    uint32_t first = 0;
    if (lane == kWarpSize - 1 && until > 0) {
        first = atomicAdd(sum, until);
    }
    return __shfl_sync(kFullWarp, first, kWarpSize - 1) + until - count;
}

/// The last list whose first group is no later.
__device__ uint32_t
listOfGroup(const IvfRescoreParams& params, uint32_t group) {
    uint32_t low = 0;
    uint32_t high = uint32_t(params.search.lists.numLists);
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        (params.firstGroups[middle] <= group ? low : high) = middle;
    }
    return low;
}

/// Where the candidates of a group begin, and which groups have any: in any
/// order of the groups, which no result shows. A thread a group.
/// kListed: in `groups`, too.
template <bool kListed>
__global__ __launch_bounds__(kThreads) void placeGroupsKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const IvfLists& lists = params.search.lists;
    const uint32_t numGroups = params.firstGroups[lists.numLists];
    const uint32_t group = blockIdx.x * kThreads + threadIdx.x;
    const uint32_t count = group < numGroups ? params.groupCounts[group] : 0;
    const uint32_t begin =
            placeFor(&params.numPlaced[kIvfCandidatesPlaced], count);
    if constexpr (!kListed) {
        if (group < numGroups) {
            params.groupBegins[group] = begin;
        }
        return;
    }
    const bool isFew = count <= params.mostOfFew;
    const uint32_t before = placeFor(
            &params.numPlaced[kIvfFewPlaced], isFew && count > 0 ? 1 : 0);
    const uint32_t behind =
            placeFor(&params.numPlaced[kIvfManyPlaced], isFew ? 0 : 1);
    if (count > 0) {
        params.groupBegins[group] = begin;
        IvfGroup one;
        one.list = listOfGroup(params, group);
        one.vectors = lists.vectors[one.list];
        one.first = (group - params.firstGroups[one.list]) * kListGroup;
        one.last = listLength(lists, one.list);
        one.begin = begin;
        one.count = count;
        one.unused = 0;
        params.groups[isFew ? before : params.mostGroups - 1 - behind] = one;
    }
}

__device__ __forceinline__ bool isPacked(const IvfRescoreParams& params) {
    return params.takesAll && params.search.firstFound;
}

/// Numbers that candidates have, or would have.
BITS_HOST_DEVICE uint64_t numNumbers(const IvfRescoreParams& params) {
    return params.takesAll && params.search.firstFound
            ? params.numTaken
            : uint64_t(params.search.rows) * params.candidates;
}

/// A candidate's row, and where it is chosen, or found where all are taken; -1:
/// there is none, or it is not among the k nearest: with the greatest width of
/// the row the first k are nearer than its lower bound.
struct Candidate {
    uint32_t row = 0;
    int32_t chosen = -1;

    /// rows: of packed ones.
    __device__ Candidate(
            const IvfRescoreParams& params,
            uint64_t number,
            const float* rows) {
        if (number >= numNumbers(params)) {
            return;
        }
        if (isPacked(params)) {
            row = __float_as_uint(rows[number]);
            chosen = int32_t(number);
            return;
        }
        row = uint32_t(number / params.candidates);
        const int i = int(number % params.candidates);
        if (params.takesAll) {
            chosen = uint32_t(i) < params.search.numFound[row] ? i : -1;
            return;
        }
        const int64_t first = int64_t(row) * (params.candidates + 1);
        chosen = params.chosen[first + i];
        const float* bounds = params.lowerBounds + first;
        const float width = __uint_as_float(params.search.widths[row]);
        if (bounds[i] > __fadd_ru(bounds[params.search.k - 1], width)) {
            chosen = -1;
        }
    }
};

__device__ __forceinline__ uint32_t
groupOf(const IvfRescoreParams& params, uint64_t place) {
    return params.firstGroups[place >> 32] + uint32_t(place) / kListGroup;
}

/// A thread a candidate: its place, how many a group has, and which of them it
/// is, in any order, which no result shows.
__global__ __launch_bounds__(kThreads) void countCandidatesKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint64_t number = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
    const Candidate candidate(params, number, search.foundKeys);
    if (candidate.chosen >= 0) {
        const int64_t first =
                isPacked(params) ? 0 : int64_t(candidate.row) * search.room;
        const uint64_t place = search.isLower
                ? placeOfColumn(
                          search, candidate.row, uint32_t(candidate.chosen))
                : search.found[first + candidate.chosen];
        if (isPacked(params)) {
            // What was found is overwritten before it is asked for again.
            params.distances[number] = search.foundKeys[number];
        }
        params.places[number] = place;
        params.ranks[number] =
                atomicAdd(&params.groupCounts[groupOf(params, place)], 1u);
    } else if (number < numNumbers(params)) {
        params.places[number] = 0;
        params.distances[number] = NAN;
    }
}

/// A thread a candidate.
__global__ __launch_bounds__(kThreads) void placeCandidatesKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint64_t number = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
    const Candidate candidate(params, number, params.distances);
    if (candidate.chosen >= 0) {
        const uint64_t place = params.places[number];
        const uint32_t at = params.groupBegins[groupOf(params, place)] +
                params.ranks[number];
        params.grouped[at] = {
                uint32_t(number),
                candidate.row * kListGroup + uint32_t(place) % kListGroup};
    }
}

/// Four components of a row of queries, in the order that their distances need.
__device__ __forceinline__ void arrange(
        const IvfRescoreParams& params,
        uint64_t row,
        int place) {
    const IvfParams& search = params.search;
    const float* query = search.queries + row * search.d;
    const auto value = [&](int i) {
        const int c = PartOfQuery::componentAt(place + i);
        return c < search.d ? query[c] : 0.0f;
    };
    *reinterpret_cast<float4*>(
            params.arranged + row * params.arrangedDims + place) = {
            value(0), value(1), value(2), value(3)};
}

/// A warp a row: places what was chosen, and arranges the query. kByLists:
/// candidates have their pairs in the place of the row.
template <bool kByLists>
__global__ __launch_bounds__(kThreads) void placeChosenKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint32_t row =
            blockIdx.x * (kThreads / kWarpSize) + threadIdx.x / kWarpSize;
    const int lane = threadIdx.x % kWarpSize;
    if (row >= params.search.rows) {
        return;
    }
    const uint32_t most = uint32_t(params.candidates);
    // Each waits for three reads one after another: some wait together.
    constexpr int kAtOnce = 4;
    for (uint32_t first = lane; first < most; first += kAtOnce * kWarpSize) {
        uint64_t places[kAtOnce];
        uint32_t ats[kAtOnce];
        uint32_t rows[kAtOnce];
        const auto numberOf = [&](int j) {
            return row * most + first + j * kWarpSize;
        };
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            places[j] = first + j * kWarpSize < most
                    ? params.places[numberOf(j)]
                    : kIvfNoPlace;
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            if (places[j] != kIvfNoPlace) {
                ats[j] = params.groupBegins[groupOf(params, places[j])] +
                        params.ranks[numberOf(j)];
                rows[j] = kByLists
                        ? uint32_t(params.chosen[uint64_t(numberOf(j)) + row])
                        : row;
            }
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            if (places[j] != kIvfNoPlace) {
                params.grouped[ats[j]] = {
                        numberOf(j),
                        rows[j] * kListGroup +
                                uint32_t(places[j]) % kListGroup};
            }
        }
    }
    for (int place = 4 * lane; place < params.arrangedDims;
         place += 4 * kWarpSize) {
        arrange(params, row, place);
    }
}

/// A thread four components.
__global__ __launch_bounds__(kThreads) void arrangeQueriesKernel(
        const __grid_constant__ IvfRescoreParams params) {
    allowNext();
    waitForPrevious();
    const uint64_t at = 4 * (uint64_t(blockIdx.x) * kThreads + threadIdx.x);
    const uint64_t row = at / params.arrangedDims;
    if (row < params.search.rows) {
        arrange(params, row, int(at % params.arrangedDims));
    }
}

unsigned blocksFor(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

void launchPlaceGroups(
        const IvfRescoreParams& params,
        bool byLists,
        cudaStream_t stream) {
    launchAfterPrevious(
            byLists ? placeGroupsKernel<false> : placeGroupsKernel<true>,
            dim3(blocksFor(params.mostGroups)),
            kThreads,
            0,
            stream,
            params);
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
    const unsigned blocks = blocksFor(numNumbers(params));
    BITS_CUDA_CHECK(cudaMemsetAsync(
            params.groupCounts,
            0,
            size_t(params.mostGroups) * sizeof(uint32_t),
            stream));
    BITS_CUDA_CHECK(cudaMemsetAsync(
            params.numPlaced, 0, kIvfPlaced * sizeof(uint32_t), stream));
    launchAfterPrevious(
            countCandidatesKernel, dim3(blocks), kThreads, 0, stream, params);
    launchPlaceGroups(params, false, stream);
    launchAfterPrevious(
            placeCandidatesKernel, dim3(blocks), kThreads, 0, stream, params);
    launchAfterPrevious(
            arrangeQueriesKernel,
            dim3(blocksFor(
                    uint64_t(params.search.rows) * params.arrangedDims / 4)),
            kThreads,
            0,
            stream,
            params);
}

void launchIvfChosen(
        const IvfRescoreParams& params,
        bool byLists,
        cudaStream_t stream) {
    launchPlaceGroups(params, byLists, stream);
    launchAfterPrevious(
            byLists ? placeChosenKernel<true> : placeChosenKernel<false>,
            dim3(blocksFor(uint64_t(params.search.rows) * kWarpSize)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
