#include "kernels/cpu/CertifiedRange.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/RangeBlock.h"
#include "kernels/cpu/RangeFinisher.h"
#include "kernels/cpu/RangeLengths.h"
#include "kernels/cpu/RangeSample.h"
#include "kernels/cpu/RangeScanner.h"
#include "kernels/cpu/RangeSweep.h"
#include "kernels/cpu/RangeTiles.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

namespace {

/// Up to so many queries, from so many components on, canonical distances of
/// all pairs are less work where nothing is packed.
constexpr idx_t kFewQueries = 8;
constexpr int kDeep = 32;

/// Of a batch of queries that scan unpacked vectors: bytes of the keys and ids
/// that a thread has of them and a piece, bytes of the queries themselves, and
/// the fewest.
constexpr idx_t kScanKeysBytes = 4 << 20, kScanQueriesBytes = 64 << 20;
constexpr idx_t kLeastScanned = 8;

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
constexpr double kOperationsPerRegion = 2e9;

/// A range search by canonical distances: of what the plain kernels find within
/// the radius and their error, or where much is in range, of all vectors.
template <class T>
class CertifiedRange {
   public:
    CertifiedRange(const Problem<T>& problem, const Setup<T>& setup, T limit)
            : problem_(problem),
              setup_(setup),
              limit_(limit),
              kernels_(canonicalKernelsFor<T>(setup.metric, setup.target)) {}

    RangeResult<T> run() {
        isUnbounded_.resize(setup_.numQueries);
        const Plan plan = planSearch(setup_, problem_, 0, false);
        if (plan.variant == Variant::Direct) {
            scanDirectly({setup_, nullptr}, plan.threads, false);
        } else if (areManyInRange(setup_, kernels_, limit_)) {
            takeAll({setup_, nullptr}, plan.threads);
        } else {
            sweepCandidates(plan.threads);
        }
        if (problem_.stats) {
            const idx_t unbounded = std::accumulate(
                    isUnbounded_.begin(), isUnbounded_.end(), idx_t(0));
            problem_.stats->certified += setup_.numQueries - unbounded;
            problem_.stats->repeated += unbounded;
            problem_.stats->rescored += rescored_;
        }
        return RangeBlock<T>::join(blocks_, setup_.numQueries);
    }

   private:
    /// Some of the queries.
    struct Part {
        const Setup<T>& setup;
        const idx_t* queries; ///< which they are of all; nullptr: they are all

        idx_t query(idx_t i) const {
            return queries ? queries[i] : i;
        }
    };

    Plan planOf(const Setup<T>& setup, Variant variant) const {
        Problem<T> problem = problem_;
        problem.choice.variant = variant;
        return planSearch(setup, problem, 0, false);
    }

    /// Canonical distances of all pairs.
    void takeAll(const Part& part, int threads) {
        if (problem_.choice.variant == Variant::Auto &&
            part.setup.numQueries <= kFewQueries && part.setup.depth >= kDeep) {
            scanDirectly(part, threads, true);
        } else {
            sweepAllPairs(part);
        }
    }

    void scanDirectly(const Part& part, int threads, bool takesAll) {
        std::vector<RangeScanner<T>> scanners;
        scanners.reserve(threads);
        for (int thread = 0; thread < threads; ++thread) {
            scanners.emplace_back(part.setup, kernels_, limit_, takesAll);
        }
        const idx_t q = part.setup.numQueries, piece = scanners[0].piece();
        constexpr idx_t kKeyBytes = sizeof(T) + sizeof(CandidateId<T>);
        const idx_t batch = std::max(
                kLeastScanned,
                std::min(
                        kScanKeysBytes / (kKeyBytes * piece),
                        kScanQueriesBytes /
                                (idx_t(sizeof(T) + sizeof(double)) *
                                 part.setup.depth)));
        const size_t firstBlock = blocks_.size();
        RangeQueries<T> queries;
        for (idx_t begin = 0; begin < q; begin += batch) {
            queries.prepare(
                    part.setup, kernels_, begin, std::min(batch, q - begin));
            scanBatch(part, begin, queries, scanners, firstBlock);
        }
        for (const RangeScanner<T>& scanner : scanners) {
            rescored_ += scanner.rescored();
        }
    }

    /// Blocks from firstBlock on: each of a stretch of the vectors.
    void scanBatch(
            const Part& part,
            idx_t firstQuery,
            const RangeQueries<T>& queries,
            std::vector<RangeScanner<T>>& scanners,
            size_t firstBlock) {
        // Whole pieces, some times as many stretches as threads.
        const int threads = int(scanners.size());
        const idx_t n = setup_.numVectors, piece = scanners[0].piece();
        const idx_t pieces = (n + piece - 1) / piece;
        const idx_t most = threads > 1 ? 8 * threads : 1;
        const double perPiece = operationsOf(setup_.metric) *
                double(queries.count()) * double(piece) * setup_.depth;
        idx_t perStretch = std::max<idx_t>(1, pieces / most);
        if (*setup_.interrupt) {
            perStretch = std::clamp<idx_t>(
                    idx_t(kOperationsPerRegion / perPiece), 1, perStretch);
        }
        const idx_t stretches = (pieces + perStretch - 1) / perStretch;
        blocks_.resize(
                std::max(blocks_.size(), firstBlock + size_t(stretches)));
        const idx_t perRegion = *setup_.interrupt ? threads *
                        std::max<idx_t>(1,
                                        idx_t(kOperationsPerRegion /
                                              (perPiece * double(perStretch))))
                                                  : stretches;
        for (idx_t begin = 0; begin < stretches; begin += perRegion) {
            parallelFor(
                    setup_.team,
                    threads,
                    std::min(perRegion, stretches - begin),
                    [&](idx_t i, int thread) {
                        const idx_t from = (begin + i) * perStretch * piece;
                        RangeBlock<T>& block = blocks_[firstBlock + begin + i];
                        scanners[thread].scan(
                                queries,
                                setup_.vectors,
                                from,
                                std::min(from + perStretch * piece, n),
                                [&](const auto& found) {
                                    return append(
                                            part.query(
                                                    firstQuery + found.query),
                                            found,
                                            block);
                                });
                    });
            setup_.callInterrupt();
        }
    }

    idx_t append(
            idx_t query,
            const typename RangeScanner<T>::Found& found,
            RangeBlock<T>& block) {
        if (found.isUnbounded) { // as another thread may find of its vectors
            std::atomic_ref<char>(isUnbounded_[query])
                    .store(1, std::memory_order_relaxed);
        }
        return block.template append<true>(
                query,
                found.keys,
                found.count,
                limit_,
                setup_.similarity,
                [&](idx_t i) { return setup_.idOf(found.ids[i]); });
    }

    void sweepAllPairs(const Part& part) {
        Setup<T> setup = part.setup.forVectors(0, setup_.numVectors);
        setup.metric = KernelMetric::Squares; // packed as they are
        setup.kernels.runTiles = kernels_.runTiles;
        Plan plan = planOf(setup, Variant::Buffered);
        plan.depthBlock = setup.depth;
        RangeTiles<T> tiles(setup, plan, problem_.choice.vectorBlock);
        const size_t firstBlock = blocks_.size();
        blocks_.resize(firstBlock + size_t(tiles.orders()));
        std::vector<std::vector<CandidateId<T>>> chosen(plan.threads);
        tiles.run([&](const RangeKeys<T>& keys) {
            std::vector<CandidateId<T>>& ids = chosen[keys.thread];
            ids.resize(keys.stride);
            for (idx_t row = 0; row < keys.rows; ++row) {
                NarrowJob<T> job;
                job.keys = job.outKeys = keys.keys + row * keys.stride;
                job.outIds = ids.data();
                job.count = keys.columns;
                const idx_t count = setup_.common.keepUnder(job, limit_).count;
                blocks_[firstBlock + keys.order].template append<true>(
                        part.query(keys.query + row),
                        job.outKeys,
                        count,
                        limit_,
                        setup_.similarity,
                        [&](idx_t i) {
                            return setup_.idOf(keys.first + ids[i]);
                        });
            }
        });
    }

    void sweepCandidates(int threads) {
        Lengths<T> lengths;
        measureLengths(setup_, lengths);
        Setup<T> setup = setup_.forVectors(0, setup_.numVectors);
        setup.lengths = &lengths;
        const ErrorBound<T> bound(setup, false);
        setup.lengths = nullptr; // they are known
        RangeFinisher<T> finisher(setup_, kernels_, limit_);
        std::vector<T> limits(setup_.numQueries);
        std::vector<idx_t> unbounded;
        for (idx_t i = 0; i < setup_.numQueries; ++i) {
            const T reach = bound.reachIfAny(limit_, finisher.query(i));
            limits[i] = limitAbove(reach);
            if (reach == std::numeric_limits<T>::infinity()) {
                isUnbounded_[i] = 1;
                unbounded.push_back(i);
            }
        }
        if (idx_t(unbounded.size()) < setup_.numQueries) {
            const Plan plan = planOf(setup, Variant::Buffered);
            blocks_.resize(plan.threads);
            sweepRange(
                    setup,
                    plan,
                    limits.data(),
                    [&](idx_t begin,
                        idx_t rows,
                        const RangeSelection<T>& selection) {
                        finisher.finish(
                                selection, begin, rows, plan.threads, blocks_);
                    });
        }
        rescored_ = finisher.rescored();
        if (!unbounded.empty()) {
            takeUnbounded(unbounded, threads);
        }
    }

    /// Queries whose candidates are all vectors.
    void takeUnbounded(const std::vector<idx_t>& queries, int threads) {
        std::vector<idx_t> rows(queries);
        for (idx_t& row : rows) {
            row = setup_.queries.ids ? setup_.queries.ids[row] : row;
        }
        const Setup<T> setup = setup_.forQueries(rows);
        const idx_t rescored = rescored_;
        takeAll({setup, queries.data()}, threads);
        rescored_ = rescored; // scans of repeated queries do not count
    }

    const Problem<T>& problem_;
    const Setup<T>& setup_;
    const T limit_; ///< of keys
    const CanonicalKernels<T> kernels_;
    /// What they have of a query follows each other, by ascending vectors.
    std::vector<RangeBlock<T>> blocks_;
    std::vector<char> isUnbounded_; ///< [queries]
    idx_t rescored_ = 0;
};

} // namespace

template <class T>
RangeResult<T> runCertifiedRange(
        const Problem<T>& problem,
        const Setup<T>& setup,
        T limit) {
    return CertifiedRange<T>(problem, setup, limit).run();
}

#define INSTANTIATE(T)                         \
    template RangeResult<T> runCertifiedRange( \
            const Problem<T>&, const Setup<T>&, T);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu
