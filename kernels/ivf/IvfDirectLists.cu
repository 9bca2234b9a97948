// Keys of the centroids of lists: the canonical distances of a few queries to
// all of them, eight lanes a pair. And the lists and columns of queries, where
// the scan does not find them, and pairs by list.
//
// Bound by: the wait for the centroids, which come by as many loads at a time
// as a vector of 128 dimensions has.

#include "kernels/canonical/Distance.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfCodebook.cuh"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfLeastAhead.cuh"
#include "kernels/ivf/IvfSortedPairs.cuh"
#include "kernels/ivf/IvfTurnedCodebook.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kPairs = kThreads / kPairLanes; // of a block
constexpr int kAhead = 16;                    // loads in flight
constexpr int kStep = kAhead * kPairLanes;    // components
constexpr int kTogether = 4; // queries of a block, where they are many
constexpr int kMostTogetherDims = 1024; // of these

/// kPairs centroids (x) and kQueries queries (y), which share what is read and
/// widened of a centroid.
template <Metric kMetric, int kQueries>
__global__ __launch_bounds__(kThreads) void centroidsKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kMost = kQueries == 1 ? kMostDirectDims : kMostTogetherDims;
    __shared__ double query[kQueries][kMost];
    // In this order: what comes after may read what was written before.
    waitForPrevious();
    allowNext();
    if (params.arrived && blockIdx.x == 0 && blockIdx.y == 0 &&
        threadIdx.x == 0) {
        *params.arrived = 0;
    }
    const uint32_t firstRow = blockIdx.y * kQueries;
    const uint32_t rows =
            min(params.search.rows - firstRow, uint32_t(kQueries));
    if (params.bounds && blockIdx.x == 0 && threadIdx.x < 2 * rows) {
        params.bounds[2 * firstRow + threadIdx.x] = 0;
    }
    const IvfParams& search = params.search;
    const int d = search.d;
    const uint32_t numLists = uint32_t(search.lists.numLists);
    const uint32_t list = blockIdx.x * kPairs + threadIdx.x / kPairLanes;
    const int lane = threadIdx.x % kPairLanes;
    const bool isThere = list < numLists;
    const float* x = params.centroids + int64_t(isThere ? list : 0) * d;
    float xs[kAhead];
    const auto load = [&](int begin) {
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + lane + i * kPairLanes;
            xs[i] = isThere && c < d ? x[c] : 0.0f;
        }
    };
    load(0);
    if (hasIvfLeastAhead(params)) {
        clearIvfLeastAhead(params, firstRow, rows);
    }
    const float* from = search.queries + int64_t(firstRow) * d;
    const int padded = (d + kStep - 1) / kStep * kStep;
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        for (int c = threadIdx.x; c < padded; c += kThreads) {
            query[q][c] = c < d && q < int(rows)
                    ? double(from[int64_t(q) * d + c])
                    : 0.0;
        }
    }
    __syncthreads();
    double sums[kQueries][Terms::kSums] = {};
    for (int begin = 0; begin < d; begin += kStep) {
        if (begin > 0) {
            load(begin);
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const double x = double(xs[i]);
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                Terms::add(
                        sums[q],
                        x,
                        query[q][begin + lane + i * kPairLanes],
                        canonical::Power{});
            }
        }
    }
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        joinSlots<Terms>(sums[q]);
        if (isThere && lane == 0 && q < int(rows)) {
            params.centroidKeys[int64_t(firstRow + q) * numLists + list] =
                    entryKey(distanceEntry<kMetric>(
                            Terms::finish(sums[q]), list));
        }
    }
}

/// A block a row, of which the last one to end sorts pairs; and some for the
/// codebook.
__global__ __launch_bounds__(IvfDirectLists::kThreads) void directListsKernel(
        const __grid_constant__ IvfDirectParams params) {
    union SharedStorage {
        IvfDirectLists::SharedStorage lists;
        IvfSortedPairs::SharedStorage pairs;
        IvfCodebook::SharedStorage codebook;
        IvfTurnedCodebook::SharedStorage turned;
    };
    __shared__ SharedStorage shared;
    __shared__ __align__(16)
            uint8_t memory[IvfDirectLists::Tables::bytes(kMostDirectProbes)];
    __shared__ bool isLast;
    allowNext();
    if (blockIdx.y >= params.search.rows) {
        // While the kernel of the centroids runs, which began when all before
        // had ended.
        if (!params.centroids) {
            waitForPrevious();
        }
        const int block = int(blockIdx.y - params.search.rows);
        if (params.turnedCodebook) {
            IvfTurnedCodebook{shared.turned, params}.run(block);
            return;
        }
        const int dims =
                params.search.d / params.search.lists.decoding.numParts;
        IvfCodebook{shared.codebook, params, dims}.run(block);
        return;
    }
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (params.centroids) {
        IvfDirectLists::prefetch(
                params.search.lists, blockIdx.y, params.search.rows);
    }
    waitForPrevious();
    const IvfDirectLists::Tables tables(memory, params.search.nprobe);
    if (blockIdx.y == 0 && params.search.steps) {
        writeScalarSteps(params.search);
    }
    if (params.bounds && threadIdx.x < 2) {
        params.bounds[2 * blockIdx.y + threadIdx.x] = 0;
    }
    IvfDirectLists{shared.lists, tables, params, blockIdx.y}.find();
    fillIvfRow(
            params,
            blockIdx.y,
            tables.first[params.search.nprobe] * kListGroup,
            0,
            1);
    if (params.arrived) {
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            isLast = atomicAdd(params.arrived, 1u) == params.search.rows - 1;
        }
        __syncthreads();
        if (isLast) {
            __threadfence();
            IvfSortedPairs{shared.pairs, params}.run();
        }
    }
}

} // namespace

void launchIvfCentroids(
        const IvfDirectParams& params,
        Metric metric,
        cudaStream_t stream) {
    static_assert(kMostDirectDims % kStep == 0);
    const uint32_t lists = uint32_t(params.search.lists.numLists);
    // Fewer blocks than that leave multiprocessors without one.
    constexpr uint32_t kManyBlocks = 256;
    const uint32_t across = (lists + kPairs - 1) / kPairs;
    const uint32_t down = (params.search.rows + kTogether - 1) / kTogether;
    const bool together = params.search.d <= kMostTogetherDims &&
            params.search.rows > 1 && across * down >= kManyBlocks;
    const auto of = [&]<int kQueries>() {
        return metric == Metric::L2
                ? centroidsKernel<Metric::L2, kQueries>
                : centroidsKernel<Metric::InnerProduct, kQueries>;
    };
    launchTogether(
            together ? of.template operator()<kTogether>()
                     : of.template operator()<1>(),
            dim3(across, together ? down : params.search.rows),
            kThreads,
            0,
            stream,
            params);
}

void launchIvfDirectLists(
        const IvfDirectParams& params,
        bool makesCodebook,
        cudaStream_t stream) {
    const auto parts = uint32_t(params.search.lists.decoding.numParts);
    const uint32_t ofCodebook = !makesCodebook ? 0
            : params.turnedCodebook            ? parts
            : params.codebook
            ? (parts + kIvfCodebookParts - 1) / kIvfCodebookParts
            : 0;
    launchAfterPrevious(
            directListsKernel,
            dim3(1, params.search.rows + ofCodebook),
            IvfDirectLists::kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
