#include "kernels/cpu/CertifiedRange.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/RangeBlock.h"
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

/// Queries whose candidates are given canonical keys together.
constexpr idx_t kRowsTogether = 16;

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
        const Plan plan = planSearch(setup_, problem_, 0, false);
        const bool isFree = problem_.choice.variant == Variant::Auto;
        if (plan.variant == Variant::Direct) {
            scanDirectly(plan.threads, false);
        } else if (areManyInRange(setup_, kernels_, limit_)) {
            if (isFree && setup_.numQueries <= kFewQueries &&
                setup_.depth >= kDeep) {
                scanDirectly(plan.threads, true);
            } else {
                sweepAllPairs();
            }
        } else {
            sweepCandidates();
        }
        if (problem_.stats) {
            problem_.stats->certified += setup_.numQueries - unbounded_;
            problem_.stats->repeated += unbounded_;
            problem_.stats->rescored += rescored_;
        }
        return RangeBlock<T>::join(blocks_, setup_.numQueries);
    }

   private:
    Plan planOf(const Setup<T>& setup, Variant variant) const {
        Problem<T> problem = problem_;
        problem.choice.variant = variant;
        return planSearch(setup, problem, 0, false);
    }

    void scanDirectly(int threads, bool takesAll) {
        RangeQueries<T> queries;
        queries.prepare(setup_, kernels_, 0, setup_.numQueries);
        std::vector<RangeScanner<T>> scanners;
        scanners.reserve(threads);
        for (int thread = 0; thread < threads; ++thread) {
            scanners.emplace_back(setup_, kernels_, limit_, takesAll);
        }
        // Whole pieces, some times as many parts as threads.
        const idx_t n = setup_.numVectors, piece = scanners[0].piece();
        const idx_t pieces = (n + piece - 1) / piece;
        const idx_t mostParts = threads > 1 ? 8 * threads : 1;
        const double perPiece = operationsOf(setup_.metric) *
                double(setup_.numQueries) * double(piece) * setup_.depth;
        idx_t perPart = std::max<idx_t>(1, pieces / mostParts);
        if (*setup_.interrupt) {
            perPart = std::clamp<idx_t>(
                    idx_t(kOperationsPerRegion / perPiece), 1, perPart);
        }
        const idx_t parts = (pieces + perPart - 1) / perPart;
        blocks_.resize(parts);
        const idx_t perRegion = *setup_.interrupt ? threads *
                        std::max<idx_t>(1,
                                        idx_t(kOperationsPerRegion /
                                              (perPiece * double(perPart))))
                                                  : parts;
        for (idx_t begin = 0; begin < parts; begin += perRegion) {
            parallelFor(
                    setup_.team,
                    threads,
                    std::min(perRegion, parts - begin),
                    [&](idx_t i, int thread) {
                        const idx_t part = begin + i;
                        scanPart(
                                queries,
                                part * perPart * piece,
                                std::min((part + 1) * perPart * piece, n),
                                scanners[thread],
                                blocks_[part]);
                    });
            setup_.callInterrupt();
        }
        for (const RangeScanner<T>& scanner : scanners) {
            rescored_ += scanner.rescored();
        }
    }

    void scanPart(
            const RangeQueries<T>& queries,
            idx_t begin,
            idx_t end,
            RangeScanner<T>& scanner,
            RangeBlock<T>& block) {
        scanner.scan(
                queries,
                setup_.vectors,
                begin,
                end,
                [&](const typename RangeScanner<T>::Found& found) {
                    return block.append(
                            found.query,
                            found.keys,
                            found.count,
                            limit_,
                            setup_.similarity,
                            [&](idx_t i) { return setup_.idOf(found.ids[i]); });
                });
    }

    void sweepAllPairs() {
        Setup<T> setup = setup_.forVectors(0, setup_.numVectors);
        setup.metric = KernelMetric::Squares; // packed as they are
        setup.kernels.runTiles = kernels_.runTiles;
        Plan plan = planOf(setup, Variant::Buffered);
        plan.depthBlock = setup.depth;
        RangeTiles<T> tiles(setup, plan, problem_.choice.vectorBlock);
        blocks_.resize(tiles.orders());
        std::vector<Chosen> chosen(plan.threads);
        tiles.run([&](const RangeKeys<T>& keys) {
            Chosen& mine = chosen[keys.thread];
            mine.ids.resize(keys.stride);
            for (idx_t row = 0; row < keys.rows; ++row) {
                NarrowJob<T> job;
                job.keys = job.outKeys = keys.keys + row * keys.stride;
                job.outIds = mine.ids.data();
                job.count = keys.columns;
                const idx_t count = setup_.common.keepUnder(job, limit_).count;
                append(blocks_[keys.order],
                       keys.query + row,
                       job.outKeys,
                       job.outIds,
                       count,
                       keys.first);
            }
        });
    }

    void sweepCandidates() {
        Lengths<T> lengths;
        measureLengths(setup_, lengths);
        Setup<T> setup = setup_.forVectors(0, setup_.numVectors);
        setup.lengths = &lengths;
        const ErrorBound<T> bound(setup, false);
        setup.lengths = nullptr; // they are known
        prepare();
        std::vector<T> limits(setup_.numQueries);
        constexpr T kInfinity = std::numeric_limits<T>::infinity();
        for (idx_t i = 0; i < setup_.numQueries; ++i) {
            const CanonicalQuery query = prepared(i);
            const T reach = std::isnan(query.squares)
                    ? -kInfinity // a query with NaN has no result
                    : bound.reach(limit_, query);
            // What is at the limit is within it. Nothing is below -infinity;
            // all vectors of a query without a bound are its candidates.
            limits[i] = reach < kInfinity && reach > -kInfinity
                    ? std::nextafter(reach, kInfinity)
                    : -kInfinity;
            isUnbounded_[i] = reach == kInfinity;
        }
        unbounded_ = std::accumulate(
                isUnbounded_.begin(), isUnbounded_.end(), idx_t(0));
        const Plan plan = planOf(setup, Variant::Buffered);
        blocks_.resize(plan.threads);
        std::vector<Chosen> chosen(plan.threads);
        sweepRange(
                setup,
                plan,
                limits.data(),
                [&](idx_t begin,
                    idx_t rows,
                    const RangeSelection<T>& selection) {
                    parallelFor(
                            setup.team,
                            plan.threads,
                            (rows + kRowsTogether - 1) / kRowsTogether,
                            [&](idx_t i, int thread) {
                                const idx_t row = i * kRowsTogether;
                                finish(selection,
                                       begin,
                                       row,
                                       std::min(kRowsTogether, rows - row),
                                       chosen[thread],
                                       blocks_[thread]);
                            });
                });
    }

    /// All queries in float64.
    void prepare() {
        constexpr idx_t kPerJob = 64;
        const idx_t q = setup_.numQueries;
        stride_ = roundUp(setup_.depth, kCanonicalSlots);
        components_.allocate(q * stride_);
        squares_.resize(q);
        absolutes_.resize(q);
        isUnbounded_.resize(q);
        parallelFor(
                setup_.team,
                setup_.team,
                (q + kPerJob - 1) / kPerJob,
                [&](idx_t job, int) {
                    const idx_t end = std::min((job + 1) * kPerJob, q);
                    for (idx_t i = job * kPerJob; i < end; ++i) {
                        CanonicalQuery query = prepared(i);
                        kernels_.prepareQuery(
                                setup_.queries.row(i), setup_.depth, query);
                        squares_[i] = query.squares;
                        absolutes_[i] = query.absolutes;
                    }
                });
    }

    CanonicalQuery prepared(idx_t i) const {
        CanonicalQuery query;
        query.components = components_.get() + i * stride_;
        query.squares = squares_[i];
        query.absolutes = absolutes_[i];
        return query;
    }

    /// Scratch of a thread.
    struct Chosen {
        std::vector<CandidateId<T>> ids;
        std::vector<T> keys;
    };

    /// Canonical distances of the candidates of some rows of a batch.
    void finish(
            const RangeSelection<T>& selection,
            idx_t firstQuery,
            idx_t firstRow,
            idx_t rows,
            Chosen& chosen,
            RangeBlock<T>& block) {
        idx_t queries[kRowsTogether];
        idx_t counts[kRowsTogether];
        idx_t numLists = 0;
        chosen.ids.clear();
        for (idx_t row = firstRow; row < firstRow + rows; ++row) {
            const idx_t query = firstQuery + row;
            const size_t before = chosen.ids.size();
            if (isUnbounded_[query]) {
                chosen.ids.resize(before + setup_.numVectors);
                std::iota(
                        chosen.ids.begin() + before,
                        chosen.ids.end(),
                        CandidateId<T>(0));
            }
            for (int part = 0; part < selection.parts(); ++part) {
                for (const RangeHit<T>& hit : selection.hits(part, row)) {
                    chosen.ids.push_back(hit.id);
                }
            }
            if (chosen.ids.size() > before) {
                queries[numLists] = query;
                counts[numLists++] = idx_t(chosen.ids.size() - before);
            }
        }
        chosen.keys.resize(chosen.ids.size());
        RescoreList<T> lists[kRowsTogether];
        idx_t from = 0;
        for (idx_t i = 0; i < numLists; ++i) {
            lists[i] = {
                    prepared(queries[i]),
                    chosen.ids.data() + from,
                    counts[i],
                    chosen.keys.data() + from};
            from += counts[i];
        }
        RescoreJob<T> job;
        job.lists = lists;
        job.numLists = numLists;
        job.vectors = setup_.vectors;
        job.depth = setup_.depth;
        job.power = double(setup_.power);
        kernels_.rescore(job);
        rescored_.fetch_add(from, std::memory_order_relaxed);
        for (idx_t i = 0; i < numLists; ++i) {
            append(block,
                   queries[i],
                   lists[i].keys,
                   lists[i].ids,
                   counts[i],
                   0);
        }
    }

    void append(
            RangeBlock<T>& block,
            idx_t query,
            const T* keys,
            const CandidateId<T>* ids,
            idx_t count,
            idx_t firstId) {
        block.append(
                query, keys, count, limit_, setup_.similarity, [&](idx_t i) {
                    return setup_.idOf(firstId + ids[i]);
                });
    }

    const Problem<T>& problem_;
    const Setup<T>& setup_;
    const T limit_; ///< of keys
    const CanonicalKernels<T> kernels_;
    std::vector<RangeBlock<T>> blocks_; ///< by ascending vectors
    std::atomic<idx_t> rescored_{0};
    idx_t stride_ = 0;
    AlignedBuffer<double> components_; ///< [queries, stride]
    std::vector<double> squares_, absolutes_;
    std::vector<char> isUnbounded_; ///< [queries]
    idx_t unbounded_ = 0;
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
