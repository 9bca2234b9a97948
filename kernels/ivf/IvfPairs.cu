// Columns of the rows of an IVF search, and its pairs by list.

#include <cub/block/block_scan.cuh>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/LaneSums.cuh"
#include "kernels/ivf/IvfPairs.h"
#include "kernels/ivf/ListScan.cuh"
#include "kernels/ivf/ScalarSteps.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// Of a list, as a multiple of columnStep.
__device__ __forceinline__ uint32_t
columnsOfProbe(const IvfParams& params, uint32_t row, uint32_t probe) {
    uint32_t length = 0;
    const uint32_t list = probedList(params, row, probe);
    if (list < params.lists.numLists) {
        length = vectorsOfColumns(params, listLength(params.lists, list));
        length += params.columnStep - 1;
        length -= length % params.columnStep;
    }
    return length;
}

/// By one thread a row: nothing is found yet. A launch of its own would wait
/// for the host, and everything behind it.
__device__ __forceinline__ void clearFound(
        const IvfParams& params,
        uint32_t row) {
    if (params.numFound) {
        params.numFound[row] = 0;
        params.widths[row] = 0;
    }
}

/// A warp a row with no more near probes than lanes.
__global__ __launch_bounds__(kThreads) void fewColumnsKernel(
        const __grid_constant__ IvfParams params) {
    allowNext();
    waitForPrevious();
    if (blockIdx.x == 0 && params.steps) {
        writeScalarSteps(params);
    }
    const uint32_t row =
            blockIdx.x * (kThreads / kWarpSize) + threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    if (row >= params.rows) {
        return;
    }
    const uint32_t length =
            lane < params.nearProbes ? columnsOfProbe(params, row, lane) : 0;
    if (lane < params.lastProbe && length > 0) {
        params.pairRanks[row * params.lastProbe + lane] =
                atomicAdd(&params.counts[probedList(params, row, lane)], 1u);
    }
    const uint32_t until = sumUpToLane(length);
    const uint32_t total = __shfl_sync(kFullWarp, until, kWarpSize - 1);
    uint32_t* columns = params.columns + int64_t(row) * (params.nearProbes + 1);
    if (lane < params.nearProbes) {
        columns[lane] = until - length;
    }
    if (lane == 0) {
        columns[params.nearProbes] = total;
        clearFound(params, row);
    }
    float* distances = params.distances + int64_t(row) * params.stride;
#pragma unroll 4
    for (int64_t c = int64_t(total / params.boundVectors) + lane;
         c < params.stride;
         c += kWarpSize) {
        distances[c] = NAN;
    }
}

/// A block a row.
__global__ __launch_bounds__(kThreads) void columnsKernel(
        const __grid_constant__ IvfParams params) {
    using Scan = cub::BlockScan<uint32_t, kThreads>;
    __shared__ typename Scan::TempStorage storage;
    allowNext();
    waitForPrevious();
    const uint32_t row = blockIdx.x;
    if (row == 0 && params.steps) {
        writeScalarSteps(params);
    }
    uint32_t* columns = params.columns + int64_t(row) * (params.nearProbes + 1);
    uint32_t total = 0;
    for (uint32_t first = 0; first < params.nearProbes; first += kThreads) {
        const uint32_t probe = first + threadIdx.x;
        const uint32_t length = probe < params.nearProbes
                ? columnsOfProbe(params, row, probe)
                : 0;
        uint32_t before = 0;
        uint32_t sum = 0;
        Scan(storage).ExclusiveSum(length, before, sum);
        if (probe < params.nearProbes) {
            columns[probe] = total + before;
        }
        total += sum;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        columns[params.nearProbes] = total;
        clearFound(params, row);
    }
    float* distances = params.distances + int64_t(row) * params.stride;
    for (int64_t c = int64_t(total / params.boundVectors) + threadIdx.x;
         c < params.stride;
         c += kThreads) {
        distances[c] = NAN;
    }
}

struct PairsParams {
    IvfParams search;
    int tileQueries = 0;
    int tileVectors = 0;
    IvfBegin begin;
};

/// A pair's row and list, of the probes that are asked for.
struct Pair {
    uint32_t row;
    uint32_t probe;
    uint32_t list; // numLists: there is no such pair

