#include "kernels/knn/all_pairs/AllPairsKnn.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/AllPairsShape.h"
#include "kernels/knn/all_pairs/WideRows.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/gemm/WideProduct.h"

namespace faiss_bits {

namespace {

constexpr idx_t kWideStep = 2; // elements: wide rows begin on 16 bytes
constexpr int kMostDims = 2048;

using Launch = void (*)(const AllPairsParams&, int, cudaStream_t);

/// nullptr for metrics whose terms cost more than sums of products.
Launch launchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchAllPairs<Metric::L2>;
        case Metric::InnerProduct:
            return launchAllPairs<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::L1:
            return launchAllPairs<Metric::L1>;
        case Metric::Linf:
            return launchAllPairs<Metric::Linf>;
        case Metric::Cosine:
            return launchAllPairs<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

/// Of products that are there.
Launch storedLaunchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchStoredPairs<Metric::L2>;
        case Metric::InnerProduct:
            return launchStoredPairs<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::Cosine:
            return launchStoredPairs<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

SelectProblem selectionOf(const FlatKnnProblem& p, idx_t rows, idx_t stride) {
    SelectProblem select;
    select.rows = rows;
    select.cols = p.numVectors;
    select.rowStride = stride;
    select.k = p.k;
    select.largest = isSimilarity(p.metric);
    select.dropNan = true;
    select.idType = p.idType;
    select.device = p.device;
    return select;
}

struct AllPairsScratch {
    CertifiedScratch certified; // the widened queries
    float* distances = nullptr;
    Workspace select;
    // Products: rows in float64, the squares of their norms.
    double* wideVectors = nullptr;
    double* wideQueries = nullptr;
    double* ofVectors = nullptr;
    double* ofQueries = nullptr;
    double* products = nullptr;
    float* center = nullptr;            // [d]
    uint32_t* areNotIntegers = nullptr; // [2]

