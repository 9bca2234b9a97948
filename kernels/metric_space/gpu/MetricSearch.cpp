#include "kernels/metric_space/MetricSearch.h"

#include <algorithm>
#include <limits>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/gpu/SearchScratch.h"

namespace faiss_bits::metric_space {

namespace {

constexpr idx_t kMostRows = idx_t(1) << 20;
constexpr idx_t kMostResults = idx_t(1) << 30;
/// Groups whose vectors make the limit of a search for neighbours. One of them
/// may be short.
uint32_t seedGroups(const MetricGroups& groups, idx_t k) {
    const idx_t count = (k + groups.groupSize - 1) / groups.groupSize + 1;
    return count < groups.numBounded && k < groups.numIds ? uint32_t(count) : 0;
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
}

/// The search of some queries after the other.
class Search {
   public:
    Search(const MetricSearchPlan& plan,
           const MetricSearchProblem& problem,
           bool isKnn,
           Workspace workspace,
           cudaStream_t stream,
           MetricCounters* counters)
            : plan_(plan),
              problem_(problem),
              stream_(stream),
              counters_(counters),
              batch_(plan.rows),
              slices_(workspace),
              scratch_(problem, plan, isKnn, slices_) {}

    /// Queries of the next round.
    idx_t rowsFrom(idx_t first) const {
        return std::min(batch_, problem_.numQueries - first);
    }

    void range(idx_t first, idx_t rows, float limit) {
        begin(first, rows);
        launchReaches(params(), limit, false, stream_);
        findReferences();
        scanWithin();
    }

    /// Limits from the vectors of some groups, then what is within them.
    void nearest(idx_t first, idx_t rows, idx_t k) {
        begin(first, rows);
        const float infinity = std::numeric_limits<float>::infinity();
        launchReaches(params(), infinity, false, stream_);
        findReferences();
        const uint32_t seeds = seedGroups(problem_.groups, k);
        if (seeds > 0) {
            launchSeedBits(params(), scratch_.keys, seeds, stream_);
            launchLists(params(), stream_);
            launchGroupScan(
                    params(), ScanOf::Lists, problem_.multiprocessors, stream_);
            const idx_t total = readTotal();
            if (total > plan_.capacity) {
                return; // and neither is there room for what follows
            }
            sortLimits(
                    params().found,
                    scratch_.sort,
                    total,
                    uint32_t(rows),
                    k,
                    scratch_.limits,
                    params().limits,
                    stream_);
            launchReaches(params(), infinity, true, stream_);
            clear(false);
        }
        scanWithin();
    }

    /// What was found, if there was room for it; else the next round has fewer
    /// queries, and it is to be done again.
    bool takeTotal(idx_t rows, idx_t& total) {
        total = readTotal();
        const double room = 0.8 * double(plan_.capacity);
        const idx_t fits = idx_t(std::min(
                room * double(rows) / double(std::max<idx_t>(total, 1)),
                double(kMostRows)));
        const bool isAll = total <= plan_.capacity;
        batch_ = std::clamp<idx_t>(
                fits, 1, isAll ? plan_.rows : std::max<idx_t>(rows / 2, 1));
        BITS_THROW_IF_NOT_FMT(
                isAll || rows > 1,
                "%lld results of one query, but room for %lld",
                (long long)total,
                (long long)plan_.capacity);
        if (isAll && counters_) {
            const uint64_t references = usesLists(problem_)
                    ? uint64_t(rows) * problem_.groups.numReferences
                    : counts_[2];
            counters_->distances +=
                    counts_[1] + (usesLists(problem_) ? references : 0);
            counters_->references += references;
        }
        return isAll;
    }

    SearchParams& params() {
        return scratch_.params;
    }
    const SearchScratch& scratch() const {
        return scratch_;
    }

   private:
    void begin(idx_t first, idx_t rows) {
        params().queries = problem_.queries + first * problem_.groups.d;
        params().rows = uint32_t(rows);
        params().words = uint32_t((rows + 31) / 32);
        clear(true);
    }

    void clear(bool all) {
        BITS_CUDA_CHECK(cudaMemsetAsync(
                params().found.count,
                0,
                (all ? 3 : 1) * sizeof(unsigned long long),
                stream_));
    }

    void findReferences() {
        if (usesLists(problem_)) {
            launchReferenceDistances(
                    params(), problem_.multiprocessors, stream_);
        }
    }

    /// All within limits and reaches.
    void scanWithin() {
        const MetricGroups& groups = problem_.groups;
        if (problem_.mapping == Mapping::QueryMajor) {
            launchQueryMajor(params(), stream_);
            return;
        }
        if (groups.kind == GroupBounds::None) {
            launchGroupScan(
                    params(),
                    ScanOf::Everything,
                    problem_.multiprocessors,
                    stream_);
            return;
        }
        if (groups.numGroups == 0) {
            return;
        }
        launchGroupBits(params(), stream_);
        launchLists(params(), stream_);
        launchGroupScan(
                params(), ScanOf::Within, problem_.multiprocessors, stream_);
    }

    idx_t readTotal() {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                counts_,
                params().found.count,
                sizeof(counts_),
                cudaMemcpyDeviceToHost,
                stream_));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
        return idx_t(counts_[0]);
    }

    const MetricSearchPlan& plan_;
    const MetricSearchProblem& problem_;
    cudaStream_t stream_;
    MetricCounters* counters_;
    idx_t batch_;
    unsigned long long counts_[3] = {}; // results, distances, of references
    WorkspaceSlices slices_;
    SearchScratch scratch_;
};

} // namespace

MetricSearchPlan planMetricSearch(
        const MetricSearchProblem& problem,
        idx_t k,
        size_t maxBytes) {
    checkProblem(problem, k > 0);
    const MetricGroups& groups = problem.groups;
    MetricSearchPlan plan;
    const size_t numGroups = groups.numGroups;
    const size_t ofRow = usesLists(problem)
            ? 40 + strideOf(groups) * sizeof(float) + numGroups * 5 +
                    (groups.kind == GroupBounds::Pivots
                             ? groups.numReferences * 16 + numGroups * 4
                             : 0) +
                    (size_t(groups.n) / 32 + numGroups) / 4
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
    plan.sortTemp = foundSortTempBytes(plan.capacity);
    plan.listsTemp = usesLists(problem) ? listsTempBytes(groups.numGroups) : 0;
    WorkspaceSlices slices;
    SearchScratch(problem, plan, k > 0, slices);
    plan.bytes = slices.used();
    return plan;
}

void runMetricRange(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters) {
    checkRadius(radius);
    checkProblem(problem, false);
    BITS_THROW_IF_NOT_FMT(
            problem.queries || problem.numQueries == 0,
            "queries are a null pointer");
    Search search(plan, problem, false, workspace, stream, counters);
    const float limit = greatestInside(radius);
    for (idx_t first = 0; first < problem.numQueries;) {
        const idx_t rows = search.rowsFrom(first);
        search.range(first, rows, limit);
        idx_t total = 0;
        if (!search.takeTotal(rows, total)) {
            continue;
        }
        const SortedRange sorted = sortRange(
                search.params().found,
                search.scratch().sort,
                total,
                uint32_t(rows),
                search.scratch().limits,
                stream);
        MetricRangePart part;
        part.first = first;
        part.rows = rows;
        part.limits = sorted.limits;
        part.distances = sorted.distances;
        part.ids = sorted.ids;
        part.total = total;
        take(part);
        first += rows;
    }
}

void runMetricKnn(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        idx_t k,
        float* outDistances,
        idx_t* outIds,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt,
        MetricCounters* counters) {
    BITS_THROW_IF_NOT_FMT(k >= 1, "k = %lld is below 1", (long long)k);
    checkProblem(problem, true);
    if (problem.numQueries == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(problem.queries, "queries are a null pointer");
    BITS_THROW_IF_NOT_FMT(
            outDistances && outIds, "outDistances or outIds is a null pointer");
    Search search(plan, problem, true, workspace, stream, counters);
    for (idx_t first = 0; first < problem.numQueries;) {
        if (interrupt) {
            interrupt();
        }
        const idx_t rows = search.rowsFrom(first);
        search.nearest(first, rows, k);
        idx_t total = 0;
        if (!search.takeTotal(rows, total)) {
            continue;
        }
        sortNearest(
                search.params().found,
                search.scratch().sort,
                total,
                uint32_t(rows),
                k,
                search.scratch().limits,
                outDistances + first * k,
                outIds + first * k,
                stream);
        first += rows;
    }
}

} // namespace faiss_bits::metric_space
