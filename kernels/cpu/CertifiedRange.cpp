#include "kernels/cpu/CertifiedRange.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/ErrorBound.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/RangeSweep.h"
#include "kernels/cpu/SearchPlan.h"

namespace faiss_bits::cpu {

namespace {

/// A range search by canonical distances: what the plain kernels find within
/// the radius and their error, or where there is no bound of it, or they find
/// much, all vectors.
template <class T>
class CertifiedRange {
   public:
    CertifiedRange(const Problem<T>& problem, const Setup<T>& setup, T limit)
            : problem_(problem),
              setup_(setup),
              limit_(limit),
              kernels_(canonicalKernelsFor<T>(setup.metric, setup.target)),
              found_(setup.numQueries) {}

    void run(RangeResult<T>& result) {
        Lengths<T> lengths;
        measure(lengths);
        const std::vector<idx_t> none;
        Setup<T> setup = setup_.forQueries(none);
        setup.lengths = &lengths;
        const Plan plan = planSearch(setup_, problem_, 0, false);
        const ErrorBound<T> bound(setup, plan.variant == Variant::Direct);
        std::vector<T> limits;
        std::vector<idx_t> queries, scanned;
        prepare();
        for (idx_t i = 0; i < setup_.numQueries; ++i) {
            if (std::isnan(squares_[i])) {
                continue; // a query with NaN has no result
            }
            const T reach = bound.reach(limit_, prepared(i));
            if (reach < std::numeric_limits<T>::infinity()) {
                queries.push_back(i);
                limits.push_back(std::nextafter(
                        reach, std::numeric_limits<T>::infinity()));
            } else {
                scanned.push_back(i);
            }
        }
        filter(queries, limits, scanned);
        scan(scanned);
        for (const RangeHits<T>& hits : found_) {
            appendHits(setup_, hits, result);
        }
        if (problem_.stats) {
            const idx_t repeated = idx_t(scanned.size());
            problem_.stats->certified += setup_.numQueries - repeated;
            problem_.stats->repeated += repeated;
            problem_.stats->rescored += rescored_;
        }
    }

   private:
    /// The lengths of all vectors, for metrics that need them.
    void measure(Lengths<T>& lengths) {
        if (setup_.metric != KernelMetric::Product &&
            setup_.metric != KernelMetric::Cosine) {
            return;
        }
        const idx_t tile = setup_.common.tileVectors;
        const idx_t chunk = tile * 4;
        const idx_t chunks = (setup_.numVectors + chunk - 1) / chunk;
        std::vector<AlignedBuffer<T>> panels(setup_.team), terms(setup_.team);
        for (int i = 0; i < setup_.team; ++i) {
            panels[i].allocate(chunk * setup_.depth);
            terms[i].allocate(chunk);
        }
        parallelFor(setup_.team, setup_.team, chunks, [&](idx_t i, int thread) {
            PackJob<T> job;
            job.rows = setup_.vectors;
            job.begin = i * chunk;
            job.count = std::min(chunk, setup_.numVectors - job.begin);
            job.depth = setup_.depth;
            job.panels = panels[thread].get();
            job.terms = terms[thread].get();
            setup_.common.packVectors(job, setup_.metric);
            noteLengths(
                    lengths,
                    setup_.metric,
                    setup_.vectors,
                    setup_.depth,
                    job.begin,
                    job.count,
                    job.terms);
        });
    }

    /// All queries in float64.
    void prepare() {
        stride_ = roundUp(setup_.depth, kCanonicalSlots);
        components_.allocate(setup_.numQueries * stride_);
        squares_.resize(setup_.numQueries);
        absolutes_.resize(setup_.numQueries);
        for (idx_t i = 0; i < setup_.numQueries; ++i) {
            CanonicalQuery query = prepared(i);
            kernels_.prepareQuery(setup_.queries.row(i), setup_.depth, query);
            squares_[i] = query.squares;
            absolutes_[i] = query.absolutes;
        }
    }

    CanonicalQuery prepared(idx_t i) const {
        CanonicalQuery query;
        query.components = components_.get() + i * stride_;
        query.squares = squares_[i];
        query.absolutes = absolutes_[i];
        return query;
    }