    __device__ Pair(const IvfParams& search, uint32_t number) {
        row = number / search.lastProbe;
        probe = number % search.lastProbe;
        list = row < search.rows ? probedList(search, row, probe)
                                 : uint32_t(search.lists.numLists);
        if (list < search.lists.numLists &&
            listLength(search.lists, list) == 0) {
            list = uint32_t(search.lists.numLists);
        }
    }
};

/// A thread a pair: how many a list has, and which of them it is. They are in
/// any order, which no result shows: each has its own part of the matrix.
__global__ __launch_bounds__(kThreads) void countPairsKernel(
        const __grid_constant__ PairsParams params) {
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint32_t number = blockIdx.x * kThreads + threadIdx.x;
    const Pair pair(search, number);
    if (pair.list < search.lists.numLists) {
        search.pairRanks[number] = atomicAdd(&search.counts[pair.list], 1u);
    }
}

/// The same where many pairs meet in few lists: a block counts those of its own
/// pairs in shared memory, and asks once for the ranks of each list, so that
/// fewer atomic operations go to the same addresses.
constexpr uint32_t kManyPairsThreads = 512;
constexpr uint32_t kPairsOfThread = 16;
constexpr uint32_t kPairsOfBlock = kManyPairsThreads * kPairsOfThread;
constexpr uint32_t kMostCountedLists = 4096;

bool countsInBlocks(const IvfParams& search) {
    constexpr uint32_t kFewPairs = 1 << 17;
    constexpr uint32_t kPairsOfList = 128;
    const uint64_t pairs = uint64_t(search.rows) * search.lastProbe;
    const uint64_t lists = uint64_t(search.lists.numLists);
    return pairs >= kFewPairs && lists <= kMostCountedLists &&
            pairs >= kPairsOfList * lists;
}

__global__ __launch_bounds__(kManyPairsThreads) void countManyPairsKernel(
        const __grid_constant__ PairsParams params) {
    __shared__ uint32_t counts[kMostCountedLists]; // then the first ranks
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint32_t numLists = uint32_t(search.lists.numLists);
    for (uint32_t l = threadIdx.x; l < numLists; l += kManyPairsThreads) {
        counts[l] = 0;
    }
    const uint32_t first = blockIdx.x * kPairsOfBlock + threadIdx.x;
    uint32_t lists[kPairsOfThread];
#pragma unroll
    for (uint32_t i = 0; i < kPairsOfThread; ++i) {
        lists[i] = Pair(search, first + i * kManyPairsThreads).list;
    }
    __syncthreads();
    uint32_t ranks[kPairsOfThread];
#pragma unroll
    for (uint32_t i = 0; i < kPairsOfThread; ++i) {
        ranks[i] = lists[i] < numLists ? atomicAdd(&counts[lists[i]], 1u) : 0;
    }
    __syncthreads();
    for (uint32_t l = threadIdx.x; l < numLists; l += kManyPairsThreads) {
        const uint32_t count = counts[l];
        if (count > 0) {
            counts[l] = atomicAdd(&search.counts[l], count);
        }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < kPairsOfThread; ++i) {
        if (lists[i] < numLists) {
            search.pairRanks[first + i * kManyPairsThreads] =
                    counts[lists[i]] + ranks[i];
        }
    }
}

/// Blocks of firstPairsKernel that begin what comes behind estimates.
constexpr unsigned kBeginBlocks = 32;

/// By the blocks behind the first: groups before each list by one, zeros by the
/// others.
__device__ __forceinline__ void beginGroups(
        const IvfBegin& begin,
        const IvfLists& lists) {
    if (blockIdx.x > 1) {
        const uint32_t threads = (gridDim.x - 2) * blockDim.x;
        for (uint32_t i = (blockIdx.x - 2) * blockDim.x + threadIdx.x;
             i < begin.numZeros;
             i += threads) {
            begin.zeros[i] = 0;
        }
        return;
    }
    __shared__ ListScan<1>::SharedStorage storage;
    ListScan<1>{storage}.run(
            uint32_t(lists.numLists),
            [&](uint32_t list, uint32_t(&groups)[1]) {
                groups[0] =
                        (listLength(lists, list) + kListGroup - 1) / kListGroup;
            },
            [&](uint32_t list, const uint32_t(&before)[1]) {
                begin.firstGroups[list] = before[0];
            });
}