    AllPairsScratch(
            const FlatKnnProblem& p,
            const AllPairsPlan& plan,
            WorkspaceSlices& slices) {
        certified.take(p, 0, plan.tileQueries, slices);
        distances = slices.take<float>(size_t(plan.tileQueries) * plan.stride);
        select.bytes = std::max(
                plan.selection.workspaceBytes(),
                plan.lastSelection.workspaceBytes());
        select.data = slices.take<uint8_t>(select.bytes);
        if (plan.by != AllPairsBy::Products) {
            return;
        }
        const size_t rows = size_t(plan.tileQueries);
        wideVectors =
                slices.take<double>(size_t(p.numVectors) * plan.wideStride);
        wideQueries = slices.take<double>(rows * plan.wideStride);
        ofVectors = slices.take<double>(p.numVectors);
        ofQueries = slices.take<double>(rows);
        products = slices.take<double>(rows * plan.stride);
        center = slices.take<float>(p.d);
        areNotIntegers = slices.take<uint32_t>(2);
    }
};

void setTiles(AllPairsPlan& plan, const FlatKnnProblem& p, idx_t most) {
    const idx_t tiles = (p.numQueries + most - 1) / most;
    plan.tileQueries = (p.numQueries + tiles - 1) / tiles;
    const idx_t last = p.numQueries - (tiles - 1) * plan.tileQueries;
    plan.selection =
            planSelection(selectionOf(p, plan.tileQueries, plan.stride));
    plan.lastSelection = last == plan.tileQueries
            ? plan.selection
            : planSelection(selectionOf(p, last, plan.stride));
    WorkspaceSlices slices;
    AllPairsScratch(p, plan, slices);
    // So that a run with just these bytes finds the same plan.
    plan.bytes = std::max(slices.used(), kLeastUntiledBytes);
}

} // namespace

bool takesAllPairs(const FlatKnnProblem& p, AllPairsBy by) {
    const bool mayMultiply = (by == AllPairsBy::Products ||
                              (kChoosesProducts && by == AllPairsBy::Best)) &&
            storedLaunchFor(p.metric);
    return p.mode != SearchMode::Plain && launchFor(p.metric) &&
            (mayMultiply || by != AllPairsBy::Products) && !p.allowedBits &&
            p.numVectors > 0 &&
            p.numVectors <=
            (mayMultiply ? kMostWideVectors : kMostPairVectors) &&
            p.d <= kMostDims && batchOf(p) > kFewQueries &&
            p.device.singleToDouble <= 2;
}

std::optional<AllPairsPlan> planAllPairs(
        const FlatKnnProblem& p,
        size_t maxBytes,
        AllPairsBy by) {
    if (!takesAllPairs(p, by)) {
        return {};
    }
    if (by == AllPairsBy::Best) {
        if (kChoosesProducts &&
            allPairsMicroseconds(p, AllPairsBy::Products) <
                    allPairsMicroseconds(p, AllPairsBy::Tiles)) {
            auto plan = planAllPairs(p, maxBytes, AllPairsBy::Products);
            if (plan) {
                return plan;
            }
        }
        return planAllPairs(p, maxBytes, AllPairsBy::Tiles);
    }
    AllPairsPlan plan;
    plan.by = by;
    plan.stride = allPairsStride(p);
    plan.wideStride = (p.d + kWideStep - 1) / kWideStep * kWideStep;
    for (idx_t most = mostPairQueries(plan.stride, by);; most /= 2) {
        setTiles(plan, p, most);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (most <= kLeastPairQueries) {
            return {};
        }
    }
}

std::string AllPairsPlan::toString() const {
    return formatMessage(
                   "all pairs%s: %lld queries at a time, %zu bytes; ",
                   by == AllPairsBy::Products ? " by cuBLAS" : "",
                   (long long)tileQueries,
                   bytes) +
            selection.toString();
}

namespace {

/// The products of some queries with all vectors, which are widened with the
/// first.
void multiply(
        const AllPairsPlan& plan,
        const FlatKnnProblem& p,
        AllPairsParams& params,
        const AllPairsScratch& scratch,
        bool areFirst,
        cublasHandle_t handle,
        cudaStream_t stream) {
    const CertifiedParams& search = params.search;
    WideRowsParams wide;
    wide.d = p.d;
    wide.stride = plan.wideStride;
    if (areFirst) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                scratch.areNotIntegers, 0, 2 * sizeof(uint32_t), stream));
        if (p.metric == Metric::L2) {
            // The first query, as in the tiles: kept for those that follow.
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    scratch.center,
                    search.queries,
                    sizeof(float) * p.d,
                    cudaMemcpyDeviceToDevice,
                    stream));
        }
        wide.center = p.metric == Metric::L2 ? scratch.center : nullptr;
        wide.rows = search.vectors;
        wide.n = p.numVectors;
        wide.wide = scratch.wideVectors;
        wide.squares = scratch.ofVectors;
        wide.areNotIntegers = scratch.areNotIntegers;
        runWideRows(wide, stream);
    }
    wide.center = p.metric == Metric::L2 ? scratch.center : nullptr;
    wide.rows = {search.queries, DataType::Float32, p.d, 1};
    wide.n = search.rows;
    wide.wide = scratch.wideQueries;
    wide.squares = scratch.ofQueries;
    wide.areNotIntegers = scratch.areNotIntegers + 1;
    runWideRows(wide, stream);

    WideProduct product;
    product.numQueries = search.rows;
    product.numVectors = p.numVectors;
    product.d = int(plan.wideStride); // zeros behind the last component
    product.queries = scratch.wideQueries;
    product.vectors = scratch.wideVectors;
    product.stride = plan.wideStride;
    product.out = scratch.products;
    product.outStride = plan.stride;
    runWideProduct(product, handle, stream);
    params.stored = {
            scratch.products,
            plan.stride,
            scratch.ofVectors,
            scratch.ofQueries,
            scratch.areNotIntegers};
}

} // namespace

void runAllPairs(
        const AllPairsPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cublasHandle_t handle,
        cudaStream_t stream) {
    const bool byProducts = plan.by == AllPairsBy::Products;
    BITS_THROW_IF_NOT_FMT(handle || !byProducts, "handle = nullptr");
    WorkspaceSlices slices(workspace);
    const AllPairsScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        AllPairsParams params;
        params.search = certifier.enter(q, count);
        params.distances = scratch.distances;
        params.stride = plan.stride;
        if (byProducts) {
            multiply(plan, p, params, scratch, q == 0, handle, stream);
            storedLaunchFor(p.metric)(params, p.device.multiprocessors, stream);
        } else {
            launchFor(p.metric)(params, p.device.multiprocessors, stream);
        }
        SelectProblem select = selectionOf(p, count, plan.stride);
        select.keys = scratch.distances;
        select.outKeys = p.outDistances + q * p.k;
        select.outIds = static_cast<uint8_t*>(p.outIds) +
                size_t(q) * p.k * sizeOf(p.idType);
        runSelect(
                count == plan.tileQueries ? plan.selection : plan.lastSelection,
                select,
                scratch.select,
                stream);
    }
}

} // namespace faiss_bits
