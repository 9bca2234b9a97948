#include "kernels/knn/FlatKnnPlan.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/SmallBatchParams.h"

namespace faiss_bits {

namespace {

/// More scratch than this buys nothing: the launches are long enough.
constexpr size_t kMostTileBytes = size_t(1) << 30;
/// Least vectors of a tile, where there are that many.
constexpr idx_t kLeastTileVectors = 16384;
constexpr int kMaxSlots = 8;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

void checkShape(const FlatKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.k >= 1 && p.k <= kMaxSelectK,
            "k = %d is outside 1..%d",
            p.k,
            kMaxSelectK);
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.numVectors >= 0 && p.numVectors <= INT32_MAX,
            "numVectors = %lld is outside 0..%d",
            (long long)p.numVectors,
            INT32_MAX);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d is neither L2 nor InnerProduct",
            int(p.metric));
    BITS_THROW_IF_NOT_FMT(
            p.dataType == DataType::Float32 ||
                    p.dataType == DataType::Float16 ||
                    p.dataType == DataType::BFloat16,
            "dataType = %d is unknown",
            int(p.dataType));
    BITS_THROW_IF_NOT_FMT(
            p.idType == IdType::Int32 || p.idType == IdType::Int64,
            "idType = %d is neither Int32 nor Int64",
            int(p.idType));
    BITS_THROW_IF_NOT_FMT(
            p.multiprocessors >= 1,
            "multiprocessors = %d is below 1",
            p.multiprocessors);
}

bool fitsSmallBatch(const FlatKnnProblem& p) {
    return p.numQueries <= kMaxSmallBatch && p.vectorsRowMajor &&
            (p.queriesRowMajor || p.d == 1 || p.numQueries == 1) &&
            p.dataType != DataType::BFloat16 &&
            smallBatchSharedBytes(int(p.numQueries), p.d) <=
            kMaxSmallBatchBytes;
}

/// Sets the tiles' count and width from the widest that is allowed. Tiles are
/// of even width, so that none has fewer than k vectors: what a short tile
/// would leave in its places could pass for a result.
void setVectorTiles(FlatKnnPlan& plan, const FlatKnnProblem& p, idx_t widest) {
    const idx_t n = std::max<idx_t>(p.numVectors, 1);
    plan.numVectorTiles = divUp(n, widest);
    plan.tileVectors = std::min(n, divUp(divUp(n, plan.numVectorTiles), 4) * 4);
    plan.numVectorTiles = divUp(n, plan.tileVectors);
    plan.distanceStride = divUp(plan.tileVectors, 4) * 4;
    plan.slots = plan.numVectorTiles == 1
            ? 0
            : int(std::min<idx_t>(plan.numVectorTiles, kMaxSlots));
}

size_t measure(const FlatKnnProblem& p, const FlatKnnPlan& plan) {
    WorkspaceSlices slices;
    FlatKnnScratch(p, plan, slices);
    return slices.used();
}

} // namespace

SelectProblem tileSelection(
        const FlatKnnProblem& p,
        idx_t queries,
        idx_t cols) {
    SelectProblem select;
    select.rows = queries;
    select.cols = cols;
    select.k = p.k;
    select.largest = p.metric == Metric::InnerProduct;
    select.idType = p.idType;
    select.multiprocessors = p.multiprocessors;
    return select;
}

FlatKnnScratch::FlatKnnScratch(
        const FlatKnnProblem& p,
        const FlatKnnPlan& plan,
        WorkspaceSlices& slices) {
    if (plan.makeVectorNorms) {
        vectorNorms = slices.take<float>(p.numVectors);
    }
    if (p.metric == Metric::L2 && !plan.smallBatch) {
        queryNorms = slices.take<float>(p.numQueries);
    }
    distances =
            slices.take<float>(size_t(plan.tileQueries) * plan.distanceStride);
    const size_t places = size_t(plan.tileQueries) * plan.slots * p.k;
    for (int i = 0; i < 2; ++i) {
        tileKeys[i] = slices.take<float>(places);
        tileIds[i] = slices.take<uint8_t>(places * sizeOf(p.idType));
    }
    // Selections of full and last tiles, of full and last sets of queries.
    const auto lastOf = [](idx_t total, idx_t tile) {
        return tile == 0 ? 0 : total - (divUp(total, tile) - 1) * tile;
    };
    size_t bytes = 0;
    const auto need = [&](idx_t cols) {
        for (idx_t queries :
             {plan.tileQueries, lastOf(p.numQueries, plan.tileQueries)}) {
            bytes = std::max(
                    bytes,
                    selectWorkspaceBytes(tileSelection(p, queries, cols)));
        }
    };
    need(plan.tileVectors);
    need(lastOf(p.numVectors, plan.tileVectors));
    for (int filled = 2; filled <= plan.slots; ++filled) {
        need(idx_t(filled) * p.k);
    }
    select.data = slices.take<uint8_t>(bytes);
    select.bytes = bytes;
}

FlatKnnPlan planFlatKnn(const FlatKnnProblem& p, size_t maxBytes) {
    checkShape(p);
    FlatKnnPlan plan;
    if (p.numQueries == 0) {
        return plan;
    }
    plan.smallBatch = fitsSmallBatch(p);
    plan.makeVectorNorms = p.metric == Metric::L2 && !plan.smallBatch &&
            !p.vectorNorms && p.numVectors > 0;

    const idx_t least = std::max<idx_t>(kLeastTileVectors, 8 * idx_t(p.k));
    const idx_t fewest = std::min<idx_t>(p.numQueries, kMaxSmallBatch);
    const auto tryTiles = [&](size_t tileBytes) {
        const idx_t values = idx_t(tileBytes / sizeof(float));
        // All vectors in one tile where some queries fit: nothing to merge.
        setVectorTiles(plan, p, std::max(least, values / fewest));
        const idx_t most = std::max(fewest, values / plan.distanceStride);
        plan.tileQueries = plan.smallBatch
                ? p.numQueries
                : divUp(p.numQueries, divUp(p.numQueries, most));
        plan.bytes = measure(p, plan);
    };
    const size_t wanted = sizeof(float) * size_t(p.numQueries) *
            (divUp(std::max<idx_t>(p.numVectors, 1), 4) * 4);
    // The tile is most of the scratch: a few steps find what fits. They do not
    // depend on maxBytes, so that a run finds the plan its size came from.
    FlatKnnPlan smallest;
    smallest.bytes = SIZE_MAX;
    for (size_t bytes = std::min(wanted, kMostTileBytes);;
         bytes = bytes > 4096 ? bytes / 4 * 3 : 0) {
        tryTiles(bytes);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (plan.bytes < smallest.bytes) {
            smallest = plan;
        }
        if (bytes == 0) {
            return smallest;
        }
    }
}

} // namespace faiss_bits
