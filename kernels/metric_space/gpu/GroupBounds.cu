// What is made of the vectors before the first search.

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricGroups.h"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr int kTile = 32;

__global__ void transposeKernel(
        const float* in,
        idx_t rows,
        int columns,
        float* out) {
    __shared__ float tile[kTile][kTile + 1];
    const idx_t row = idx_t(blockIdx.x) * kTile;
    const int column = blockIdx.y * kTile;
    for (int i = threadIdx.y; i < kTile; i += blockDim.y) {
        const int c = column + threadIdx.x;
        if (row + i < rows && c < columns) {
            tile[i][threadIdx.x] = in[(row + i) * columns + c];
        }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += blockDim.y) {
        const idx_t r = row + threadIdx.x;
        if (r < rows && column + i < columns) {
            out[(column + i) * rows + r] = tile[threadIdx.x][i];
        }
    }
}

template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads) rowDistancesKernel(
        MetricGroups groups,
        const float* to,
        bool forTable,
        float* out) {
    forRowDistances<kMetric>(
            uint32_t(groups.n),
            groups.d,
            to,
            [&](uint32_t i) { return groups.vectors + int64_t(i) * groups.d; },
            [&](uint32_t i, float distance) {
                out[i] = forTable ? canonical::tableDistance(kMetric, distance)
                                  : distance;
            });
}

/// A warp a group.
template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads) groupBoundsKernel(
        MetricGroups groups,
        const float* distances,
        double* leasts,
        double* mosts) {
    const uint32_t group = (blockIdx.x * kRowThreads + threadIdx.x) / kWarpSize;
    if (group >= groups.numBounded) {
        return;
    }
    float nearest = __int_as_float(0x7f800000);
    float farthest = 0;
    for (uint32_t i = groups.firsts[group] + threadIdx.x % kWarpSize;
         i < groups.firsts[group + 1];
         i += kWarpSize) {
        nearest = fminf(nearest, distances[i]);
        farthest = fmaxf(farthest, distances[i]);
    }
    // Their bits are ordered as they are, since none is negative.
    nearest = __uint_as_float(
            __reduce_min_sync(kFullWarp, __float_as_uint(nearest)));
    farthest = __uint_as_float(
            __reduce_max_sync(kFullWarp, __float_as_uint(farthest)));
    if (threadIdx.x % kWarpSize == 0) {
        leasts[group] = canonical::leastTrue(kMetric, nearest);
        mosts[group] = canonical::mostTrue(kMetric, farthest);
    }
}

} // namespace

void runTranspose(
        const float* in,
        idx_t rows,
        int columns,
        float* out,
        cudaStream_t stream) {
    if (rows == 0) {
        return;
    }
    const dim3 blocks(
            unsigned((rows + kTile - 1) / kTile),
            unsigned((columns + kTile - 1) / kTile));
    transposeKernel<<<blocks, dim3(kTile, 8), 0, stream>>>(
            in, rows, columns, out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runRowDistances(
        const MetricGroups& groups,
        const float* to,
        bool forTable,
        float* out,
        cudaStream_t stream) {
    if (groups.n == 0) {
        return;
    }
    withMetric(groups.metric, [&](auto metric) {
        rowDistancesKernel<metric()>
                <<<rowBlocks(groups.n, groups.d), kRowThreads, 0, stream>>>(
                        groups, to, forTable, out);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runGroupBounds(
        const MetricGroups& groups,
        const float* distances,
        uint32_t pivot,
        double* leasts,
        double* mosts,
        cudaStream_t stream) {
    if (groups.numBounded == 0) {
        return;
    }
    constexpr unsigned kGroups = kRowThreads / kWarpSize;
    const size_t row = size_t(pivot) * groups.numBounded;
    withMetric(groups.metric, [&](auto metric) {
        groupBoundsKernel<metric()>
                <<<(groups.numBounded + kGroups - 1) / kGroups,
                   kRowThreads,
                   0,
                   stream>>>(groups, distances, leasts + row, mosts + row);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::metric_space
