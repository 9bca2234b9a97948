#include "kernels/common/Error.h"
#include "kernels/knn/nearest/FewDimsTopFinish.cuh"
#include "kernels/knn/nearest/FewDimsTopScan.cuh"

namespace faiss_bits {

namespace {

constexpr int kUnitRowThreads = 128;

__global__ __launch_bounds__(kUnitRowThreads) void unitRowsKernel(
        const __grid_constant__ UnitRowSets sets) {
    allowNext();
    waitForPrevious();
    int64_t row = int64_t(blockIdx.x) * kUnitRowThreads + threadIdx.x;
    const bool isVector = row < sets.vectors.n;
    const UnitRowsParams& params = isVector ? sets.vectors : sets.queries;
    row -= isVector ? 0 : sets.vectors.n;
    if (row >= params.n) {
        return;
    }
    double square = 0;
    for (int c = 0; c < params.d; ++c) {
        const double x = componentOf(params.rows, row, c);
        square = fma(x, x, square);
    }
    // Of infinities there is no cosine, as of NaN.
    const double scale = square == 0 ? 0.0
            : square < INFINITY      ? 1 / sqrt(square)
                                     : NAN;
    for (int c = 0; c < params.d; ++c) {
        params.out[row * params.d + c] =
                float(scale * double(componentOf(params.rows, row, c)));
    }
}

/// kRows: of 32 places each.
template <Metric kMetric, int kDims, int kRows = 1>
void launchOfDims(const FewDimsTopParams& params, cudaStream_t stream) {
    // Of rows of length 1 products are cosines.
    constexpr Metric kScanned =
            kMetric == Metric::L2 ? Metric::L2 : Metric::InnerProduct;
    constexpr uint32_t kTile = FewDimsTopScan<kScanned, kDims>::kTile;
    const uint32_t rows = params.search.rows;
    launchAfterPrevious(
            fewDimsTopScanKernel<kScanned, kDims>,
            (rows + kTile - 1) / kTile * params.units,
            kFewDimsTopThreads,
            0,
            stream,
            params);
    launchAfterPrevious(
            fewDimsTopFinishKernel<kMetric, kDims, kRows>,
            (rows + kFewDimsTopWarps - 1) / kFewDimsTopWarps,
            kFewDimsTopWarps * kWarpSize,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchOfMetric(const FewDimsTopParams& params, cudaStream_t stream) {
    const int d = params.search.d;
    BITS_THROW_IF_NOT_FMT(
            d >= 1 && d <= kMostFewDimsOfTop,
            "d = %d is outside 1..%d",
            d,
            kMostFewDimsOfTop);
    const int k = params.search.k;
    BITS_THROW_IF_NOT_FMT(
            k <= mostFewDimsTop(d), "k = %d is above %d", k, mostFewDimsTop(d));
    constexpr int kLongRows = kMostLongTop / kWarpSize;
    if (k > kMostFewDimsTop) {
        const auto launch = d <= 2 ? launchOfDims<kMetric, 2, kLongRows>
                                   : launchOfDims<kMetric, 4, kLongRows>;
        return launch(params, stream);
    }
    const auto launch = d <= 2 ? launchOfDims<kMetric, 2>
            : d <= 4           ? launchOfDims<kMetric, 4>
            : d <= 6           ? launchOfDims<kMetric, 6>
            : d <= 8           ? launchOfDims<kMetric, 8>
            : d <= 12          ? launchOfDims<kMetric, 12>
                               : launchOfDims<kMetric, 16>;
    launch(params, stream);
}

} // namespace

void launchUnitRows(const UnitRowSets& sets, cudaStream_t stream) {
    const int64_t rows = sets.vectors.n + sets.queries.n;
    launchAfterPrevious(
            unitRowsKernel,
            unsigned((rows + kUnitRowThreads - 1) / kUnitRowThreads),
            kUnitRowThreads,
            0,
            stream,
            sets);
}

void launchFewDimsTop(
        Metric metric,
        const FewDimsTopParams& params,
        cudaStream_t stream) {
    switch (metric) {
        case Metric::L2:
            return launchOfMetric<Metric::L2>(params, stream);
        case Metric::InnerProduct:
            return launchOfMetric<Metric::InnerProduct>(params, stream);
        case Metric::Cosine:
            return launchOfMetric<Metric::Cosine>(params, stream);
        default:
            throw Error(formatMessage(
                    "metric = %d has no search of this kind", int(metric)));
    }
}

} // namespace faiss_bits
