// Of each row of a matrix of distances what is near enough, in its order.

#include <cub/block/block_reduce.cuh>

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/BlockScan.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfColumns.cuh"
#include "kernels/ivf/IvfRangeParams.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// A row of the matrix.
struct Row {
    const uint32_t* columns;
    const float* distances;
    uint32_t count;

    __device__ Row(const IvfParams& search, uint32_t row)
            : columns(search.columns + int64_t(row) * (search.nearProbes + 1)),
              distances(search.distances + int64_t(row) * search.stride),
              count(columns[search.nearProbes]) {}
};

/// NaN is in no range.
__device__ bool isInside(const IvfRangeParams& params, float distance) {
    return params.largest ? distance > params.radius : distance < params.radius;
}

/// A block a row.
__global__ __launch_bounds__(kThreads) void rangeCountsKernel(
        const __grid_constant__ IvfRangeParams params) {
    using Reduce = cub::BlockReduce<uint32_t, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    allowNext();
    waitForPrevious();
    const Row row(params.search, blockIdx.x);
    uint32_t count = 0;
    for (uint32_t c = threadIdx.x; c < row.count; c += kThreads) {
        count += isInside(params, row.distances[c]);
    }
    const uint32_t sum = Reduce(storage).Sum(count);
    if (threadIdx.x == 0) {
        params.counts[blockIdx.x] = sum;
    }
}

/// A block a row.
__global__ __launch_bounds__(kThreads) void rangeResultsKernel(
        const __grid_constant__ IvfRangeParams params) {
    __shared__ uint32_t sums[kThreads / kWarpSize];
    __shared__ uint32_t found;
    allowNext();
    waitForPrevious();
    if (params.counts[blockIdx.x] == 0) {
        return;
    }
    const Row row(params.search, blockIdx.x);
    idx_t at = params.firsts[blockIdx.x];
    for (uint32_t first = 0; first < row.count; first += kThreads) {
        const uint32_t c = first + threadIdx.x;
        const float distance = c < row.count ? row.distances[c] : float(NAN);
        const uint32_t own = isInside(params, distance);
        const uint32_t before = sumOfThreadsBefore<kThreads>(own, sums);
        if (own) {
            params.outDistances[at + before] = distance;
            params.outIds[at + before] =
                    idOfColumn(params.search, blockIdx.x, c);
        }
        if (threadIdx.x == kThreads - 1) {
            found = before + own;
        }
        __syncthreads();
        at += found;
        __syncthreads();
    }
}

} // namespace

void launchIvfRangeCounts(const IvfRangeParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            rangeCountsKernel,
            dim3(params.search.rows),
            kThreads,
            0,
            stream,
            params);
}

void launchIvfRangeResults(const IvfRangeParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            rangeResultsKernel,
            dim3(params.search.rows),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
