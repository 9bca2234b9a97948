#include "kernels/knn/all_pairs/digits/DigitSearch.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"

namespace faiss_bits {

namespace {

#ifdef FAISS_BITS_WGMMA
constexpr bool kAreBuilt = true;
#else
constexpr bool kAreBuilt = false;
#endif

constexpr int kLeastDims = 96;  // fewer were not measured
constexpr int kMostDims = 2048; // digitSum
constexpr int kCounts = 2;
constexpr int kUsed = 3; // words
/// One pair in so many may be unsure and not left with its tile.
constexpr size_t kPairsOfUnsure = 32;
constexpr size_t kLeastUnsure = 4096;

constexpr int kTileRows = DigitImageLayout::kTileRows;

size_t tilesOf(idx_t rows, idx_t n) {
    const auto count = [](idx_t of) {
        return size_t(of + kTileRows - 1) / kTileRows;
    };
    return count(rows) * count(n);
}

/// As many as hold nearly all components in all their bits.
int digitsOf(const FlatKnnProblem& p) {
    return p.dataType == DataType::Float32 || p.exactQueries ? 5 : 4;
}

DigitImageLayout layoutOf(const FlatKnnProblem& p, idx_t rows) {
    return DigitImageLayout(rows, p.d, digitsOf(p));
}

DigitImage takeImage(
        const FlatKnnProblem& p,
        idx_t rows,
        WorkspaceSlices& slices) {
    const DigitImageLayout layout = layoutOf(p, rows);
    DigitImage image;
    image.pieces = slices.take<uint8_t>(layout.pieceBytes());
    image.rows = slices.take<DigitRow>(layout.capacity);
    return image;
}

DigitImageParams imageOf(
        const FlatKnnProblem& p,
        const DigitImage& image,
        const VectorsParams& rows,
        idx_t numRows,
        const VectorsParams& vectors) {
    const DigitImageLayout layout = layoutOf(p, numRows);
    DigitImageParams params;
    params.metric = p.metric;
    params.from = rows;
    params.numRows = numRows;
    params.capacity = layout.capacity;
    params.d = p.d;
    params.slabs = layout.slabs;
    params.digits = layout.digits;
    if (p.metric == Metric::L2) {
        params.centers = vectors;
        for (int i = 0; i < 3; ++i) {
            params.centerRows[i] = (2 * i + 1) * p.numVectors / 6;
        }
    }
    params.to = image;
    return params;
}

using Launch = void (*)(const DigitPairsParams&, int, cudaStream_t);

/// All three kernels.
template <Metric kMetric>
void launchAll(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(kAreBuilt, "products of digits are not built");
#ifdef FAISS_BITS_WGMMA
    launchDigitPairs<kMetric>(params, multiprocessors, stream);
#endif
    launchUnsurePairs<kMetric>(params, multiprocessors, stream);
    AllPairsParams left;
    left.search = params.search;
    left.distances = params.distances;
    left.stride = params.stride;
    left.tiles = params.unsure.tiles;
    left.numTiles = params.unsure.counts + 1;
    launchAllPairs<kMetric>(left, multiprocessors, stream);
}

/// nullptr for other metrics.
Launch launchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchAll<Metric::L2>;
        case Metric::InnerProduct:
            return launchAll<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::Cosine:
            return launchAll<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

} // namespace

bool hasDigitPairs(const DeviceTraits& device) {
    return kAreBuilt && device.computeCapability == 90;
}

bool takesDigits(const FlatKnnProblem& p) {
    return launchFor(p.metric) && p.d <= kMostDims && p.vectorsRowMajor &&
            hasDigitPairs(p.device);
}

bool digitsMayPay(const FlatKnnProblem& p) {
    return takesDigits(p) && p.d >= kLeastDims;
}

// Fitted to 135 searches (docs/design/flat_digits.md).

constexpr double kImage = 4e-6; // of a component

double digitVectorsMicroseconds(const FlatKnnProblem& p) {
    return 4 + 0.01 * p.d + kImage * double(p.numVectors) * double(p.d);
}

double digitPairsMicroseconds(const FlatKnnProblem& p, idx_t rows) {
    const double tiles = std::ceil(double(rows) / kDigitQueries) *
            std::ceil(double(p.numVectors) / kDigitVectors);
    const double turns = std::ceil(tiles / p.device.multiprocessors);
    const double steps = std::ceil(double(p.d) / kDigitStep);
    const bool isL2 = p.metric == Metric::L2;
    const int products = digitsOf(p) == 5 ? (isL2 ? 15 : 19) : (isL2 ? 13 : 15);
    const double image = kImage * double(rows) * double(p.d);
    return 13.6 + 0.01 * p.d + image + turns * (4 + 0.0395 * products * steps);
}

void DigitScratch::take(
        const FlatKnnProblem& p,
        idx_t tileQueries,
        WorkspaceSlices& slices) {
    vectors_ = takeImage(p, p.numVectors, slices);
    queries_ = takeImage(p, tileQueries, slices);
    used_ = slices.take<uint32_t>(kUsed);
    vectors_.used = used_;
    const size_t tiles = tilesOf(tileQueries, p.numVectors);
    unsure_.counts = slices.take<uint32_t>(kCounts + tiles);
    unsure_.marks = unsure_.counts ? unsure_.counts + kCounts : nullptr;
    unsure_.capacity = uint32_t(std::max(
            size_t(tileQueries) * p.numVectors / kPairsOfUnsure, kLeastUnsure));
    unsure_.pairs = slices.take<uint2>(unsure_.capacity);
    unsure_.tiles = slices.take<uint32_t>(tiles);
}

void DigitScratch::begin(
        const FlatKnnProblem& p,
        const VectorsParams& vectors,
        cudaStream_t stream) const {
    BITS_CUDA_CHECK(
            cudaMemsetAsync(used_, 0, kUsed * sizeof(uint32_t), stream));
    launchDigitImage(
            imageOf(p, vectors_, vectors, p.numVectors, vectors), stream);
}

void DigitScratch::run(
        const FlatKnnProblem& p,
        const CertifiedParams& search,
        idx_t launch,
        float* distances,
        int64_t stride,
        cudaStream_t stream) const {
    DigitImage queries = queries_;
    queries.used = used_ + 1 + launch % 2;
    VectorsParams rows;
    rows.data = search.queries;
    rows.rowStride = p.d;
    DigitImageParams image =
            imageOf(p, queries, rows, search.rows, search.vectors);
    image.clearOne = used_ + 1 + (launch + 1) % 2; // of the next
    image.clear = unsure_.counts;
    image.numClear = kCounts + idx_t(tilesOf(search.rows, p.numVectors));
    launchDigitImage(image, stream);
    DigitPairsParams params;
    params.search = search;
    params.queries = queries;
    params.vectors = vectors_;
    params.slabs = image.slabs;
    params.digits = image.digits;
    params.distances = distances;
    params.stride = stride;
    params.unsure = unsure_;
    launchFor(p.metric)(params, p.device.multiprocessors, stream);
}

} // namespace faiss_bits
