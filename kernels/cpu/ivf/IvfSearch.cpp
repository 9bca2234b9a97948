#include "kernels/cpu/ivf/IvfSearch.h"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/ivf/IvfExact.h"

namespace faiss_bits::cpu {

namespace {

/// A thread is not worth starting for less than about 10 microseconds.
constexpr double kOperationsPerThread = 5e5;

/// Work between two calls of the interrupt hook, for one thread: about 20 ms;
/// and the most of a block, which no hook interrupts.
constexpr double kOperationsPerRegion = 2e9;
constexpr double kOperationsPerBlock = 2e10;

/// Candidates that a thread has at a time, and queries.
constexpr idx_t kBytesPerThread = 16 << 20;
constexpr idx_t kMostRows = 1024;

/// All threads go through the lists of the same queries where these are fewer a
/// thread, or their candidates in all parts no more than that: a list is packed
/// once, and met by more queries.
constexpr idx_t kRowsPerThread = 32;
constexpr idx_t kSharedBytes = 8 << 20;

/// Most queries of a block that is scanned row by row: as many as are finished
/// together.
constexpr idx_t kMostGathered = 32;

/// Rows that a thread finishes at a time where all share a block.
constexpr idx_t kRowsPerJob = 8;

idx_t partsOf(idx_t count, idx_t most) {
    return (count + most - 1) / most;
}

/// Some items for the threads: each begins with lists of its own, the same in
/// every search, which its cache may hold still, and helps the others then.
class ItemShares {
   public:
    ItemShares(
            const std::vector<IvfItem>& items,
            idx_t begin,
            idx_t end,
            idx_t numLists,
            int threads)
            : ends_(threads), next_(threads) {
        idx_t from = begin;
        for (int i = 0; i < threads; ++i) {
            next_[i] = from;
            const idx_t mostList =
                    idx_t(double(numLists) * (i + 1) / threads); // of the next
            while (from < end &&
                   (i + 1 == threads || items[from].list < mostList)) {
                ++from;
            }
            ends_[i] = from;
        }
    }

    /// The next item of a thread; -1: none is left.
    idx_t next(int thread) {
        const int threads = int(ends_.size());
        for (int i = 0; i < threads; ++i) {
            const int share = (thread + i) % threads;
            if (next_[share].load(std::memory_order_relaxed) < ends_[share]) {
                const idx_t item =
                        next_[share].fetch_add(1, std::memory_order_relaxed);
                if (item < ends_[share]) {
                    return item;
                }
            }
        }
        return -1;
    }

   private:
    std::vector<idx_t> ends_;
    std::vector<std::atomic<idx_t>> next_;
};

} // namespace

IvfSearch::IvfSearch(const IvfKnnProblem& problem, IvfSize size, int64_t target)
        : problem_(problem),
          size_(size),
          target_(target),
          metric_(problem.metric == Metric::L2 ? KernelMetric::L2
                                               : KernelMetric::Product),
          team_(problem.threads ? problem.threads : omp_get_max_threads()),
          threads_(std::max(
                  1,
                  int(std::min(
                          double(team_),
                          2 * size.numPairs * problem.d /
                                  kOperationsPerThread)))),
          left_(problem.numQueries) {
    std::iota(left_.begin(), left_.end(), idx_t(0));
}

void IvfSearch::run() {
    if (problem_.choice.way != IvfWay::Exact) {
        sweep(metric_);
    }
    const idx_t certified = problem_.numQueries - idx_t(left_.size());
    // Differences do not cancel: |q|^2 - 2 <q, x> + |x|^2 does.
    if (metric_ == KernelMetric::L2 && problem_.choice.way != IvfWay::Exact &&
        2 * tied_ <= idx_t(left_.size())) {
        sweep(KernelMetric::Squares);
    }
    searchExactly();
    if (problem_.stats) {
        problem_.stats->certified += certified;
        problem_.stats->repeated += problem_.numQueries - certified;
        problem_.stats->rescored += rescored_;
    }
}

IvfSetup IvfSearch::setupFor(KernelMetric metric, Lengths<float>* lengths)
        const {
    IvfSetup setup = {problem_, {}, {}, problem_.choice.way};
    // If other lists are about as long as those that are probed.
    setup.isNear = size_.numPairs / std::max(1.0, size_.numProbes) *
                    double(problem_.numLists) * problem_.d * sizeof(float) <=
            kNearBytes;
    setup.canonical = canonicalKernelsFor<float>(metric_, target_);
    Setup<float>& search = setup.search;
    search.metric = metric;
    search.similarity = isSimilarity(problem_.metric);
    search.depth = problem_.d;
    search.queries = {problem_.queries, problem_.d, left_.data()};
    search.numQueries = idx_t(left_.size());
    search.team = team_;
    search.target = target_;
    search.common = commonKernelsFor<float>(target_);
    search.kernels = metricKernelsFor<float>(metric, target_);
    search.interrupt = &problem_.interrupt;
    search.lengths = lengths;
    return setup;
}

void IvfSearch::sweep(KernelMetric metric) {
    if (left_.empty()) {
        return;
    }
    Lengths<float> lengths;
    const IvfSetup setup = setupFor(metric, &lengths);
    IvfOutcomes outcomes;
    outcomes.outcomes.assign(left_.size(), Outcome::Open);
    const idx_t rows = idx_t(left_.size());
    const idx_t bytes = 8 * ivfBufferShape(setup, size_.largestTotal).stride;
    const double perRow =
            2.0 * problem_.d * size_.numPairs / double(problem_.numQueries);
    const idx_t mostRows = std::max<idx_t>(
            1,
            problem_.choice.queryBlock
                    ? problem_.choice.queryBlock
                    : std::min(kMostRows, kBytesPerThread / bytes));
    const idx_t uninterrupted = problem_.interrupt
            ? std::max<idx_t>(1, idx_t(kOperationsPerBlock / (perRow + 1)))
            : mostRows;
    if (gathersLists(problem_, size_, threads_, rows)) {
        const idx_t most = std::clamp<idx_t>(
                INT32_MAX / std::max<idx_t>(1, size_.largestTotal),
                1,
                std::min({mostRows, uninterrupted, kMostGathered}));
        const idx_t blocks = roundUp(partsOf(rows, most), threads_);
        sweepByQueries(setup, partsOf(rows, blocks), true, outcomes);
        return endSweep(outcomes);
    }
    const bool byQueries = problem_.choice.sharing == IvfSharing::Auto
            ? rows >= kRowsPerThread * threads_ &&
                    rows * threads_ * bytes > kSharedBytes &&
                    std::min(mostRows, uninterrupted) >= kRowsPerThread
            : problem_.choice.sharing == IvfSharing::Queries;
    if (byQueries) {
        // As many blocks for each thread, of about as many queries.
        const idx_t blocks = roundUp(
                partsOf(rows, std::min(mostRows, uninterrupted)), threads_);
        sweepByQueries(setup, partsOf(rows, blocks), false, outcomes);
    } else {
        const idx_t most = problem_.choice.queryBlock
                ? mostRows
                : std::max<idx_t>(1, kBytesPerThread / bytes);
        sweepByLists(setup, partsOf(rows, partsOf(rows, most)), outcomes);
    }
    endSweep(outcomes);
}

void IvfSearch::endSweep(const IvfOutcomes& outcomes) {
    rescored_ += outcomes.rescored;
    std::vector<idx_t> left;
    tied_ = outcomes.tied;
    for (size_t i = 0; i < left_.size(); ++i) {
        if (outcomes.outcomes[i] != Outcome::Done) {
            left.push_back(left_[i]);
        }
    }
    left_ = std::move(left);
}

void IvfSearch::sweepByQueries(
        const IvfSetup& setup,
        idx_t blockRows,
        bool isGathered,
        IvfOutcomes& outcomes) {
    struct Worker {
        explicit Worker(const IvfSetup& setup)
                : selection(setup, 1), scanner(setup), finisher(setup) {}
        IvfBlock block;
        IvfSelection selection;
        IvfScanner scanner;
        IvfFinisher finisher;
    };
    std::vector<std::unique_ptr<Worker>> workers;
    for (int thread = 0; thread < threads_; ++thread) {
        workers.push_back(std::make_unique<Worker>(setup));
    }
    const idx_t rows = setup.search.numQueries;
    const idx_t blocks = partsOf(rows, blockRows);
    const double perBlock = 2.0 * problem_.d * double(blockRows) *
            size_.numPairs / double(problem_.numQueries);
    const idx_t perRegion = problem_.interrupt
            ? threads_ *
                    std::max<idx_t>(
                            1, idx_t(kOperationsPerRegion / (perBlock + 1)))
            : blocks;
    for (idx_t begin = 0; begin < blocks; begin += perRegion) {
        parallelFor(
                team_,
                threads_,
                std::min(perRegion, blocks - begin),
                [&](idx_t i, int thread) {
                    if (outcomes.isHopeless()) {
                        return;
                    }
                    Worker& mine = *workers[thread];
                    const idx_t first = (begin + i) * blockRows;
                    const idx_t count = std::min(blockRows, rows - first);
                    if (isGathered) {
                        mine.block.buildByRows(setup, first, count);
                        mine.selection.reset(mine.block);
                        for (idx_t row = 0; row < count; ++row) {
                            mine.selection.scanRow(row, mine.scanner);
                        }
                    } else {
                        mine.block.build(setup, first, count, INT32_MAX);
                        mine.selection.reset(mine.block);
                        for (const IvfItem& item : mine.block.items()) {
                            mine.selection.scan(item, 0, mine.scanner);
                        }
                    }
                    mine.finisher.finish(mine.selection, 0, count, outcomes);
                });
        setup.search.callInterrupt();
    }
}

void IvfSearch::sweepByLists(
        const IvfSetup& setup,
        idx_t batchRows,
        IvfOutcomes& outcomes) {
    std::vector<IvfScanner> scanners;
    std::vector<IvfFinisher> finishers;
    for (int thread = 0; thread < threads_; ++thread) {
        scanners.emplace_back(setup);
        finishers.emplace_back(setup);
    }
    // Pieces of lists, so that all threads have something to do.
    const idx_t tile = setup.search.common.tileVectors;
    const idx_t mostColumns = threads_ > 1 || problem_.interrupt
            ? std::clamp<idx_t>(
                      roundUp(size_.largestTotal / (8 * threads_), tile),
                      4 * tile,
                      1 << 20)
            : INT32_MAX;
    IvfBlock block;
    IvfSelection selection(setup, threads_);
    const idx_t rows = setup.search.numQueries;
    for (idx_t first = 0; first < rows && !outcomes.isHopeless();
         first += batchRows) {
        const idx_t count = std::min(batchRows, rows - first);
        block.build(setup, first, count, mostColumns);
        selection.reset(block);
        const std::vector<IvfItem>& items = block.items();
        const double perItem = 2.0 * problem_.d * block.numPairs() /
                std::max<double>(1, double(items.size()));
        const idx_t perRegion = problem_.interrupt
                ? threads_ *
                        std::max<idx_t>(
                                1, idx_t(kOperationsPerRegion / (perItem + 1)))
                : idx_t(items.size());
        for (idx_t begin = 0; begin < idx_t(items.size()); begin += perRegion) {
            ItemShares shares(
                    items,
                    begin,
                    std::min(begin + perRegion, idx_t(items.size())),
                    problem_.numLists,
                    threads_);
            parallelFor(team_, threads_, threads_, [&](idx_t, int thread) {
                for (idx_t i; (i = shares.next(thread)) >= 0;) {
                    selection.scan(items[i], thread, scanners[thread]);
                }
            });
            setup.search.callInterrupt();
        }
        parallelFor(
                team_,
                threads_,
                partsOf(count, kRowsPerJob),
                [&](idx_t i, int thread) {
                    const idx_t begin = i * kRowsPerJob;
                    finishers[thread].finish(
                            selection,
                            begin,
                            std::min(begin + kRowsPerJob, count),
                            outcomes);
                });
    }
}

void IvfSearch::searchExactly() {
    if (left_.empty()) {
        return;
    }
    Lengths<float> lengths;
    const IvfSetup setup = setupFor(metric_, &lengths);
    std::vector<IvfExactSearch> workers;
    for (int thread = 0; thread < threads_; ++thread) {
        workers.emplace_back(setup);
    }
    // Six times as much work as by float32, about.
    const double perRow =
            12.0 * problem_.d * size_.numPairs / double(problem_.numQueries);
    const idx_t rows = idx_t(left_.size());
    const idx_t perRegion = problem_.interrupt ? threads_ *
                    std::max<idx_t>(1,
                                    idx_t(kOperationsPerRegion / (perRow + 1)))
                                               : rows;
    for (idx_t begin = 0; begin < rows; begin += perRegion) {
        parallelFor(
                team_,
                threads_,
                std::min(perRegion, rows - begin),
                [&](idx_t i, int thread) { workers[thread].run(begin + i); });
        setup.search.callInterrupt();
    }
    left_.clear();
}

} // namespace faiss_bits::cpu
