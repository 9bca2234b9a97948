#include "kernels/metric_space/MetricSearch.h"

#include <algorithm>
#include <limits>

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/gpu/SearchPlan.h"
#include "kernels/metric_space/gpu/SearchScratch.h"

namespace faiss_bits::metric_space {

namespace {

/// Groups whose vectors make the limit of a search for neighbours. One of them
/// may be short.
uint32_t seedGroups(const MetricGroups& groups, idx_t k) {
    const idx_t count = (k + groups.groupSize - 1) / groups.groupSize + 1;
    return count < groups.numBounded && k < groups.numIds ? uint32_t(count) : 0;
}

/// The search of some queries after the other.
class Search {
   public:
    Search(const MetricSearchPlan& plan,
           const MetricSearchProblem& problem,
           bool isKnn,
           SearchStage stage,
           Workspace workspace,
           cudaStream_t stream,
           MetricCounters* counters)
            : plan_(plan),
              problem_(problem),
              stage_(stage),
              stream_(stream),
              counters_(counters),
              batch_(plan.rows),
              slices_(workspace),
              scratch_(problem, plan, isKnn, stage, slices_) {}

    /// Queries of the next round.
    idx_t rowsFrom(idx_t first) const {
        return std::min(batch_, problem_.numQueries - first);
    }

    void range(idx_t first, idx_t rows, float limit) {
        begin(first, rows);
        if (plan_.byWarps) {
            launchGroupWarps(
                    params(), limit, problem_.multiprocessors, stream_);
            return;
        }
        launchReaches(params(), limit, false, stream_);
        if (stage_ == SearchStage::Second) {
            launchGivenBits(
                    params(),
                    problem_.groupBits,
                    problem_.groupBitsStride,
                    groupBitsWords(problem_.numQueries),
                    first,
                    stream_);
            scanListed();
            return;
        }
        findReferences();
        scanWithin();
    }

    /// Bits of groups and, in `found`, centers. `first` begins a word.
    void firstStage(
            idx_t first,
            idx_t rows,
            float limit,
            uint32_t* groupBits,
            uint32_t stride) {
        begin(first, rows);
        launchReaches(params(), limit, false, stream_);
        findReferences();
        launchGroupBits(params(), stream_);
        const size_t width = params().words * sizeof(uint32_t);
        if (problem_.groups.numGroups > 0) {
            BITS_CUDA_CHECK(cudaMemcpy2DAsync(
                    groupBits + first / 32,
                    stride * sizeof(uint32_t),
                    params().bits,
                    width,
                    width,
                    problem_.groups.numGroups,
                    cudaMemcpyDeviceToDevice,
                    stream_));
        }
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
        if (stage_ == SearchStage::First) {
            // Whole words; there is always room for what one can have.
            batch_ = std::max<idx_t>(batch_ / 32 * 32, 32);
        }
        BITS_THROW_IF_NOT_FMT(
                isAll || rows > 1,
                "%lld results of one query, but room for %lld",
                (long long)total,
                (long long)plan_.capacity);
        if (isAll && counters_) {
            const uint64_t references = stage_ == SearchStage::Second ? 0
                    : usesLists(problem_)
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
        launchGroupBits(params(), stream_);
        scanListed();
    }

    /// What the bits say.
    void scanListed() {
        if (problem_.groups.numGroups == 0) {
            return;
        }
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
    SearchStage stage_;
    cudaStream_t stream_;
    MetricCounters* counters_;
    idx_t batch_;
    unsigned long long counts_[3] = {}; // results, distances, of references
    WorkspaceSlices slices_;
    SearchScratch scratch_;
};

/// Hands over what a round has found.
void takeSorted(
        Search& search,
        idx_t first,
        idx_t rows,
        idx_t total,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take) {
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
}

} // namespace

void runMetricRange(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters,
        const MetricRoom& room) {
    checkRange(problem, radius);
    checkProblem(problem, false);
    if (plan.byBits) {
        runRangeByBits(
                plan,
                problem,
                greatestInside(radius),
                workspace,
                stream,
                take,
                counters,
                room);
        return;
    }
    Search search(
            plan,
            problem,
            false,
            stageOf(problem),
            workspace,
            stream,
            counters);
    const float limit = greatestInside(radius);
    for (idx_t first = 0; first < problem.numQueries;) {
        const idx_t rows = search.rowsFrom(first);
        search.range(first, rows, limit);
        idx_t total = 0;
        if (!search.takeTotal(rows, total)) {
            continue;
        }
        takeSorted(search, first, rows, total, stream, take);
        first += rows;
    }
}

void runFirstStage(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float radius,
        uint32_t* groupBits,
        uint32_t groupBitsStride,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters) {
    checkRange(problem, radius);
    checkFirstStage(problem);
    checkStride(problem, groupBitsStride);
    BITS_THROW_IF_NOT_FMT(
            groupBits || problem.groups.numGroups == 0 ||
                    problem.numQueries == 0,
            "groupBits is a null pointer");
    Search search(
            plan,
            problem,
            false,
            SearchStage::First,
            workspace,
            stream,
            counters);
    const float limit = greatestInside(radius);
    for (idx_t first = 0; first < problem.numQueries;) {
        const idx_t rows = search.rowsFrom(first);
        search.firstStage(first, rows, limit, groupBits, groupBitsStride);
        idx_t total = 0;
        if (!search.takeTotal(rows, total)) {
            continue;
        }
        takeSorted(search, first, rows, total, stream, take);
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
    Search search(
            plan,
            problem,
            true,
            SearchStage::Whole,
            workspace,
            stream,
            counters);
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
