#include "kernels/cpu/RangeFinisher.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/CostModel.h"
#include "kernels/cpu/ParallelFor.h"

namespace faiss_bits::cpu {

namespace {

/// Queries whose candidates are given canonical keys together.
constexpr idx_t kRowsTogether = 16;

/// Candidates of a job, at least and at most, and their components: scratch of
/// a thread, and work that no hook interrupts.
constexpr idx_t kLeastTogether = 1024, kMostTogether = 1 << 18;
constexpr idx_t kValuesTogether = 1 << 26;

/// Work between two calls of the interrupt hook, for one thread: about 20 ms.
/// Less than of plain kernels: it is in float64, of rows here and there.
constexpr double kOperationsPerRegion = 5e8;

template <class T>
idx_t countOf(const RangeSelection<T>& selection, idx_t row) {
    idx_t count = 0;
    for (int part = 0; part < selection.parts(); ++part) {
        count += idx_t(selection.hits(part, row).size());
    }
    return count;
}

/// Candidates begin .. begin + count - 1 of a row, behind `ids`.
template <class T>
void collect(
        const RangeSelection<T>& selection,
        idx_t row,
        idx_t begin,
        idx_t count,
        std::vector<CandidateId<T>>& ids) {
    for (int part = 0; part < selection.parts() && count > 0; ++part) {
        const RangeHits<T>& hits = selection.hits(part, row);
        const idx_t size = idx_t(hits.size());
        const idx_t from = std::min(begin, size);
        const idx_t to = from + std::min(count, size - from);
        for (idx_t i = from; i < to; ++i) {
            ids.push_back(hits[i].id);
        }
        begin -= from;
        count -= to - from;
    }
}

} // namespace

template <class T>
RangeFinisher<T>::RangeFinisher(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        T limit)
        : setup_(setup),
          kernels_(kernels),
          limit_(limit),
          most_(std::clamp(
                  kValuesTogether / setup.depth,
                  kLeastTogether,
                  kMostTogether)) {
    prepare();
}

template <class T>
void RangeFinisher<T>::prepare() {
    constexpr idx_t kPerJob = 64;
    const idx_t q = setup_.numQueries;
    stride_ = roundUp(setup_.depth, kCanonicalSlots);
    components_.allocate(q * stride_);
    squares_.resize(q);
    absolutes_.resize(q);
    parallelFor(
            setup_.team,
            setup_.team,
            (q + kPerJob - 1) / kPerJob,
            [&](idx_t job, int) {
                const idx_t end = std::min((job + 1) * kPerJob, q);
                for (idx_t i = job * kPerJob; i < end; ++i) {
                    CanonicalQuery prepared = query(i);
                    kernels_.prepareQuery(
                            setup_.queries.row(i), setup_.depth, prepared);
                    squares_[i] = prepared.squares;
                    absolutes_[i] = prepared.absolutes;
                }
            });
}

template <class T>
CanonicalQuery RangeFinisher<T>::query(idx_t i) const {
    CanonicalQuery query;
    query.components = components_.get() + i * stride_;
    query.squares = squares_[i];
    query.absolutes = absolutes_[i];
    return query;
}

template <class T>
void RangeFinisher<T>::finish(
        const RangeSelection<T>& selection,
        idx_t first,
        idx_t rows,
        int threads,
        std::vector<RangeBlock<T>>& blocks) {
    chosen_.resize(threads);
    next_ = nextCandidate_ = 0;
    for (bool isFirst = true; next_ < rows; isFirst = false) {
        if (!isFirst) {
            setup_.callInterrupt();
        }
        cutJobs(selection, rows, threads, blocks);
        parallelFor(
                setup_.team,
                threads,
                idx_t(jobs_.size()),
                [&](idx_t i, int thread) {
                    const Job& job = jobs_[i];
                    runJob(selection,
                           first,
                           job,
                           chosen_[thread],
                           blocks[job.block < 0 ? thread : job.block]);
                });
    }
}

template <class T>
void RangeFinisher<T>::cutJobs(
        const RangeSelection<T>& selection,
        idx_t rows,
        int threads,
        std::vector<RangeBlock<T>>& blocks) {
    jobs_.clear();
    const double perCandidate = operationsOf(setup_.metric) * setup_.depth;
    double left = *setup_.interrupt
            ? kOperationsPerRegion * threads / perCandidate
            : std::numeric_limits<double>::infinity();
    while (next_ < rows && left > 0) {
        const idx_t count = countOf(selection, next_);
        if (count > most_) { // pieces, which threads share
            const idx_t begin = nextCandidate_;
            const idx_t piece = std::min(most_, count - begin);
            idx_t block = -1;
            if (threads > 1) { // the order of the pieces is that of blocks
                block = idx_t(blocks.size());
                blocks.emplace_back();
            }
            jobs_.push_back({next_, 1, begin, piece, block});
            nextCandidate_ += piece;
            if (nextCandidate_ == count) {
                nextCandidate_ = 0;
                ++next_;
            }
            rescored_ += piece;
            left -= double(piece);
            continue;
        }
        Job job = {next_, 0, 0, 0, -1};
        for (idx_t more = count; job.count + more <= most_;) {
            job.count += more;
            ++job.rows;
            if (++next_ == rows || job.rows == kRowsTogether) {
                break;
            }
            more = countOf(selection, next_);
        }
        if (job.count > 0) {
            jobs_.push_back(job);
        }
        rescored_ += job.count;
        left -= double(job.count);
    }
}

template <class T>
void RangeFinisher<T>::runJob(
        const RangeSelection<T>& selection,
        idx_t first,
        const Job& job,
        Chosen& chosen,
        RangeBlock<T>& block) const {
    idx_t queries[kRowsTogether];
    RescoreList<T> lists[kRowsTogether];
    idx_t numLists = 0;
    chosen.ids.clear();
    for (idx_t row = job.row; row < job.row + job.rows; ++row) {
        const size_t before = chosen.ids.size();
        collect(selection,
                row,
                job.begin,
                job.count - idx_t(before),
                chosen.ids);
        if (chosen.ids.size() > before) {
            queries[numLists] = first + row;
            lists[numLists].query = query(first + row);
            lists[numLists++].count = idx_t(chosen.ids.size() - before);
        }
    }
    chosen.keys.resize(chosen.ids.size());
    idx_t from = 0;
    for (idx_t i = 0; i < numLists; ++i) {
        lists[i].ids = chosen.ids.data() + from;
        lists[i].keys = chosen.keys.data() + from;
        from += lists[i].count;
    }
    RescoreJob<T> rescore;
    rescore.lists = lists;
    rescore.numLists = numLists;
    rescore.vectors = setup_.vectors;
    rescore.depth = setup_.depth;
    rescore.power = double(setup_.power);
    kernels_.rescore(rescore);
    for (idx_t i = 0; i < numLists; ++i) {
        const CandidateId<T>* ids = lists[i].ids;
        block.template append<true>(
                queries[i],
                lists[i].keys,
                lists[i].count,
                limit_,
                setup_.similarity,
                [&](idx_t j) { return setup_.idOf(ids[j]); });
    }
}

template class RangeFinisher<float>;
template class RangeFinisher<double>;

} // namespace faiss_bits::cpu
