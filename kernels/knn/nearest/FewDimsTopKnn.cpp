#include "kernels/knn/nearest/FewDimsTopKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedCost.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/NearestKnn.h"

namespace faiss_bits {

namespace {

/// With more, strips are so many that their values take longer than the pairs.
constexpr idx_t kMostVectors = idx_t(1) << 17;
/// Of a query, while they can be longer.
constexpr idx_t kMostStrips = 256;
/// Values of strips of one scan stay in L2.
constexpr idx_t kMostValues = idx_t(1) << 23;
constexpr idx_t kLeastTileQueries = 512;

idx_t divUp(idx_t a, idx_t b) {
    return (a + b - 1) / b;
}

bool isCosine(const FlatKnnProblem& p) {
    return p.metric == Metric::Cosine;
}

uint32_t logStripOf(const FlatKnnProblem& p) {
    uint32_t logStrip = kLeastLogTopStrip;
    while (logStrip < kMostLogTopStrip &&
           divUp(p.numVectors, idx_t(1) << logStrip) > kMostStrips) {
        ++logStrip;
    }
    return logStrip;
}

idx_t unitsOf(const FlatKnnProblem& p) {
    return divUp(p.numVectors, idx_t(kFewDimsTopStrips) << logStripOf(p));
}

bool takes(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && p.k <= kMostFewDimsTop &&
            !p.allowedBits && !p.allowedIds && p.d <= kMostFewDimsOfTop &&
            p.numVectors > 0 && p.numVectors <= kMostVectors &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct ||
             isCosine(p)) &&
            p.device.singleToDouble <= 2;
}

struct FewDimsTopScratch {
    CertifiedScratch certified; // the widened queries
    FewDimsTopParams params;
    float* unitVectors = nullptr; // [n, d]: cosine
    float* unitQueries = nullptr; // [tileQueries, d]: cosine

    FewDimsTopScratch(
            const FlatKnnProblem& p,
            const FewDimsTopPlan& plan,
            WorkspaceSlices& slices) {
        const size_t units = size_t(plan.tileQueries) * plan.units;
        params.units = plan.units;
        params.logStrip = plan.logStrip;
        params.least = slices.take<float>(units * kFewDimsTopStrips);
        params.errors = slices.take<float>(units);
        if (isCosine(p)) {
            unitVectors = slices.take<float>(size_t(p.numVectors) * p.d);
            unitQueries = slices.take<float>(size_t(plan.tileQueries) * p.d);
        }
        certified.take(p, 0, plan.tileQueries, slices);
    }
};

/// The best other certified search. Not fitted yet: what models of the others
/// say, of ordinary data, and half as much again component by component, where
/// clusters cost most.
double otherMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double pairs = double(p.numQueries) * double(p.numVectors);
    if (p.k > 1) {
        return 45 + 0.3e-6 * pairs / part;
    }
    return takesNearest(p) ? nearestMicroseconds(p)
                           : 45 + 0.1e-6 * (p.d + 2.5) * pairs / part;
}

} // namespace

double fewDimsTopMicroseconds(const FlatKnnProblem& p) {
    const double part = p.device.multiprocessors / 132.0;
    const double q = double(p.numQueries);
    const double strips = double(unitsOf(p)) * kFewDimsTopStrips;
    const double width = double(idx_t(1) << logStripOf(p));
    const double dims = double((p.d + 1) / 2 * 2);
    const double rows = double(
            divUp(p.numQueries, kFewDimsTopQueries * kFewDimsTopThreads) *
            kFewDimsTopQueries * kFewDimsTopThreads);
    const double scan = rows * strips * width * (dims + 1.6) / 2.1e7;
    const double finish = q *
            (0.5e-3 + 8e-6 * strips + (0.04e-3 + 0.04e-3 * width / 32) * p.k);
    return (isCosine(p) ? 19 : 16) + (scan + finish) / part;
}

bool fewDimsTopPays(const FlatKnnProblem& p) {
    constexpr int kLeastDims = 2;
    const bool isNearestCosine = isCosine(p) && p.k == 1;
    const bool isOfDims = p.d >= kLeastDims &&
            p.d <= (isNearestCosine ? kMostFewDimsOfTop : kMostFewDims);
    if (!takes(p) || !(p.k > 1 || isCosine(p)) || !isOfDims || p.limits ||
        batchOf(p) <= kFewQueries) {
        return false;
    }
    return fewDimsTopMicroseconds(p) < 0.9 * otherMicroseconds(p);
}

std::optional<FewDimsTopPlan> planFewDimsTop(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takes(p)) {
        return {};
    }
    FewDimsTopPlan plan;
    plan.logStrip = logStripOf(p);
    plan.units = uint32_t(unitsOf(p));
    const idx_t values = idx_t(plan.units) * kFewDimsTopStrips;
    for (idx_t tile = std::min(p.numQueries, kMostValues / values);;
         tile = divUp(tile, 2)) {
        plan.tileQueries = divUp(p.numQueries, divUp(p.numQueries, tile));
        WorkspaceSlices slices;
        FewDimsTopScratch(p, plan, slices);
        plan.bytes = slices.used();
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (tile <= kLeastTileQueries) {
            return {};
        }
    }
}

std::string FewDimsTopPlan::toString() const {
    return formatMessage(
            "few_dims_top: %lld strips of %d vectors, %lld queries a scan, %zu "
            "bytes",
            (long long)units * kFewDimsTopStrips,
            1 << logStrip,
            (long long)tileQueries,
            bytes);
}

void runFewDimsTop(
        const FewDimsTopPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const FewDimsTopScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        FewDimsTopParams params = scratch.params;
        params.search = certifier.enter(q, count);
        params.scan = params.search;
        if (isCosine(p)) {
            // The vectors with the first queries.
            UnitRowSets sets;
            sets.vectors = {
                    params.search.vectors,
                    q == 0 ? p.numVectors : 0,
                    p.d,
                    scratch.unitVectors};
            sets.queries = {
                    {params.search.queries, DataType::Float32, p.d, 1},
                    count,
                    p.d,
                    scratch.unitQueries};
            launchUnitRows(sets, stream);
            params.scan.vectors = {
                    scratch.unitVectors, DataType::Float32, p.d, 1};
            params.scan.queries = scratch.unitQueries;
        }
        launchFewDimsTop(p.metric, params, stream);
    }
}

} // namespace faiss_bits
