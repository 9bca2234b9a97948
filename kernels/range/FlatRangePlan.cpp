#include "kernels/range/FlatRangePlan.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/Error.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/range/RangeParams.h"
#include "kernels/range/RangeScratch.h"

namespace faiss_bits {

namespace {

/// Queries of one scan, and scratch for their bits.
constexpr idx_t kMostTileQueries = 16384;
constexpr size_t kMostBitBytes = size_t(512) << 20;
/// Candidates that are scored together, of 8 bytes.
constexpr idx_t kMostCapacity = idx_t(1) << 26;
constexpr idx_t kLeastCapacity = idx_t(1) << 15;
static_assert(kLeastCapacity >= idx_t(kMostItemWords) * 32);
/// Items of a tile, which warps take: enough to fill the GPU.
constexpr uint64_t kWantedItems = 8192;
/// Dimensions for which tiles of all pairs are made.
constexpr int kMostMatrixDims = 2048;
/// Rows that a tile of all pairs has.
constexpr idx_t kMatrixRows = 64;

uint32_t itemWordsFor(const FlatKnnProblem& p, idx_t tile) {
    const uint64_t words = rangeWords(p.numVectors) * uint64_t(tile);
    return uint32_t(std::clamp<uint64_t>(
            words / kWantedItems / 32 * 32, 32, kMostItemWords));
}

/// Picoseconds of a candidate, and of a pair of a tile of all pairs, on an
/// H200 (docs/design/range.md); infinity where there are no such tiles.
double candidateTime(const FlatKnnProblem& p) {
    return 60 + 1.2 * p.d;
}

double pairTime(const FlatKnnProblem& p) {
    if (p.d > kMostMatrixDims || p.device.singleToDouble > 2) {
        return INFINITY;
    }
    switch (p.metric) {
        case Metric::L2:
        case Metric::InnerProduct:
        case Metric::Cosine:
            return 7 + 0.06 * p.d;
        case Metric::L1:
        case Metric::Linf:
            return 20 + 0.4 * p.d;
        default:
            return INFINITY;
    }
}

/// With a tile and a capacity: all else, and the bytes.
void finish(FlatRangePlan& plan, const FlatKnnProblem& p) {
    plan.itemWords = itemWordsFor(p, plan.tileQueries);
    plan.matrixQueries = 0;
    plan.matrixShare = 1;
    const double pair = pairTime(p);
    if (p.numVectors > 0 && std::isfinite(pair)) {
        const idx_t rows = std::min(
                2 * plan.capacity / rangeStride(p.numVectors),
                plan.tileQueries);
        // Rows that a tile lacks cost as much as those that it has.
        const double share = pair / candidateTime(p) *
                double(std::max(kMatrixRows, rows)) /
                double(std::max<idx_t>(rows, 1));
        if (rows > 0 && share < 1) {
            plan.matrixQueries = rows > kMatrixRows
                    ? rows / kMatrixRows * kMatrixRows
                    : rows;
            plan.matrixShare = share;
        }
    }
    WorkspaceSlices slices;
    RangeScratch(p, plan, slices);
    plan.bytes = slices.used();
}

/// The largest tiles of the method that fit, or the least.
FlatRangePlan planTiles(
        const FusedMethod& method,
        const FlatKnnProblem& p,
        size_t maxBytes) {
    FlatRangePlan plan;
    plan.method = &method;
    const idx_t queries = std::max<idx_t>(p.numQueries, 1);
    const uint64_t rowBytes =
            std::max<uint64_t>(rangeWords(p.numVectors) * sizeof(uint32_t), 1);
    idx_t most = std::clamp<idx_t>(
            idx_t(kMostBitBytes / rowBytes),
            1,
            std::min(queries, kMostTileQueries));
    idx_t capacity = kMostCapacity;
    for (;;) {
        const idx_t tiles = (queries + most - 1) / most;
        plan.tileQueries = (queries + tiles - 1) / tiles;
        // No more than all pairs.
        const double pairs = double(plan.tileQueries) *
                double(rangeWords(p.numVectors)) * 32;
        plan.capacity = std::max(
                idx_t(std::min(double(capacity), pairs)) / 64 * 64,
                kLeastCapacity);
        finish(plan, p);
        if (plan.bytes <= maxBytes ||
            (most == 1 && capacity == kLeastCapacity)) {
            return plan;
        }
        const bool bitsAreMore = uint64_t(plan.tileQueries) * rowBytes >=
                uint64_t(plan.capacity) * 8;
        if (most > 1 && (bitsAreMore || plan.capacity == kLeastCapacity)) {
            most = (most + 1) / 2;
        } else {
            capacity = std::max(
                    std::min(capacity, plan.capacity) / 2, kLeastCapacity);
        }
    }
}

} // namespace

FlatKnnProblem rangeProblemOf(const FlatKnnProblem& problem) {
    FlatKnnProblem p = problem;
    p.mode = SearchMode::Certified;
    p.k = 1;
    p.allowedIds = nullptr;
    p.numAllowed = 0;
    p.idType = IdType::Int64;
    p.outDistances = nullptr;
    p.outIds = nullptr;
    p.numRepeated = nullptr;
    p.numRescored = nullptr;
    // One that it makes itself.
    p.imageInOrder |= !p.searchImage;
    return p;
}

FlatRangePlan planFlatRange(const FlatKnnProblem& problem, size_t maxBytes) {
    const FlatKnnProblem p = rangeProblemOf(problem);
    checkFlatKnnShape(p);
    const FusedMethod* method = fusedMethodFor(p);
    if (method && method != &kPairwiseFusedMethod) {
        const FlatRangePlan plan = planTiles(*method, p, maxBytes);
        if (plan.bytes <= maxBytes || p.searchImage) {
            return plan;
        }
        // An image of the vectors does not fit.
    }
    return planTiles(kPairwiseFusedMethod, p, maxBytes);
}

RangeScratch::RangeScratch(
        const FlatKnnProblem& p,
        const FlatRangePlan& plan,
        WorkspaceSlices& slices) {
    const size_t rows = size_t(plan.tileQueries);
    const size_t items = rows * rangeItems(p.numVectors, plan.itemWords);
    limits = slices.take<float>(rows);
    bits = slices.take<uint32_t>(rows * rangeWords(p.numVectors));
    counts = slices.take<int64_t>(items + 1);
    sectors = slices.take<uint32_t>(items);
    next = slices.take<uint32_t>(1);
    offsets = slices.take<int64_t>(items + 1);
    inOrder = slices.take<int64_t>(items + 1);
    begins = slices.take<int64_t>(items + 1);
    kept = slices.take<int64_t>(items + 1);
    places = slices.take<int64_t>(items + 1);
    bounds = slices.take<int64_t>(rows + 2);
    sumsBytes = rangeSumsBytes(int64_t(items) + 1);
    sums = slices.take<uint8_t>(sumsBytes);
    certified.takeFacts(p, plan.method->bound(p), slices);
    distances = slices.take<float>(2 * size_t(plan.capacity));
    matrix = distances;
    columns = reinterpret_cast<uint32_t*>(distances) + plan.capacity;
    certified.take(p, 0, plan.tileQueries, slices);
    scan = plan.method->prepare(p, plan.tileQueries, LimitsOf::Others, slices);
}

std::string FlatRangePlan::toString() const {
    return formatMessage(
            "range by fused %s: %lld queries a scan, items of %u vectors, "
            "%lld candidates at a time, all pairs of %lld queries from %.3g of "
            "them on, %zu bytes",
            method->name,
            (long long)tileQueries,
            itemWords * 32,
            (long long)capacity,
            (long long)matrixQueries,
            matrixShare,
            bytes);
}

} // namespace faiss_bits