    /// Rows of the caller's queries.
    std::vector<idx_t> rowsOf(const std::vector<idx_t>& queries) const {
        std::vector<idx_t> rows(queries);
        for (idx_t& row : rows) {
            row = setup_.queries.ids ? setup_.queries.ids[row] : row;
        }
        return rows;
    }

    void filter(
            const std::vector<idx_t>& queries,
            const std::vector<T>& limits,
            std::vector<idx_t>& scanned) {
        if (queries.empty()) {
            return;
        }
        // From here on computing all distances in tiles is less work.
        const idx_t many = std::max<idx_t>(64, setup_.numVectors / 8);
        const std::vector<idx_t> rows = rowsOf(queries);
        const Setup<T> setup = setup_.forQueries(rows);
        // The arithmetic is that of the whole batch: Direct or not.
        Problem<T> problem = problem_;
        problem.choice.variant = planSearch(setup_, problem_, 0, false).variant;
        const Plan plan = planSearch(setup, problem, 0, false);
        sweepRange(setup, plan, limits.data(), [&](idx_t i, RangeHits<T> hits) {
            if (idx_t(hits.size()) > many) {
                scanned.push_back(queries[i]);
            } else {
                found_[queries[i]] = std::move(hits);
            }
        });
        parallelFor(
                setup_.team,
                setup_.team,
                idx_t(queries.size()),
                [&](idx_t i, int) { rescore(queries[i]); });
        std::sort(scanned.begin(), scanned.end());
    }

    void rescore(idx_t query) {
        RangeHits<T>& hits = found_[query];
        std::vector<CandidateId<T>> ids;
        for (const RangeHit<T>& hit : hits) {
            ids.push_back(hit.id);
        }
        std::vector<T> keys(hits.size());
        const RescoreList<T> list = {
                prepared(query), ids.data(), idx_t(ids.size()), keys.data()};
        RescoreJob<T> job;
        job.lists = &list;
        job.numLists = list.count > 0;
        job.vectors = setup_.vectors;
        job.depth = setup_.depth;
        job.power = double(setup_.power);
        kernels_.rescore(job);
        rescored_.fetch_add(list.count);
        size_t kept = 0;
        for (size_t i = 0; i < keys.size(); ++i) {
            if (keys[i] < limit_) {
                hits[kept++] = {keys[i], ids[i]};
            }
        }
        hits.resize(kept);
    }

    /// Canonical distances of all vectors.
    void scan(const std::vector<idx_t>& queries) {
        if (queries.empty()) {
            return;
        }
        const std::vector<idx_t> rows = rowsOf(queries);
        Setup<T> setup = setup_.forQueries(rows);
        setup.metric = KernelMetric::Squares;
        setup.kernels.runTiles = kernels_.runTiles;
        Problem<T> problem = problem_;
        problem.choice.variant = Variant::Buffered;
        problem.choice.depthBlock = setup.depth;
        const Plan plan = planSearch(setup, problem, 0, false);
        const std::vector<T> limits(queries.size(), limit_);
        sweepRange(setup, plan, limits.data(), [&](idx_t i, RangeHits<T> hits) {
            found_[queries[i]] = std::move(hits);
        });
    }

    const Problem<T>& problem_;
    const Setup<T>& setup_;
    const T limit_; ///< of keys
    CanonicalKernels<T> kernels_;
    std::vector<RangeHits<T>> found_; ///< [queries]
    idx_t stride_ = 0;
    AlignedBuffer<double> components_; ///< [queries, stride]
    std::vector<double> squares_, absolutes_;
    std::atomic<idx_t> rescored_{0};
};

} // namespace

template <class T>
void runCertifiedRange(
        const Problem<T>& problem,
        const Setup<T>& setup,
        T limit,
        RangeResult<T>& result) {
    CertifiedRange<T>(problem, setup, limit).run(result);
}

#define INSTANTIATE(T)               \
    template void runCertifiedRange( \
            const Problem<T>&, const Setup<T>&, T, RangeResult<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

} // namespace faiss_bits::cpu
