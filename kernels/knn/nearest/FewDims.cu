#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/FlaggedRows.cuh"
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
    const uint32_t slots = slotsOf(params);
    for (uint32_t slot = blockIdx.x * kRowThreads + threadIdx.x; slot < slots;
         slot += gridDim.x * kRowThreads) {
        const uint32_t row = rowOfSlot(params, slot);
        writePlace<kMetric>(params.search, row, 0, params.best[slot]);
    }
}

constexpr int kListThreads = 1024;

/// The rows of which a flag is set, and for none of these a limit or a vector.
/// One block: most often there are none, and nothing is to be cleared before.
__global__ __launch_bounds__(kListThreads) void fewDimsFlaggedKernel(
        const __grid_constant__ FewDimsParams params) {
    using Flagged = FlaggedRows<kListThreads>;
    __shared__ typename Flagged::SharedStorage shared;
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    uint32_t next = 0;
    const uint32_t count = Flagged{shared, search.flags, search.rows}.take(
            next, search.rows, params.flagged);
    for (uint32_t slot = threadIdx.x; slot < count; slot += kListThreads) {
        params.limits[slot] = kNanKey;
        params.best[slot] = kNoEntry;
    }
    if (threadIdx.x == 0) {
        *params.numFlagged = count;
        if (search.numRepeated && count > 0) {
            atomicAdd(search.numRepeated, (unsigned long long)count);
        }
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

/// Blocks that go on from one part of the work to the next, as there may be
/// hardly any.
template <Metric kMetric, int kDims>
void launchAgainOfDims(
        const FewDimsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const uint32_t rows = params.search.rows;
    launchAfterPrevious(
            fewDimsFlaggedKernel, 1, kListThreads, 0, stream, params);
    const auto blocks = [&](uint32_t slotsOfBlock, uint32_t ofMultiprocessor) {
        return std::min(
                (rows + slotsOfBlock - 1) / slotsOfBlock * params.strips,
                uint32_t(multiprocessors) * ofMultiprocessor);
    };
    launchAfterPrevious(
            fewDimsAgainScanKernel<kMetric, kDims>,
            blocks(kFewDimsThreads, fewDimsBlocks(kDims, kFewDimsAgainQueries)),
            kFewDimsThreads,
            0,
            stream,
            params);
    constexpr uint32_t kExactBlocks = 16;
    launchAfterPrevious(
            fewDimsExactKernel<kMetric, kDims>,
            blocks(kLeastFewDimsTile, kExactBlocks),
            kFewDimsThreads,
            0,
            stream,
            params);
    launchAfterPrevious(
            fewDimsResultsKernel<kMetric>,
            std::min(
                    (rows + kRowThreads - 1) / kRowThreads,
                    uint32_t(multiprocessors)),
            kRowThreads,
            0,
            stream,
            params);
}

using Launch = void (*)(const FewDimsParams&, int, cudaStream_t);

template <Metric kMetric>
Launch launchOfMetric(int d) {
    return d <= 2    ? launchOfDims<kMetric, 2>
            : d <= 4 ? launchOfDims<kMetric, 4>
            : d <= 6 ? launchOfDims<kMetric, 6>
                     : launchOfDims<kMetric, 8>;
}

template <Metric kMetric>
Launch launchAgainOfMetric(int d) {
    return d <= 2    ? launchAgainOfDims<kMetric, 2>
            : d <= 4 ? launchAgainOfDims<kMetric, 4>
            : d <= 6 ? launchAgainOfDims<kMetric, 6>
                     : launchAgainOfDims<kMetric, 8>;
}

void check(Metric metric, int d) {
    BITS_THROW_IF_NOT_FMT(
            d >= 1 && d <= kMostFewDims,
            "d = %d is outside 1..%d",
            d,
            kMostFewDims);
    BITS_THROW_IF_NOT_FMT(
            metric == Metric::L2 || metric == Metric::InnerProduct,
            "metric = %d: L2 and inner product have this way alone",
            int(metric));
}

} // namespace

void launchFewDims(
        Metric metric,
        const FewDimsParams& params,
        int queriesOfThread,
        cudaStream_t stream) {
    const int d = params.search.d;
    check(metric, d);
    const Launch launch = metric == Metric::L2
            ? launchOfMetric<Metric::L2>(d)
            : launchOfMetric<Metric::InnerProduct>(d);
    launch(params, queriesOfThread, stream);
}

void launchFewDimsAgain(
        Metric metric,
        const FewDimsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const int d = params.search.d;
    check(metric, d);
    const Launch launch = metric == Metric::L2
            ? launchAgainOfMetric<Metric::L2>(d)
            : launchAgainOfMetric<Metric::InnerProduct>(d);
    launch(params, multiprocessors, stream);
}

} // namespace faiss_bits
