// Whether and how few queries are searched directly.

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfDirectScratch.h"
#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/IvfFewEstimates.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// One block finishes a query.
constexpr idx_t kMostQueries = 256;
/// Of queries that share lists of few dimensions.
constexpr idx_t kMostAloneQueries = 1024;
/// Of queries that share interleaved codes whose estimates have no kernel for
/// few queries a list.
constexpr idx_t kMostFoursQueries = 512;
/// Of queries that share product codes, whose estimates take a part of the time
/// of keys, as far as that was measured: of more, and of more dimensions than
/// estimates of lists take as wholes, it was not.
constexpr idx_t kMostProductQueries = 4096;
constexpr int kMostProductDims = 128;
constexpr size_t kMostKeyBytes = size_t(64) << 20;
/// Likewise of estimates, which take a part of the time.
constexpr size_t kMostEstimateBytes = size_t(256) << 20;
/// The same of tables, and the queries of a part, which are blocks of a grid's
/// second dimension, with those of the codebook; at least so many of more than
/// one part.
constexpr size_t kMostTableBytes = size_t(384) << 20;
constexpr idx_t kMostTableRows = 16384;
constexpr idx_t kLeastTableRows = 256;
/// Of queries and centroids: more are searched in less time by the quantizer.
constexpr idx_t kMostFoundPairs = 65536;

bool canFindLists(const IvfKnnProblem& p) {
    return p.centroids && p.nprobe <= kMostFoundProbes &&
            p.lists.numLists <= kMostFoundLists &&
            p.numQueries * p.lists.numLists <= kMostFoundPairs;
}

idx_t mostSharedQueries(const IvfLists& lists, int k) {
    if (lists.coding == ListCoding::Product && lists.d <= kMostProductDims) {
        return kMostProductQueries;
    }
    const bool hasFewEstimates = hasIvfFewEstimates(lists.coding) &&
            lists.d <= IvfEstimateShape<true>::kDepth;
    return areSharedByFours(lists) && !hasFewEstimates
            ? kMostFoursQueries
            : mostIvfDirectQueries(lists, k);
}

bool canShare(const IvfKnnProblem& p) {
    if (p.numQueries < 2) {
        return false;
    }
    return p.lists.coding == ListCoding::Product
            ? p.k <= kMostFinishedK && hasIvfProductScan(p.lists, p.device)
            : p.lists.d <= kMostSharedDims;
}

/// The scratch of a plan's parts, of which the last may be smaller, and take
/// another way to sort pairs.
size_t bytesOf(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    size_t most = 0;
    const idx_t last = (p.numQueries - 1) % plan.rowsAtATime + 1;
    for (const idx_t rows : {plan.rowsAtATime, last}) {
        IvfKnnProblem part = p;
        part.numQueries = rows;
        WorkspaceSlices slices;
        DirectScratch(part, plan, slices);
        most = std::max(most, slices.used());
    }
    return most;
}

/// Whether the terms of all lists have room.
bool hasIvfTerms(const IvfKnnProblem& p) {
    return p.metric != Metric::L2 ||
            size_t(ivfListsOfTerms(p.lists)) * ivfTermsOf(p.lists) *
                    sizeof(float) <=
            kMostTermBytes;
}

/// As planIvfDirectWay, of queries that share tables, in parts that fit.
std::optional<IvfDirectPlan> planTableParts(
        IvfDirectPlan plan,
        const IvfKnnProblem& p,
        size_t maxBytes) {
    const size_t ofRow = size_t(plan.stride) * sizeof(uint32_t) +
            (plan.byTerms ? ivfTermsOf(p.lists) * sizeof(float) : 0);
    const idx_t most = std::clamp<idx_t>(
            idx_t(kMostTableBytes / ofRow), 1, kMostTableRows);
    for (idx_t parts = (p.numQueries + most - 1) / most;;
         parts += std::max<idx_t>(parts / 2, 1)) {
        plan.rowsAtATime = (p.numQueries + parts - 1) / parts;
        if (parts > 1 && plan.rowsAtATime < kLeastTableRows) {
            return {};
        }
        plan.bytes = bytesOf(plan, p);
        if (plan.bytes <= maxBytes) {
            return plan;
        }
    }
}

/// Likewise; as planIvfDirectWay says of byTerms.
std::optional<IvfDirectPlan> planTables(
        IvfDirectPlan plan,
        const IvfKnnProblem& p,
        size_t maxBytes,
        std::optional<bool> mayByTerms) {
    const auto planOf = [&](bool byTerms) -> std::optional<IvfDirectPlan> {
        if (mayByTerms.value_or(byTerms) != byTerms ||
            (byTerms && !hasIvfTerms(p))) {
            return {};
        }
        plan.byTerms = byTerms;
        return planTableParts(plan, p, maxBytes);
    };
    const auto whole = planOf(false);
    const auto byTerms = planOf(true);
    if (!whole || !byTerms) {
        return whole ? whole : byTerms;
    }
    return ivf_times::ofDirect(*byTerms, p) < ivf_times::ofDirect(*whole, p)
            ? byTerms
            : whole;
}

} // namespace

idx_t mostIvfDirectQueries(const IvfLists& lists, int k) {
    return areSharedAlone(lists) && k <= kMostFinishedK ? kMostAloneQueries
                                                        : kMostQueries;
}

std::optional<IvfDirectPlan> planIvfDirectWay(
        const IvfKnnProblem& p,
        size_t maxBytes,
        bool findsLists,
        bool shared,
        bool byTables,
        std::optional<bool> byTerms) {
    const idx_t mostQueries =
            shared ? mostSharedQueries(p.lists, p.k) : kMostQueries;
    const bool sharesTables = shared && byTables;
    const bool canGo = sharesTables ? p.numQueries > 1 && p.k <= kMostTableK &&
                    hasIvfTableScan(p.lists, p.device)
                                    : (!shared || canShare(p)) &&
                    p.numQueries > 0 && p.numQueries <= mostQueries;
    const bool hasTables = !byTables || shared ||
            hasIvfBookTables(p.lists, p.numQueries, p.nprobe, p.k, p.device);
    if (!canGo || !hasTables || (findsLists && !canFindLists(p)) ||
        p.nprobe > kMostDirectProbes || p.lists.d > kMostDirectDims ||
        p.device.singleToDouble > 2) {
        return {};
    }
    IvfDirectPlan plan;
    plan.findsLists = findsLists;
    plan.shared = shared;
    plan.byTables = byTables;
    plan.rowsAtATime = p.numQueries;
    const idx_t padded = p.mostVectors + idx_t(p.nprobe) * (kIvfGroup - 1);
    plan.stride = (padded / kIvfGroup + 1) * kIvfGroup;
    if (sharesTables) {
        return planTables(plan, p, maxBytes, byTerms);
    }
    const size_t keys = size_t(plan.stride) * size_t(p.numQueries);
    if (keys * sizeof(uint32_t) >
        (hasEstimates(plan, p) || p.numQueries > kMostQueries
                 ? kMostEstimateBytes
                 : kMostKeyBytes)) {
        return {};
    }
    plan.selects = p.k > kMostFinishedK;
    if (plan.selects) {
        plan.selection = planSelection(directSelection(p, plan));
    }
    plan.bytes = bytesOf(plan, p);
    if (plan.bytes > maxBytes) {
        return {};
    }
    return plan;
}

bool mayGoByTables(const IvfKnnProblem& p) {
    return hasIvfTableScan(p.lists, p.device) &&
            !ivf_times::areDecodedInBlocks(p.lists) &&
            !(p.k <= kMostFinishedK && p.numQueries <= kMostQueries &&
              hasIvfProductScan(p.lists, p.device));
}

std::optional<IvfDirectPlan> planIvfDirect(
        const IvfKnnProblem& p,
        size_t maxBytes) {
    std::optional<IvfDirectPlan> best;
    double least = INFINITY;
    const auto consider = [&](bool findsLists, bool shared, bool byTables) {
        const auto plan =
                planIvfDirectWay(p, maxBytes, findsLists, shared, byTables);
        const double time = plan ? ivf_times::ofDirect(*plan, p) : INFINITY;
        if (time < least) {
            least = time;
            best = plan;
        }
    };
    consider(canFindLists(p), false, false);
    consider(canFindLists(p), false, true);
    consider(canFindLists(p), true, false);
    if (mayGoByTables(p)) {
        consider(canFindLists(p), true, true);
    }
    return best;
}

} // namespace faiss_bits
