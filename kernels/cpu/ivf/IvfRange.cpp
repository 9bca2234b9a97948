#include "kernels/cpu/ivf/IvfRange.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/common/Error.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/RangeBlock.h"
#include "kernels/cpu/RangeScanner.h"
#include "kernels/cpu/Targets.h"
#include "kernels/cpu/ivf/IvfChecks.h"
#include "kernels/cpu/ivf/IvfRangeJobs.h"
#include "kernels/cpu/ivf/IvfRow.h"
#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

namespace {

/// A thread is not worth starting for less than about 10 microseconds.
constexpr double kOperationsPerThread = 5e5;

/// Shorter lists, and lists of so few allowed vectors, are scanned together: so
/// many vectors at a time, and less than a list more.
constexpr idx_t kShortList = 16, kMostGathered = 512;

/// The most vectors that a scan numbers (CandidateId).
constexpr idx_t kMostColumns = idx_t(1) << 30;

/// Vectors that count in the lists of each query.
std::vector<idx_t> checkRange(const IvfRangeProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            !std::isnan(p.radius),
            "radius = %g is no number",
            double(p.radius));
    std::vector<idx_t> pairs(std::max<idx_t>(p.numQueries, 0));
    checkIvf(p, [&](idx_t query, idx_t columns) { pairs[query] += columns; });
    return pairs;
}

class IvfRange {
   public:
    IvfRange(
            const IvfRangeProblem& problem,
            const std::vector<idx_t>& pairs,
            int64_t target)
            : problem_(problem),
              pairs_(pairs),
              isUnbounded_(problem.numQueries),
              limit_(isSimilarity(problem.metric) ? -problem.radius
                                                  : problem.radius) {
        const KernelMetric metric = problem.metric == Metric::L2
                ? KernelMetric::L2
                : KernelMetric::Product;
        setup_.metric = metric;
        setup_.similarity = isSimilarity(problem.metric);
        setup_.depth = problem.d;
        setup_.queries = {problem.queries, problem.d, nullptr};
        setup_.numQueries = problem.numQueries;
        setup_.team = problem.threads ? problem.threads : omp_get_max_threads();
        setup_.target = target;
        setup_.common = commonKernelsFor<float>(target);
        setup_.kernels = metricKernelsFor<float>(metric, target);
        setup_.interrupt = &problem.interrupt;
        kernels_ = canonicalKernelsFor<float>(metric, target);
    }

    RangeResult<float> run() {
        const double all =
                std::accumulate(pairs_.begin(), pairs_.end(), double(0));
        const double perPair = 2 * problem_.d;
        const int threads = std::max(
                1,
                int(std::min(
                        double(setup_.team),
                        all * perPair / kOperationsPerThread)));
        for (int thread = 0; thread < threads; ++thread) {
            workers_.push_back(std::make_unique<Worker>(*this));
        }
        idx_t numBlocks = 0;
        const std::vector<IvfRangeJob> jobs =
                cutIvfRange(problem_, pairs_, threads, numBlocks);
        blocks_.resize(numBlocks);
        const double perRegion = problem_.interrupt
                ? kIvfRangeOperations * threads / perPair
                : std::numeric_limits<double>::infinity();
        const idx_t count = idx_t(jobs.size());
        for (idx_t begin = 0, end = 0; begin < count; begin = end) {
            // Where lists are empty, the probes are what is work.
            for (double pairs = 0; end < count && pairs < perRegion; ++end) {
                const IvfRangeJob& job = jobs[end];
                pairs += double(job.pairs + job.end - job.begin);
            }
            parallelFor(
                    setup_.team,
                    threads,
                    end - begin,
                    [&](idx_t i, int thread) {
                        const IvfRangeJob& job = jobs[begin + i];
                        scan(job,
                             *workers_[thread],
                             blocks_[job.block < 0 ? thread : job.block]);
                    });
            setup_.callInterrupt();
        }
        if (problem_.stats) {
            const idx_t unbounded = std::accumulate(
                    isUnbounded_.begin(), isUnbounded_.end(), idx_t(0));
            problem_.stats->certified += problem_.numQueries - unbounded;
            problem_.stats->repeated += unbounded;
            for (const auto& worker : workers_) {
                problem_.stats->rescored += worker->scanner.rescored();
            }
        }
        return RangeBlock<float>::join(blocks_, problem_.numQueries);
    }

   private:
    /// Vectors of short lists that follow each other, which are scanned as one.
    struct Gathered {
        const float* base = nullptr;
        std::vector<idx_t> offsets; ///< of the vectors, from `base`
        std::vector<IvfPlace> places;
        std::deque<OpenIvfList> open; ///< if they do not stay where they are
    };

    struct Worker {
        explicit Worker(const IvfRange& search)
                : scanner(search.setup_,
                          search.kernels_,
                          search.limit_,
                          false) {}
        RangeQueries<float> query;
        RangeScanner<float> scanner;
        Gathered gathered;
    };

