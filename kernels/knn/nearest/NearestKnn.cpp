#include "kernels/knn/nearest/NearestKnn.h"

#include <algorithm>
#include <memory>

#include "kernels/common/Error.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/nearest/NearestOfStrips.h"

namespace faiss_bits {

namespace {

/// Fewer are not worth the images; with more, a limit from a sample is better
/// than to keep the nearest of all.
constexpr idx_t kLeastVectors = 64;
constexpr idx_t kMostVectors = 65536;
/// Multiply-adds below which the images cost more than they save.
constexpr double kLeastWork = 0x1p26;
/// Queries of one scan: their image stays in L2 where a row is not long.
constexpr idx_t kMostTileQueries = idx_t(1) << 17;
constexpr idx_t kLeastTileQueries = 1024;

uint32_t stripsOf(const FlatKnnProblem& p, idx_t queries) {
    return nearestStripsOf(
            queries, p.numVectors, p.d, TensorScanKernel::Auto, p.device);
}

struct NearestScratch {
    CertifiedScratch certified;
    NearestStrips nearest; // perRow apart
    std::unique_ptr<FusedScan> scan;

    NearestScratch(
            const FlatKnnProblem& p,
            const NearestPlan& plan,
            WorkspaceSlices& slices) {
        // The last tile has fewer queries, and may have more strips of each.
        const idx_t last = (p.numQueries - 1) % plan.tileQueries + 1;
        const size_t strips = std::max(
                size_t(plan.tileQueries) * stripsOf(p, plan.tileQueries),
                size_t(last) * stripsOf(p, last));
        nearest.strips = slices.take<NearestStrip>(strips);
        nearest.rests = slices.take<float>(strips);
        certified.take(p, 0, plan.tileQueries, slices);
        certified.listEntries = wantedListEntries(p, plan.tileQueries);
        certified.lists = slices.take<uint64_t>(certified.listEntries);
        certified.takeAgain(p, plan.tileQueries, slices);
        scan = kTensorFusedMethod.prepare(
                p, plan.tileQueries, LimitsOf::Others, slices);
    }
};

size_t measure(const FlatKnnProblem& p, const NearestPlan& plan) {
    WorkspaceSlices slices;
    NearestScratch(p, plan, slices);
    return slices.used();
}

} // namespace

bool takesNearest(const FlatKnnProblem& p) {
    const double work = double(batchOf(p)) * p.numVectors * p.d;
    return p.mode != SearchMode::Plain && p.k == 1 && !p.allowedBits &&
            p.numVectors >= kLeastVectors && p.numVectors <= kMostVectors &&
            batchOf(p) > kFewQueries && work >= kLeastWork &&
            canUseSearchImage(p);
}

std::optional<NearestPlan> planNearest(
        const FlatKnnProblem& p,
        size_t maxBytes) {
    if (!takesNearest(p)) {
        return {};
    }
    NearestPlan plan;
    for (idx_t tile = std::min(p.numQueries, kMostTileQueries);;
         tile = (tile + 1) / 2) {
        const idx_t tiles = (p.numQueries + tile - 1) / tile;
        plan.tileQueries = (p.numQueries + tiles - 1) / tiles;
        plan.bytes = measure(p, plan);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (tile <= kLeastTileQueries) {
            return {};
        }
    }
}

std::string NearestPlan::toString() const {
    return formatMessage(
            "nearest: %lld queries a scan, %zu bytes",
            (long long)tileQueries,
            bytes);
}

void runNearest(
        const NearestPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const NearestScratch scratch(p, plan, slices);
    Certifier certifier(
            p, 0, kTensorFusedMethod.bound(p), scratch.certified, stream);
    certifier.begin();
    scratch.scan->begin(nullptr, 0, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        CertifiedParams params = certifier.enter(q, count);
        scratch.scan->enter(params, stream);
        NearestStrips nearest = scratch.nearest;
        nearest.perRow = stripsOf(p, count);
        scratch.scan->runNearest(nearest, count, stream);
        launchNearestOfStrips(
                p.metric,
                {params,
                 nearest,
                 scratch.scan->rows(),
                 nearestTileOf(
                         count,
                         p.numVectors,
                         p.d,
                         TensorScanKernel::Auto,
                         p.device)},
                stream);
        certifier.scanAgain(params, true);
    }
}

} // namespace faiss_bits
