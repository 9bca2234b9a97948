// How searches go, and what they refuse.

#include "kernels/metric_space/gpu/SearchPlan.h"

#include <algorithm>
#include <limits>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/gpu/SearchScratch.h"

namespace faiss_bits::metric_space {

namespace {

constexpr idx_t kMostResults = idx_t(1) << 30;

/// Bytes of one query for its distances to the references.
size_t ofReferences(const MetricGroups& groups) {
    return strideOf(groups) * sizeof(float) +
            (groups.kind == GroupBounds::Pivots
                     ? size_t(groups.numReferences) * 16 +
                             size_t(groups.numGroups) * 4
                     : 0);
}

/// Whether GroupWay::Warps can answer it.
bool canTakeWarps(const MetricSearchProblem& p, bool isKnn) {
    const MetricGroups& groups = p.groups;
    return !isKnn && usesLists(p) && !p.groupBits &&
            groups.d <= kMostWarpDims &&
            (groups.kind != GroupBounds::Pivots ||
             groups.numReferences <= kMostWarpPivots);
}

/// Bits of all queries, where there are so few that reading them takes less
/// time than the launches of a sort.
constexpr size_t kMostBitBytes = size_t(64) << 20;

bool canTakeBits(
        const MetricSearchProblem& p,
        const MetricSearchPlan& plan,
        size_t maxBytes) {
    const double bytes = double(bitItems(p.groups.numIds)) *
            double(p.numQueries) * kItemWords * sizeof(uint32_t);
    return plan.byWarps && p.vectors && p.numQueries <= kMostRows &&
            bytes <= double(std::min(kMostBitBytes, maxBytes / 2));
}

} // namespace

void checkStride(const MetricSearchProblem& p, uint32_t stride) {
    BITS_THROW_IF_NOT_FMT(
            p.numQueries <= std::numeric_limits<int32_t>::max(),
            "numQueries = %lld is above 2^31 - 1",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            stride >= groupBitsWords(p.numQueries),
            "groupBitsStride = %u is below the %u words of %lld queries",
            stride,
            groupBitsWords(p.numQueries),
            (long long)p.numQueries);
}

void checkProblem(const MetricSearchProblem& p, bool isKnn) {
    const MetricGroups& groups = p.groups;
    BITS_THROW_IF_NOT_FMT(
            canonical::hasTrueDistance(groups.metric),
            "metric = %d is not supported",
            int(groups.metric));
    BITS_THROW_IF_NOT_FMT(groups.d >= 1, "d = %d is below 1", groups.d);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            !isKnn || usesLists(p) || groups.numIds == 0,
            "neighbours are searched for group by group, with bounds");
    BITS_THROW_IF_NOT_FMT(
            p.mapping != Mapping::QueryMajor || groups.n == 0 ||
                    groups.vectorColumns,
            "vectorColumns is a null pointer, mapping = QueryMajor needs them");
    BITS_THROW_IF_NOT_FMT(
            p.way == GroupWay::Auto || usesLists(p),
            "way = %d is of searches group by group, with bounds",
            int(p.way));
    BITS_THROW_IF_NOT_FMT(
            p.way != GroupWay::Warps || canTakeWarps(p, isKnn),
            "way = Warps is of ranges without groupBits, d = %d of at most %d "
            "and up to %u pivots",
            groups.d,
            kMostWarpDims,
            kMostWarpPivots);
    if (p.groupBits) {
        BITS_THROW_IF_NOT_FMT(
                !isKnn && usesLists(p),
                "groupBits are of ranges group by group, with bounds");
        checkStride(p, p.groupBitsStride);
    }
}

void checkFirstStage(const MetricSearchProblem& p) {
    checkProblem(p, false);
    BITS_THROW_IF_NOT_FMT(
            usesLists(p) && !p.groupBits,
            "a first stage finds groupBits, group by group and with bounds");
    BITS_THROW_IF_NOT_FMT(
            p.way != GroupWay::Warps, "way = Warps has no first stage");
}

void checkRange(const MetricSearchProblem& problem, float radius) {
    checkRadius(radius);
    BITS_THROW_IF_NOT_FMT(
            problem.queries || problem.numQueries == 0,
            "queries are a null pointer");
}

MetricSearchPlan planMetricSearch(
        const MetricSearchProblem& problem,
        idx_t k,
        size_t maxBytes) {
    checkProblem(problem, k > 0);
    const MetricGroups& groups = problem.groups;
    MetricSearchPlan plan;
    plan.byWarps =
            problem.way != GroupWay::Lists && canTakeWarps(problem, k > 0);
    plan.byBits = canTakeBits(problem, plan, maxBytes);
    const size_t numGroups = groups.numGroups;
    const size_t ofRow = usesLists(problem) && !plan.byWarps
            ? 40 + (problem.groupBits ? 0 : ofReferences(groups)) +
                    numGroups * 5 + (size_t(groups.n) / 32 + numGroups) / 4
            : 40;
    plan.rows = std::clamp<idx_t>(
            maxBytes / 2 / ofRow,
            1,
            std::max<idx_t>(std::min(problem.numQueries, kMostRows), 1));
    if (numGroups > 0) {
        // Places of lists have 32 bits.
        plan.rows = std::min<idx_t>(
                plan.rows, std::max<idx_t>(UINT32_MAX / numGroups, 1));
    }
    const idx_t one = std::max<idx_t>(groups.numIds, 1);
    const double all = double(one) * double(problem.numQueries);
    plan.capacity = std::max<idx_t>(maxBytes / 2 / 28, one);
    plan.capacity = std::min(plan.capacity, std::max(kMostResults, one));
    plan.capacity =
            std::max<idx_t>(idx_t(std::min(double(plan.capacity), all)), one);
    if (plan.byBits) {
        plan.rows = problem.numQueries;
    } else {
        plan.sortTemp = foundSortTempBytes(plan.capacity);
    }
    plan.listsTemp = usesLists(problem) && !plan.byWarps
            ? listsTempBytes(groups.numGroups)
            : 0;
    WorkspaceSlices slices;
    SearchScratch(problem, plan, k > 0, stageOf(problem), slices);
    plan.bytes = slices.used();
    return plan;
}

MetricSearchPlan planFirstStage(
        const MetricSearchProblem& problem,
        size_t maxBytes) {
    checkFirstStage(problem);
    const MetricGroups& groups = problem.groups;
    MetricSearchPlan plan;
    const size_t ofRow = 40 + ofReferences(groups) + groups.numGroups / 8;
    const idx_t most = std::min(problem.numQueries, kMostRows);
    plan.rows = std::clamp<idx_t>(
            maxBytes / 2 / ofRow / 32 * 32, 32, std::max<idx_t>(most, 32));
    const idx_t one = groups.kind == GroupBounds::Centers
            ? std::max<idx_t>(groups.numReferences, 1)
            : 1;
    plan.capacity = std::clamp<idx_t>(
            std::min<idx_t>(maxBytes / 2 / 28, kMostResults),
            32 * one,
            plan.rows * one);
    plan.sortTemp = foundSortTempBytes(plan.capacity);
    WorkspaceSlices slices;
    SearchScratch(problem, plan, false, SearchStage::First, slices);
    plan.bytes = slices.used();
    return plan;
}

} // namespace faiss_bits::metric_space
