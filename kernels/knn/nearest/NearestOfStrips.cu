#include "kernels/knn/nearest/NearestOfStrips.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/knn/nearest/NearestOfRow.cuh"

namespace faiss_bits {

namespace {

/// Of blocks whose rows have kLanes each: small ones, where rows are few, are
/// on more multiprocessors.
template <int kLanes>
constexpr int kThreads = kLanes == kWarpSize ? 64 : 256;
/// Rows up to which each has a warp: as many as are at work at once.
constexpr uint32_t kMostWarpRows = 4096;

template <Metric kMetric, int kLanes>
__global__ __launch_bounds__(kThreads<kLanes>) void nearestOfStripsKernel(
        const __grid_constant__ NearestParams params) {
    __shared__ unsigned scored;
    if (threadIdx.x == 0) {
        scored = 0;
    }
    __syncthreads();
    allowNext();
    waitForPrevious();
    constexpr uint32_t kRows = kThreads<kLanes> / kLanes;
    const uint32_t row = blockIdx.x * kRows + threadIdx.x / kLanes;
    NearestOfRow<kMetric, kLanes> ofRow(params, row);
    const bool isUnsure = ofRow.scoreKept();
    if (params.search.n <= kMostAllVectors ||
        params.search.n * params.search.d <= kMostAllComponents) {
        // As many in each block are searched again by tiles.
        const int unsure =
                __syncthreads_count(isUnsure && threadIdx.x % kLanes == 0);
        if (unsure > 0 &&
            unsure * params.search.n <= kMostAllDistances) { // of the block
            ofRow.scoreAll(isUnsure);
        }
    }
    const uint32_t count = ofRow.write();
    if (!params.search.numRescored) {
        return;
    }
    if (count > 0) {
        atomicAdd(&scored, count);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(params.search.numRescored, (unsigned long long)scored);
    }
}

template <Metric kMetric, int kLanes>
void launchBy(const NearestParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kThreads<kLanes> / kLanes;
    launchAfterPrevious(
            nearestOfStripsKernel<kMetric, kLanes>,
            (params.search.rows + kRows - 1) / kRows,
            kThreads<kLanes>,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launch(const NearestParams& params, cudaStream_t stream) {
    using OfFew = NearestOfRow<kMetric, kPairLanes>;
    const bool areMany =
            params.tile && params.nearest.perRow > OfFew::kMostTileStrips;
    if (params.search.rows <= kMostWarpRows || areMany) {
        launchBy<kMetric, kWarpSize>(params, stream);
    } else {
        launchBy<kMetric, kPairLanes>(params, stream);
    }
}

} // namespace

void launchNearestOfStrips(
        Metric metric,
        const NearestParams& params,
        cudaStream_t stream) {
    switch (metric) {
        case Metric::L2:
            return launch<Metric::L2>(params, stream);
        case Metric::InnerProduct:
            return launch<Metric::InnerProduct>(params, stream);
        case Metric::Cosine:
            return launch<Metric::Cosine>(params, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no search of this kind", int(metric)));
    }
}

} // namespace faiss_bits