    void scan(const IvfRangeJob& job, Worker& worker, RangeBlock<float>& block)
            const {
        worker.query.prepare(setup_, kernels_, job.query, 1);
        const idx_t* probes = problem_.probes + job.query * problem_.nprobe;
        if (job.columns >= 0) {
            scanList(
                    job.query,
                    probes[job.begin],
                    job.first,
                    job.columns,
                    worker,
                    block);
            return;
        }
        for (idx_t i = job.begin; i < job.end; ++i) {
            const idx_t list = probes[i];
            const idx_t count = countAllowed(problem_, list);
            if (count > kShortList) {
                scanGathered(job.query, worker, block);
                scanList(job.query, list, 0, count, worker, block);
            } else if (count > 0) {
                gather(list,
                       count,
                       allowedPlaces(problem_, list),
                       worker.gathered);
                if (idx_t(worker.gathered.offsets.size()) >= kMostGathered) {
                    scanGathered(job.query, worker, block);
                }
            }
        }
        scanGathered(job.query, worker, block);
    }

    void gather(idx_t list, idx_t count, const IvfPlaces* allowed, Gathered& to)
            const {
        const IvfLists& lists = *problem_.lists;
        const float* rows;
        if (lists.areKept()) {
            rows = OpenIvfList(lists, list).rows();
        } else {
            rows = to.open.emplace_back(lists, list).rows();
        }
        if (to.offsets.empty()) {
            to.base = rows;
        }
        const size_t before = to.offsets.size();
        to.offsets.resize(before + count);
        to.places.resize(before + count);
        writeIvfOffsets(
                to.base,
                rows,
                problem_.d,
                allowed,
                count,
                to.offsets.data() + before);
        for (idx_t i = 0; i < count; ++i) {
            to.places[before + i] = {list, allowed ? (*allowed)[i] : i};
        }
    }

    void scanGathered(idx_t query, Worker& worker, RangeBlock<float>& block)
            const {
        Gathered& from = worker.gathered;
        if (from.offsets.empty()) {
            return;
        }
        scanRows(
                query,
                {from.base, 1, from.offsets.data()},
                idx_t(from.offsets.size()),
                [&](idx_t at) {
                    const IvfPlace place = from.places[at];
                    return problem_.lists->id(place.list, place.place);
                },
                worker,
                block);
        from.offsets.clear();
        from.places.clear();
        from.open.clear();
    }

    /// `count` of the vectors that count of a list, from one on.
    void scanList(
            idx_t query,
            idx_t list,
            idx_t first,
            idx_t count,
            Worker& worker,
            RangeBlock<float>& block) const {
        const OpenIvfList open(*problem_.lists, list);
        const IvfPlaces* places = allowedPlaces(problem_, list);
        for (idx_t end = first + count; first < end; first += kMostColumns) {
            RowView<float> vectors = {open.rows(), problem_.d, nullptr};
            if (places) {
                vectors.ids = places->data() + first;
            } else {
                vectors.data += first * problem_.d;
            }
            scanRows(
                    query,
                    vectors,
                    std::min(kMostColumns, end - first),
                    [&](idx_t at) {
                        return problem_.lists->id(
                                list,
                                places ? (*places)[first + at] : first + at);
                    },
                    worker,
                    block);
        }
    }

    template <class IdOf>
    void scanRows(
            idx_t query,
            const RowView<float>& vectors,
            idx_t count,
            const IdOf& idOf,
            Worker& worker,
            RangeBlock<float>& block) const {
        worker.scanner.scan(
                worker.query,
                vectors,
                0,
                count,
                [&](const RangeScanner<float>::Found& found) {
                    if (found.isUnbounded) { // threads may share a query
                        std::atomic_ref<char>(isUnbounded_[query])
                                .store(1, std::memory_order_relaxed);
                    }
                    return block.append<false>(
                            query,
                            found.keys,
                            found.count,
                            limit_,
                            setup_.similarity,
                            [&](idx_t i) { return idOf(found.ids[i]); });
                });
    }

    const IvfRangeProblem& problem_;
    const std::vector<idx_t>& pairs_;       ///< of the queries
    mutable std::vector<char> isUnbounded_; ///< [queries]
    const float limit_;                     ///< of keys
    Setup<float> setup_;
    CanonicalKernels<float> kernels_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<RangeBlock<float>> blocks_;
};

} // namespace

RangeResult<float> runIvfRange(const IvfRangeProblem& problem) {
    const std::vector<idx_t> pairs = checkRange(problem);
    const int64_t target = targetOf(problem.target);
    if (problem.numQueries == 0) {
        RangeResult<float> none;
        none.limits = {0};
        return none;
    }
    return IvfRange(problem, pairs, target).run();
}

} // namespace faiss_bits::cpu
