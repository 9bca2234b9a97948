#include "kernels/cpu/Certified.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/cpu/AllPairs.h"
#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/Int16.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/PairsByRows.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

namespace {

/// A certified search: sweeps that are ever more exact, each for the queries
/// that the ones before left.
template <class T>
class CertifiedSearch {
   public:
    CertifiedSearch(const KnnProblem<T>& problem, const Setup<T>& setup)
            : problem_(problem),
              setup_(setup),
              kernels_(canonicalKernelsFor<T>(setup.metric, setup.target)),
              k_(std::min(problem.k, setup.numVectors)) {}

    void run() {
        left_.resize(setup_.numQueries);
        std::iota(left_.begin(), left_.end(), idx_t(0));
        const AllPairs way = allPairsFor(setup_, problem_, k_, false);
        if constexpr (std::is_same_v<T, float>) {
            if (way == AllPairs::Rows) {
                runByRows(problem_, setup_);
                if (problem_.stats) {
                    problem_.stats->certified += setup_.numQueries;
                }
                return;
            }
        }
        if (way != AllPairs::None) {
            scan(way);
            if (problem_.stats) {
                problem_.stats->certified += setup_.numQueries;
            }
            return;
        }
        sumSquares();
        const bool byInt16 = isForInt16(setup_, problem_);
        bool isDirect = runCandidates(setup_.metric, byInt16);
        const idx_t certified = setup_.numQueries - idx_t(left_.size());
        if (byInt16 && !areTied()) {
            isDirect = runCandidates(setup_.metric, false);
        }
        // Differences do not cancel: |q|^2 - 2 <q, x> + |x|^2 does.
        if (setup_.metric == KernelMetric::L2 && !isDirect && !areTied()) {
            runCandidates(KernelMetric::Squares, false);
        }
        const idx_t repeated = setup_.numQueries - certified;
        scan(AllPairs::None);
        if (problem_.stats) {
            problem_.stats->certified += certified;
            problem_.stats->repeated += repeated;
            problem_.stats->rescored += rescored_;
        }
    }

   private:
    /// Rows of the caller's queries of those that are left.
    std::vector<idx_t> rowsLeft() const {
        std::vector<idx_t> rows(left_);
        for (idx_t& row : rows) {
            row = setup_.queries.ids ? setup_.queries.ids[row] : row;
        }
        return rows;
    }

    KnnOutput<T> output() const {
        return {problem_.outDistances,
                problem_.outIds,
                problem_.k,
                left_.data()};
    }

    /// Of all vectors, if each is a candidate some times: that is less work
    /// than what the kernels do without.
    void sumSquares() {
        constexpr idx_t kTimes = 4, kPerJob = 256;
        const idx_t n = setup_.numVectors;
        if (!kernels_.sumSquares || setup_.numQueries < kTimes * n / k_) {
            return;
        }
        squares_.allocate(n);
        parallelFor(
                setup_.team,
                setup_.team,
                (n + kPerJob - 1) / kPerJob,
                [&](idx_t job, int) {
                    const idx_t first = job * kPerJob;
                    kernels_.sumSquares(
                            setup_.vectors,
                            first,
                            std::min(kPerJob, n - first),
                            setup_.depth,
                            squares_.get() + first);
                });
    }

    /// Would more candidates not help most of the queries that are left?
    bool areTied() const {
        return 2 * tied_ > idx_t(left_.size());
    }

    /// Candidates by a metric of the plain kernels, or by 16-bit integers, for
    /// the queries that are left. True if they were met directly.
    bool runCandidates(KernelMetric metric, bool byInt16) {
        if (left_.empty()) {
            return false;
        }
        const std::vector<idx_t> rows = rowsLeft();
        Lengths<T> lengths;
        Setup<T> setup = setup_.forQueries(rows);
        setup.metric = metric;
        setup.kernels = metricKernelsFor<T>(metric, setup.target);
        setup.lengths = &lengths;
        if constexpr (std::is_same_v<T, float>) {
            if (byInt16) {
                sweepByInt16(setup);
            }
        }
        SweepKind source = {
                setup_.metric, setup_.depth, setup_.numVectors, byInt16};
        candidates_ = withMargin(k_, source);
        source.metric = metric;
        const Plan plan =
                planCandidates(setup, problem_, k_, candidates_, false);
        Certifier<T> certifier(kernels_, k_, source);
        certifier.direct = plan.variant == Variant::Direct;
        certifier.vectorSquares = squares_.get();
        if (plan.variant == Variant::Var1) {
            // A heap of k whose limit is little more than its root is as much
            // work as that of a plain search, however many are kept beside.
            certifier.slack = ErrorBound<T>(setup, false).slack();
        }
        if (certifier.slack.isOn) {
            const idx_t beside = byInt16 ? 7 : 3;
            candidates_ = std::min(
                    std::max(candidates_, k_ + beside), setup_.numVectors);
        }
        certifier.outcomes.assign(left_.size(), Outcome::Open);
        const KnnOutput<T> out = output();
        runSweep(setup, plan, candidates_, out, &certifier);
        rescored_ += certifier.rescored;
        std::vector<idx_t> left;
        tied_ = 0;
        for (size_t i = 0; i < left_.size(); ++i) {
            Outcome outcome = certifier.outcomes[i];
            if (outcome == Outcome::Done) {
                continue;
            }
            left.push_back(left_[i]);
            tied_ += (outcome == Outcome::Open ? certifier.likely()
                                               : outcome) == Outcome::Tied;
        }
        left_ = std::move(left);
        return certifier.direct;
    }

    /// Canonical distances of all vectors, for the queries that are left; None:
    /// as the last resort.
    void scan(AllPairs way) {
        if (left_.empty()) {
            return;
        }
        const std::vector<idx_t> rows = rowsLeft();
        Setup<T> setup = setup_.forQueries(rows);
        KnnProblem<T> problem = problem_;
        if (way != AllPairs::None) {
            if constexpr (std::is_same_v<T, float>) {
                sweepAllPairs(setup, way);
            }
        } else {
            // Packed as they are, without terms; the kernels know the metric.
            setup.metric = KernelMetric::Squares;
            setup.kernels.runTiles = kernels_.runTiles;
            problem.choice.variant = Variant::Buffered;
        }
        problem.choice.depthBlock = setup.panelDepth();
        const Plan plan = planSearch(setup, problem, k_, false);
        runSweep<T>(setup, plan, k_, output(), nullptr);
        left_.clear();
    }

    const KnnProblem<T>& problem_;
    const Setup<T>& setup_;
    CanonicalKernels<T> kernels_;
    idx_t k_;
    idx_t candidates_ = 0;          ///< that the next sweep is asked for
    AlignedBuffer<double> squares_; ///< |x|^2 of the vectors, or empty
    std::vector<idx_t> left_;       ///< queries without a result, ascending
    idx_t tied_ = 0; ///< those of them that candidates do not help
    idx_t rescored_ = 0;
};

} // namespace

template <class T>
Plan planCandidates(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        idx_t candidates,
        bool predict) {
    // Of fewer vectors, buffers of some candidates more than k are less work
    // than heaps (measured, docs/design/cpu_rescoring.md): than those of all
    // candidates, and than those of k, with slack.
    constexpr idx_t kVectorsOfHeap = 4096;
    constexpr idx_t kFewOfHeap = 4;
    constexpr idx_t kVectorsOfPair = 256; // of places of the heap
    const bool heapPays = setup.metric == KernelMetric::Product
            ? k == 1 || setup.numVectors / kVectorsOfHeap >= k
            : k <= kFewOfHeap || setup.numVectors / kVectorsOfPair >= k * k;
    const Plan plan = planSearch(setup, problem, candidates, predict);
    if (plan.variant == Variant::Direct ||
        problem.choice.variant != Variant::Auto) {
        return plan;
    }
    Problem<T> forced = problem;
    forced.choice.variant = planSearch(setup, problem, k, false).variant;
    if (forced.choice.variant == Variant::Var1 && !heapPays) {
        forced.choice.variant = Variant::Buffered;
    }
    return forced.choice.variant == plan.variant
            ? plan
            : planSearch(setup, forced, candidates, predict);
}

template <class T>
void runCertified(const KnnProblem<T>& problem, const Setup<T>& setup) {
    if (setup.numQueries == 0) {
        return;
    }
    if (setup.numVectors == 0) {
        const T none = setup.similarity ? std::numeric_limits<T>::lowest()
                                        : std::numeric_limits<T>::max();
        std::fill_n(problem.outDistances, setup.numQueries * problem.k, none);
        std::fill_n(problem.outIds, setup.numQueries * problem.k, idx_t(-1));
        return;
    }
    CertifiedSearch<T>(problem, setup).run();
}

#define INSTANTIATE(T)                                               \
    template Plan planCandidates(                                    \
            const Setup<T>&, const Problem<T>&, idx_t, idx_t, bool); \
    template void runCertified(const KnnProblem<T>&, const Setup<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu
