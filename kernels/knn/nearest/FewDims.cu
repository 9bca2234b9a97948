#include <algorithm>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Error.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/knn/certified/CertifiedLaunch.cuh"
#include "kernels/knn/nearest/FewDimsAgain.cuh"

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
    constexpr uint32_t kSlots = kQueries * kFewDimsThreads;
    const uint32_t tiles = (params.search.rows + kSlots - 1) / kSlots;
    const uint32_t groups =
            (params.strips + params.stripsOfBlock - 1) / params.stripsOfBlock;
    launchAfterPrevious(
            fewDimsScanKernel<kMetric, kDims, kQueries>,
            tiles * groups,
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
    const uint32_t tile = fewDimsTile(rows, params.strips);
    launchAfterPrevious(
            fewDimsExactKernel<kMetric, kDims>,
            (rows + tile - 1) / tile * params.strips,
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

template <Metric kMetric, int kDims>
void launchAgainOfDims(
        const FewDimsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const void* kernel =
            reinterpret_cast<const void*>(&fewDimsAgainKernel<kMetric, kDims>);
    // A plan may have been made for another device.
    const int most = deviceTraits().multiprocessors;
    const unsigned blocks = unsigned(
            std::min(multiprocessors, most) *
            blocksPerMultiprocessor(kernel, kFewDimsThreads, 0));
    KernelLaunch(kernel, dim3(blocks), kFewDimsThreads, 0, stream)
            .cooperative()
            .early()
            .enqueue(params);
}

void check(Metric metric, int d, int most) {
    BITS_THROW_IF_NOT_FMT(
            d >= 1 && d <= most, "d = %d is outside 1..%d", d, most);
    BITS_THROW_IF_NOT_FMT(
            metric == Metric::L2 || metric == Metric::InnerProduct,
            "metric = %d: L2 and inner product have this way alone",
            int(metric));
}

/// launch.operator()<kMetric, kDims>() for the components that a kernel has, of
/// up to kMost.
template <int kMost, class Launch>
void withShape(Metric metric, int d, Launch launch) {
    check(metric, d, kMost);
    const auto ofMetric = [&]<Metric kMetric>() {
        if constexpr (kMost > kMostFewDims) {
            if (d > kMostFewDims) {
                return d <= 12 ? launch.template operator()<kMetric, 12>()
                               : launch.template operator()<kMetric, 16>();
            }
        }
        d <= 2           ? launch.template operator()<kMetric, 2>()
                : d <= 4 ? launch.template operator()<kMetric, 4>()
                : d <= 6 ? launch.template operator()<kMetric, 6>()
                         : launch.template operator()<kMetric, 8>();
    };
    metric == Metric::L2 ? ofMetric.template operator()<Metric::L2>()
                         : ofMetric.template operator()<Metric::InnerProduct>();
}

} // namespace

void launchFewDims(
        Metric metric,
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream) {
    withShape<kMostFewDims>(
            metric, params.search.d, [&]<Metric kMetric, int kDims>() {
                launchOfDims<kMetric, kDims>(params, queriesOfThread, stream);
            });
}

void launchFewDimsAgain(
        Metric metric,
        const FewDimsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    withShape<kMostFewDimsAgain>(
            metric, params.search.d, [&]<Metric kMetric, int kDims>() {
                launchAgainOfDims<kMetric, kDims>(
                        params, multiprocessors, stream);
            });
}

} // namespace faiss_bits
