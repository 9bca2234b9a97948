#include "kernels/cpu/ivf/IvfRange.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>

#include "kernels/common/Error.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/RangeBlock.h"
#include "kernels/cpu/RangeScanner.h"
#include "kernels/cpu/Targets.h"
#include "kernels/cpu/ivf/IvfRow.h"
#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

namespace {

/// A thread is not worth starting for less than about 10 microseconds.
constexpr double kOperationsPerThread = 5e5;

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
constexpr double kOperationsPerRegion = 5e8;

/// Shorter lists, and lists of so few allowed vectors, are scanned together: so
/// many vectors at a time, and less than a list more.
constexpr idx_t kShortList = 16, kMostGathered = 512;

/// Also of what is behind the pointers. Pairs of a query and a vector.
double checkRange(const IvfRangeProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d: inverted lists are searched by L2 and by inner "
            "product",
            int(p.metric));
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.nprobe >= 1, "nprobe = %lld is below 1", (long long)p.nprobe);
    BITS_THROW_IF_NOT_FMT(
            p.threads >= 0, "threads = %d is negative", p.threads);
    BITS_THROW_IF_NOT_FMT(
            !std::isnan(p.radius),
            "radius = %g is no number",
            double(p.radius));
    BITS_THROW_IF_NOT_FMT(p.lists, "lists is null");
    if (p.numQueries == 0) {
        return 0;
    }
    BITS_THROW_IF_NOT_FMT(p.queries, "queries is null");
    BITS_THROW_IF_NOT_FMT(p.probes, "probes is null");
    double pairs = 0;
    for (idx_t i = 0; i < p.numQueries * p.nprobe; ++i) {
        const idx_t list = p.probes[i];
        BITS_THROW_IF_NOT_FMT(
                list < p.numLists,
                "probes[%lld] = %lld, but there are %lld lists",
                (long long)i,
                (long long)list,
                (long long)p.numLists);
        pairs += list < 0 ? 0 : double(p.lists->length(list));
    }
    return pairs;
}

class IvfRange {
   public:
    IvfRange(const IvfRangeProblem& problem, double pairs)
            : problem_(problem),
              pairs_(pairs),
              limit_(isSimilarity(problem.metric) ? -problem.radius
                                                  : problem.radius) {
        const int64_t target = targetOf(problem.target);
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
        const double operations = 2 * pairs_ * problem_.d;
        const int threads = std::max(
                1,
                int(std::min(
                        double(setup_.team),
                        operations / kOperationsPerThread)));
        for (int thread = 0; thread < threads; ++thread) {
            workers_.push_back(std::make_unique<Worker>(*this));
        }
        const idx_t q = problem_.numQueries;
        // Parts of the lists of a query, so that all threads have something.
        constexpr idx_t kPartsPerThread = 4;
        parts_ = q >= kPartsPerThread * threads
                ? 1
                : std::min<idx_t>(problem_.nprobe, kPartsPerThread * threads);
        parts_ = threads == 1 ? 1 : parts_;
        const idx_t jobs = q * parts_;
        blocks_.resize(parts_ == 1 ? threads : jobs);
        const idx_t perRegion = problem_.interrupt ? threads *
                        std::max<idx_t>(1,
                                        idx_t(kOperationsPerRegion /
                                              (operations / double(jobs) + 1)))
                                                   : jobs;
        for (idx_t begin = 0; begin < jobs; begin += perRegion) {
            parallelFor(
                    setup_.team,
                    threads,
                    std::min(perRegion, jobs - begin),
                    [&](idx_t i, int thread) {
                        const idx_t job = begin + i;
                        scan(job / parts_,
                             job % parts_,
                             *workers_[thread],
                             blocks_[parts_ == 1 ? thread : job]);
                    });
            setup_.callInterrupt();
        }
        if (problem_.stats) {
            problem_.stats->certified += q;
            for (const auto& worker : workers_) {
                problem_.stats->rescored += worker->scanner.rescored();
            }
        }
        return RangeBlock<float>::join(blocks_, q);
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

    /// A part of the lists of a query.
    void scan(idx_t query, idx_t part, Worker& worker, RangeBlock<float>& block)
            const {
        worker.query.prepare(setup_, kernels_, query, 1);
        const idx_t* probes = problem_.probes + query * problem_.nprobe;
        const idx_t end = (part + 1) * problem_.nprobe / parts_;
        for (idx_t i = part * problem_.nprobe / parts_; i < end; ++i) {
            const idx_t list = probes[i];
            const idx_t length = list < 0 ? 0 : problem_.lists->length(list);
            const IvfPlaces* allowed = length > 0 && problem_.allowed
                    ? problem_.allowed + list
                    : nullptr;
            const idx_t count = allowed ? idx_t(allowed->size()) : length;
            if (count > kShortList) {
                scanGathered(query, worker, block);
                scanList(query, list, count, allowed, worker, block);
            } else if (count > 0) {
                gather(list, count, allowed, worker.gathered);
                if (idx_t(worker.gathered.offsets.size()) >= kMostGathered) {
                    scanGathered(query, worker, block);
                }
            }
        }
        scanGathered(query, worker, block);
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
        // Not the difference of pointers: they are of different arrays.
        const idx_t first = idx_t(uintptr_t(rows) - uintptr_t(to.base)) /
                idx_t(sizeof(float));
        const size_t before = to.offsets.size();
        to.offsets.resize(before + count);
        to.places.resize(before + count);
        for (idx_t i = 0; i < count; ++i) {
            const idx_t place = allowed ? (*allowed)[i] : i;
            to.offsets[before + i] = first + place * problem_.d;
            to.places[before + i] = {list, place};
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

    void scanList(
            idx_t query,
            idx_t list,
            idx_t count,
            const IvfPlaces* allowed,
            Worker& worker,
            RangeBlock<float>& block) const {
        const OpenIvfList open(*problem_.lists, list);
        scanRows(
                query,
                {open.rows(), problem_.d, allowed ? allowed->data() : nullptr},
                count,
                [&](idx_t at) {
                    return problem_.lists->id(
                            list, allowed ? (*allowed)[at] : at);
                },
                worker,
                block);
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
                    return block.append(
                            query,
                            found.keys,
                            found.count,
                            limit_,
                            setup_.similarity,
                            [&](idx_t i) { return idOf(found.ids[i]); });
                });
    }

    const IvfRangeProblem& problem_;
    const double pairs_;
    const float limit_; ///< of keys
    Setup<float> setup_;
    CanonicalKernels<float> kernels_;
    idx_t parts_ = 1; ///< of the lists of a query
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<RangeBlock<float>> blocks_;
};

} // namespace

RangeResult<float> runIvfRange(const IvfRangeProblem& problem) {
    const double pairs = checkRange(problem);
    return IvfRange(problem, pairs).run();
}

} // namespace faiss_bits::cpu
