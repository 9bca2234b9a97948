#include "kernels/cpu/PairsByRows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/SortEntries.h"
#include "kernels/cpu/WriteNearest.h"

namespace faiss_bits::cpu {

namespace {

/// Room for a vector behind the last key.
constexpr idx_t kSlack = 16;

/// Queries that a thread takes at a time, at most.
constexpr idx_t kMostTogether = 16;

class RowSearch {
   public:
    RowSearch(const KnnProblem<float>& problem, const Setup<float>& setup)
            : problem_(problem),
              setup_(setup),
              kernels_(canonicalKernelsFor<float>(setup.metric, setup.target)),
              n_(setup.numVectors),
              k_(std::min(problem.k, n_)),
              threads_(threadsFor()),
              together_(togetherFor()) {
        if (setup.numQueries % kMostPairQueries == 1) {
            ids_.allocate(n_);
            std::iota(ids_.get(), ids_.get() + n_, CandidateId<float>(0));
        }
        sumSquares();
        scratch_.resize(threads_);
        for (Scratch& mine : scratch_) {
            mine.widened.allocate(
                    kMostPairQueries * roundUp(setup.depth, kCanonicalSlots));
            mine.keys.allocate(
                    std::min(together_, setup.numQueries) * keyStride());
            mine.ids.allocate(n_ + kSlack);
            mine.entries.allocate(n_ + kSlack);
            mine.sorted.allocate(n_ + kSlack);
        }
    }

    void run() {
        const idx_t q = setup_.numQueries;
        const idx_t perRegion = *setup_.interrupt ? regionQueries() : q;
        for (idx_t begin = 0; begin < q; begin += perRegion) {
            const idx_t count = std::min(perRegion, q - begin);
            parallelFor(
                    setup_.team,
                    threads_,
                    (count + together_ - 1) / together_,
                    [&](idx_t job, int thread) {
                        const idx_t first = job * together_;
                        runSome(begin + first,
                                std::min(together_, count - first),
                                scratch_[thread]);
                    });
            setup_.callInterrupt();
        }
    }

   private:
    struct Scratch {
        AlignedBuffer<double> widened;
        AlignedBuffer<float> keys;
        AlignedBuffer<CandidateId<float>> ids;
        AlignedBuffer<OrderedEntry<float>> entries, sorted;
    };

    double pairWork() const {
        return double(n_) * setup_.depth;
    }

    /// Threads that are worth their start, each for whole groups of queries.
    int threadsFor() const {
        constexpr double kWork = 2e5;
        const double threads = double(setup_.numQueries) * pairWork() / kWork;
        const idx_t groups =
                (setup_.numQueries + kMostPairQueries - 1) / kMostPairQueries;
        return int(std::clamp<idx_t>(
                idx_t(std::min(double(setup_.team), threads)), 1, groups));
    }

    idx_t togetherFor() const {
        const idx_t share = (setup_.numQueries + threads_ - 1) / threads_;
        return std::min(roundUp(share, kMostPairQueries), kMostTogether);
    }

    /// Between two calls of the interrupt hook: about 20 ms.
    idx_t regionQueries() const {
        constexpr double kWork = 2e8;
        const double jobs = kWork / (pairWork() * double(together_));
        return std::max<idx_t>(1, idx_t(jobs)) * together_ * threads_;
    }

    idx_t keyStride() const {
        return roundUp(n_ + kSlack, 16);
    }

    void runSome(idx_t first, idx_t count, Scratch& mine) {
        PairJob<float> job;
        job.queries = setup_.queries;
        job.firstQuery = first;
        job.numQueries = count % kMostPairQueries == 1 ? count - 1 : count;
        job.vectors = setup_.vectors;
        job.numVectors = n_;
        job.vectorSquares = squares_.get();
        job.keys = mine.keys.get();
        job.keyStride = keyStride();
        job.depth = setup_.depth;
        job.widened = mine.widened.get();
        kernels_.pairDistances(job);
        if (job.numQueries < count) {
            runAlone(
                    first + job.numQueries,
                    job.keys + job.numQueries * job.keyStride,
                    mine);
        }
        for (idx_t i = 0; i < count; ++i) {
            writeRow(first + i, job.keys + i * job.keyStride, mine);
        }
    }

    /// Of the vectors, where so many queries meet them that it is less work.
    void sumSquares() {
        constexpr idx_t kQueries = 8;
        if (kernels_.sumSquares && setup_.numQueries >= kQueries) {
            squares_.allocate(n_);
            kernels_.sumSquares(
                    setup_.vectors, 0, n_, setup_.depth, squares_.get());
        }
    }

    /// The one query of a job that has no other beside it.
    void runAlone(idx_t query, float* keys, Scratch& mine) {
        RescoreList<float> list;
        list.query.components = mine.widened.get();
        kernels_.prepareQuery(
                setup_.queries.row(query), setup_.depth, list.query);
        list.ids = ids_.get();
        list.count = n_;
        list.keys = keys;
        RescoreJob<float> job;
        job.lists = &list;
        job.numLists = 1;
        job.vectors = setup_.vectors;
        job.vectorSquares = squares_.get();
        job.depth = setup_.depth;
        kernels_.rescore(job);
    }

    /// The place of the least number of a row of keys, or -1.
    idx_t nearest(const float* keys) const {
        constexpr idx_t kLanes = 16;
        constexpr float kNone = std::numeric_limits<float>::infinity();
        float lanes[kLanes];
        std::fill_n(lanes, kLanes, kNone);
        idx_t i = 0;
        for (; i + kLanes <= n_; i += kLanes) {
            for (idx_t j = 0; j < kLanes; ++j) {
                const float key = keys[i + j];
                lanes[j] = key < lanes[j] ? key : lanes[j];
            }
        }
        float best = kNone;
        for (; i < n_; ++i) {
            best = keys[i] < best ? keys[i] : best;
        }
        for (const float lane : lanes) {
            best = lane < best ? lane : best;
        }
        const float* const place = std::find(keys, keys + n_, best);
        return place < keys + n_ ? place - keys : -1;
    }

    /// The k nearest of a row of keys; NaN is no result.
    void writeRow(idx_t query, float* keys, Scratch& mine) {
        float* const distances = problem_.outDistances + query * problem_.k;
        idx_t* const ids = problem_.outIds + query * problem_.k;
        if (problem_.k > 1) {
            const OrderedEntry<float>* sorted = sortNearest(keys, mine);
            writeNearest(setup_, sorted, k_, distances, ids, problem_.k);
            return;
        }
        const idx_t place = nearest(keys);
        if (place < 0) {
            writeNearest<float>(setup_, nullptr, 0, distances, ids, 1);
            return;
        }
        *distances = setup_.similarity ? -keys[place] : keys[place];
        *ids = setup_.idOf(CandidateId<float>(place));
    }

    /// k entries or more of a row of keys, the nearest first.
    const OrderedEntry<float>* sortNearest(float* keys, Scratch& mine) const {
        const CandidateId<float>* ids = nullptr;
        idx_t count = n_;
        NarrowJob<float> job;
        job.k = k_;
        job.most = k_ + std::max<idx_t>(16, k_ / 8);
        if (count > job.most) {
            job.keys = job.outKeys = keys;
            job.count = count;
            job.outIds = mine.ids.get();
            count = setup_.common.narrow(job).count;
            ids = job.outIds;
        }
        const OrderRange<float> range = setup_.common.makeEntries(
                keys, ids, 0, count, mine.entries.get());
        return sortEntries<float>(
                mine.entries.get(), mine.sorted.get(), count, true, range);
    }

    const KnnProblem<float>& problem_;
    const Setup<float>& setup_;
    const CanonicalKernels<float> kernels_;
    const idx_t n_, k_;
    const int threads_;
    const idx_t together_;
    AlignedBuffer<double> squares_;
    AlignedBuffer<CandidateId<float>> ids_; ///< for queries alone
    std::vector<Scratch> scratch_;
};

} // namespace

void runByRows(const KnnProblem<float>& problem, const Setup<float>& setup) {
    RowSearch(problem, setup).run();
}

} // namespace faiss_bits::cpu