/// Sums of the lists before: pairs, and tiles. One block, and those of
/// beginGroups() where there is something to begin: a launch less, and no time.
__global__ __launch_bounds__(ListScan<2>::kThreads) void firstPairsKernel(
        const __grid_constant__ PairsParams params) {
    __shared__ ListScan<2>::SharedStorage storage;
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    if (blockIdx.x > 0) {
        return beginGroups(params.begin, search.lists);
    }
    if (threadIdx.x == 0 && params.begin.zero) {
        *params.begin.zero = 0;
    }
    const uint32_t numLists = uint32_t(search.lists.numLists);
    ListScan<2>{storage}.run(
            numLists,
            [&](uint32_t list, uint32_t(&numbers)[2]) {
                numbers[0] = search.counts[list];
                const uint32_t down = (numbers[0] + params.tileQueries - 1) /
                        params.tileQueries;
                numbers[1] = down == 0 ? 0
                                       : down *
                                ((vectorsOfColumns(
                                          search,
                                          listLength(search.lists, list)) +
                                  params.tileVectors - 1) /
                                 params.tileVectors);
            },
            [&](uint32_t list, const uint32_t(&before)[2]) {
                if (list < numLists) {
                    search.firstPairs[list] = before[0];
                }
                search.firstTiles[list] = before[1];
            });
}

/// A thread a pair.
__global__ __launch_bounds__(kThreads) void scatterPairsKernel(
        const __grid_constant__ PairsParams params) {
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint32_t number = blockIdx.x * kThreads + threadIdx.x;
    const Pair pair(search, number);
    if (pair.list == search.lists.numLists) {
        return;
    }
    const uint32_t at = search.firstPairs[pair.list] + search.pairRanks[number];
    search.pairRows[at] = pair.row;
    if (pair.probe < search.nearProbes) {
        search.pairColumns[at] =
                search.columns
                        [int64_t(pair.row) * (search.nearProbes + 1) +
                         pair.probe];
    }
}

void clear(uint32_t* counts, size_t count, cudaStream_t stream) {
    BITS_CUDA_CHECK(
            cudaMemsetAsync(counts, 0, count * sizeof(uint32_t), stream));
}

} // namespace

void launchIvfColumns(const IvfParams& params, cudaStream_t stream) {
    constexpr uint32_t kRows = kThreads / kWarpSize;
    const bool isFew = params.nearProbes <= kWarpSize;
    launchAfterPrevious(
            isFew ? fewColumnsKernel : columnsKernel,
            dim3(isFew ? (params.rows + kRows - 1) / kRows : params.rows),
            kThreads,
            0,
            stream,
            params);
}

bool areIvfPairsCounted(const IvfParams& search) {
    return search.lastProbe == search.nearProbes &&
            search.nearProbes <= kWarpSize && !countsInBlocks(search);
}

void clearIvfCounts(const IvfParams& search, cudaStream_t stream) {
    clear(search.counts, size_t(search.lists.numLists) + 1, stream);
}

void launchIvfPairs(
        const IvfParams& search,
        int tileQueries,
        int tileVectors,
        cudaStream_t stream) {
    clear(search.counts, size_t(search.lists.numLists), stream);
    launchIvfPairs(search, tileQueries, tileVectors, false, {}, stream);
}

void launchIvfPairs(
        const IvfParams& search,
        int tileQueries,
        int tileVectors,
        bool areCounted,
        const IvfBegin& begin,
        cudaStream_t stream) {
    PairsParams params;
    params.search = search;
    params.tileQueries = tileQueries;
    params.tileVectors = tileVectors;
    params.begin = begin;
    const uint32_t pairs = search.rows * search.lastProbe;
    const dim3 blocks((pairs + kThreads - 1) / kThreads);
    if (areCounted) {
        // By the kernel of columns.
    } else if (countsInBlocks(search)) {
        launchAfterPrevious(
                countManyPairsKernel,
                dim3((pairs + kPairsOfBlock - 1) / kPairsOfBlock),
                kManyPairsThreads,
                0,
                stream,
                params);
    } else {
        launchAfterPrevious(
                countPairsKernel, blocks, kThreads, 0, stream, params);
    }
    launchAfterPrevious(
            firstPairsKernel,
            dim3(begin.firstGroups ? 2 + kBeginBlocks : 1),
            ListScan<2>::kThreads,
            0,
            stream,
            params);
    launchAfterPrevious(
            scatterPairsKernel, blocks, kThreads, 0, stream, params);
}

} // namespace faiss_bits
