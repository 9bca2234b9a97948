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
constexpr uint32_t kItems = 4; // columns of a thread, side by side
static_assert(kThreads * kItems == kIvfRangeStep);

/// A block's part of a row of the matrix.
struct Part {
    const IvfRangeParams& params;
    const uint32_t row;
    const uint32_t number;  // of all parts
    const float* distances; // of the row
    uint32_t first;
    uint32_t last;

    __device__ explicit Part(const IvfRangeParams& params)
            : params(params),
              row(blockIdx.x),
              number(row * params.parts + blockIdx.y),
              distances(
                      params.search.distances +
                      int64_t(row) * params.search.stride),
              first(blockIdx.y * params.partColumns) {
        const uint32_t probes = params.search.nearProbes;
        const uint32_t count =
                params.search.columns[int64_t(row) * (probes + 1) + probes];
        last = min(count, first + params.partColumns);
    }

    /// A bit for each of the columns c to c + kItems - 1 that is inside. NaN is
    /// in no range. Rows begin on 32 bytes.
    __device__ uint32_t load(uint32_t c, float (&values)[kItems]) const {
        uint32_t inside = 0;
        if (c < last) {
            const float4 four = *reinterpret_cast<const float4*>(distances + c);
            values[0] = four.x;
            values[1] = four.y;
            values[2] = four.z;
            values[3] = four.w;
#pragma unroll
            for (uint32_t i = 0; i < kItems; ++i) {
                const bool isInside = params.largest
                        ? values[i] > params.radius
                        : values[i] < params.radius;
                inside |= uint32_t(isInside && c + i < last) << i;
            }
        }
        return inside;
    }
};

__global__ __launch_bounds__(kThreads) void rangeCountsKernel(
        const __grid_constant__ IvfRangeParams params) {
    using Reduce = cub::BlockReduce<uint32_t, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    allowNext();
    waitForPrevious();
    const Part part(params);
    uint32_t count = 0;
    float values[kItems];
    for (uint32_t c = part.first + threadIdx.x * kItems; c < part.last;
         c += kIvfRangeStep) {
        count += __popc(part.load(c, values));
    }
    const uint32_t sum = Reduce(storage).Sum(count);
    if (threadIdx.x == 0) {
        params.counts[part.number] = sum;
    }
}

__global__ __launch_bounds__(kThreads) void rangeResultsKernel(
        const __grid_constant__ IvfRangeParams params) {
    __shared__ uint32_t sums[kThreads / kWarpSize];
    __shared__ uint32_t found;
    allowNext();
    waitForPrevious();
    const Part part(params);
    if (params.counts[part.number] == 0) {
        return;
    }
    idx_t at = params.firsts[part.number];
    for (uint32_t first = part.first; first < part.last;
         first += kIvfRangeStep) {
        const uint32_t c = first + threadIdx.x * kItems;
        float values[kItems];
        const uint32_t inside = part.load(c, values);
        const uint32_t own = __popc(inside);
        const uint32_t before = sumOfThreadsBefore<kThreads>(own, sums);
        idx_t to = at + before;
#pragma unroll
        for (uint32_t i = 0; i < kItems; ++i) {
            if (inside >> i & 1) {
                params.outDistances[to] = values[i];
                params.outIds[to] = idOfColumn(params.search, part.row, c + i);
                ++to;
            }
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
            dim3(params.search.rows, params.parts),
            kThreads,
            0,
            stream,
            params);
}

void launchIvfRangeResults(const IvfRangeParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            rangeResultsKernel,
            dim3(params.search.rows, params.parts),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
