#include "kernels/common/Error.h"
#include "kernels/knn/nearest/FewDimsExact.cuh"
#include "kernels/knn/nearest/FewDimsScan.cuh"

namespace faiss_bits {

namespace {

constexpr int kRowThreads = 256;

/// No limit and no vector is known.
__global__ __launch_bounds__(kRowThreads) void fewDimsBeginKernel(
        const __grid_constant__ FewDimsParams params) {
    allowNext();
    waitForPrevious();
    const uint32_t row = blockIdx.x * kRowThreads + threadIdx.x;
    if (row < params.search.rows) {
        params.limits[row] = kNanKey;
        params.best[row] = kNoEntry;
    }
}

template <Metric kMetric>
__global__ __launch_bounds__(kRowThreads) void fewDimsResultsKernel(
        const __grid_constant__ FewDimsParams params) {
    allowNext();
    waitForPrevious();
    const uint32_t row = blockIdx.x * kRowThreads + threadIdx.x;
    if (row < params.search.rows) {
        writePlace<kMetric>(params.search, row, 0, params.best[row]);
    }
}

template <Metric kMetric, int kDims, int kQueries>
void launchScan(const FewDimsParams& params, cudaStream_t stream) {
    constexpr uint32_t kRows = kQueries * kFewDimsThreads;
    const uint32_t tiles = (params.search.rows + kRows - 1) / kRows;
    const uint32_t groups =
            (params.strips + params.stripsOfBlock - 1) / params.stripsOfBlock;
    launchAfterPrevious(
            fewDimsScanKernel<kMetric, kDims, kQueries>,
            dim3(tiles, groups),
            kFewDimsThreads,
            0,
            stream,
            params);
}

template <Metric kMetric, int kDims>
void launchOfDims(
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream) {
    const uint32_t rows = params.search.rows;
    const unsigned rowBlocks = (rows + kRowThreads - 1) / kRowThreads;
    launchAfterPrevious(
            fewDimsBeginKernel, rowBlocks, kRowThreads, 0, stream, params);
    const auto scan = queriesOfThread == kMostFewDimsQueries
            ? launchScan<kMetric, kDims, kMostFewDimsQueries>
            : launchScan<kMetric, kDims, kMostFewDimsQueries / 2>;
    scan(params, stream);
    launchAfterPrevious(
            fewDimsExactKernel<kMetric, kDims>,
            dim3((rows + kFewDimsTile - 1) / kFewDimsTile, params.strips),
            kFewDimsThreads,
            0,
            stream,
            params);
    launchAfterPrevious(
            fewDimsResultsKernel<kMetric>,
            rowBlocks,
            kRowThreads,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchOfMetric(
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream) {
    const auto launch = params.search.d <= 2 ? launchOfDims<kMetric, 2>
            : params.search.d <= 4           ? launchOfDims<kMetric, 4>
            : params.search.d <= 6           ? launchOfDims<kMetric, 6>
                                             : launchOfDims<kMetric, 8>;
    launch(params, queriesOfThread, stream);
}

} // namespace

void launchFewDims(
        Metric metric,
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            params.search.d >= 1 && params.search.d <= kMostFewDims,
            "d = %d is outside 1..%d",
            params.search.d,
            kMostFewDims);
    switch (metric) {
        case Metric::L2:
            return launchOfMetric<Metric::L2>(params, queriesOfThread, stream);
        case Metric::InnerProduct:
            return launchOfMetric<Metric::InnerProduct>(
                    params, queriesOfThread, stream);
        default:
            throw Error("metric: L2 and inner product have this way alone");
    }
}

} // namespace faiss_bits
