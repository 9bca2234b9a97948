#include "kernels/knn/all_pairs/AllPairsKnn.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/all_pairs/AllPairsCost.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/all_pairs/SplitPairs.h"
#include "kernels/knn/all_pairs/digits/DigitSearch.h"
#include "kernels/knn/certified/Certified.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

namespace {

constexpr idx_t kLeastTileQueries = 64;
constexpr int kMostDims = 2048;

using Launch = void (*)(const AllPairsParams&, int, cudaStream_t);

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
        case Metric::Lp:
            return launchPairsByLanes<Metric::Lp>;
        case Metric::Canberra:
            return launchPairsByLanes<Metric::Canberra>;
        case Metric::BrayCurtis:
            return launchPairsByLanes<Metric::BrayCurtis>;
        case Metric::JensenShannon:
            return launchPairsByLanes<Metric::JensenShannon>;
        case Metric::Jaccard:
            return launchPairsByLanes<Metric::Jaccard>;
#endif
        default:
            return nullptr;
    }
}

/// Of tiles that blocks share; nullptr for metrics whose tiles they do not.
Launch splitFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchSplitPairs<Metric::L2>;
        case Metric::InnerProduct:
            return launchSplitPairs<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::Cosine:
            return launchSplitPairs<Metric::Cosine>;
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
    DigitScratch digits;
    float* distances = nullptr;
    Workspace select;

    AllPairsScratch(
            const FlatKnnProblem& p,
            const AllPairsPlan& plan,
            WorkspaceSlices& slices) {
        certified.take(p, 0, plan.tileQueries, slices);
        if (plan.byDigits) {
            digits.take(p, plan.tileQueries, slices);
        }
        distances = slices.take<float>(size_t(plan.tileQueries) * plan.stride);
        select.bytes = std::max(
                plan.selection.workspaceBytes(),
                plan.lastSelection.workspaceBytes());
        select.data = slices.take<uint8_t>(select.bytes);
    }
};

void setTiles(AllPairsPlan& plan, const FlatKnnProblem& p, idx_t most) {
    plan.tileQueries = queriesAtOnce(p, plan.byDigits, most);
    const idx_t last = (p.numQueries - 1) % plan.tileQueries + 1;
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

/// Nothing if that takes more than maxBytes.
std::optional<AllPairsPlan> planTiles(
        const FlatKnnProblem& p,
        bool byDigits,
        size_t maxBytes) {
    AllPairsPlan plan;
    plan.byDigits = byDigits;
    plan.stride = strideOf(p);
    // Few queries at a time are no gain by digits.
    constexpr idx_t kLeastDigitQueries = 4 * kDigitQueries;
    const idx_t least = byDigits ? kLeastDigitQueries : kLeastTileQueries;
    for (idx_t most = mostTileQueries(plan.stride, byDigits);; most /= 2) {
        setTiles(plan, p, most);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
        if (most <= least) {
            return {};
        }
    }
}

} // namespace

bool takesAllPairs(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && launchFor(p.metric) &&
            !p.allowedBits && p.numVectors > 0 &&
            p.numVectors <= mostVectors(p) && p.d <= kMostDims &&
            (batchOf(p) > kFewQueries || isOfFew(p)) &&
            (hasShortTerms(p.metric) || areAllCandidates(p)) &&
            p.device.singleToDouble <= 2;
}

std::optional<AllPairsPlan> planAllPairs(
        const FlatKnnProblem& p,
        size_t maxBytes,
        PairProducts products) {
    if (!takesAllPairs(p)) {
        return {};
    }
    const bool isAuto = products == PairProducts::Auto;
    if (isAuto ? digitsPay(p)
               : products == PairProducts::Digits && takesDigits(p)) {
        if (const auto plan = planTiles(p, true, maxBytes)) {
            return plan;
        }
    }
    const bool takesFloat64 = p.numVectors <= mostVectorsOfFloat64(p) &&
            products != PairProducts::Digits;
    return takesFloat64 ? planTiles(p, false, maxBytes) : std::nullopt;
}

std::string AllPairsPlan::toString() const {
    return formatMessage(
                   "all pairs%s: %lld queries at a time, %zu bytes; ",
                   byDigits ? " by digits" : "",
                   (long long)tileQueries,
                   bytes) +
            selection.toString();
}

void runAllPairs(
        const AllPairsPlan& plan,
        const FlatKnnProblem& p,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const AllPairsScratch scratch(p, plan, slices);
    Certifier certifier(p, 0, ErrorBound(), scratch.certified, stream);
    for (idx_t q = 0; q < p.numQueries; q += plan.tileQueries) {
        const idx_t count = std::min(plan.tileQueries, p.numQueries - q);
        AllPairsParams params;
        params.search = certifier.enter(q, count);
        params.distances = scratch.distances;
        params.stride = plan.stride;
        if (plan.byDigits) {
            if (q == 0) {
                scratch.digits.begin(p, params.search.vectors, stream);
            }
            scratch.digits.run(
                    p,
                    params.search,
                    q / plan.tileQueries,
                    params.distances,
                    params.stride,
                    stream);
        } else if (const int parts = partsOf(p, count); parts > 0) {
            splitFor(p.metric)(params, parts, stream);
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
