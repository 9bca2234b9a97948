#include "kernels/cpu/RangeScanner.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/cpu/ErrorBound.h"

namespace faiss_bits::cpu {

namespace {

/// Bytes of a piece, of which canonical distances read a part again; and its
/// most vectors, whose keys are read again.
constexpr idx_t kPieceBytes = 1 << 20, kMostOfPiece = 4096;

/// Values that kernels may write behind the end of a row.
constexpr idx_t kSlack = 64;

/// Do bounds of errors need to know of the vectors?
bool needsLengths(KernelMetric metric) {
    return metric == KernelMetric::Product || metric == KernelMetric::Cosine;
}

template <class T>
idx_t pieceOf(const Setup<T>& setup) {
    const idx_t tile = setup.common.tileVectors;
    const idx_t count = kPieceBytes / idx_t(sizeof(T)) / setup.depth;
    return roundUp(std::clamp(count, tile, kMostOfPiece), tile);
}

} // namespace

template <class T>
void RangeQueries<T>::prepare(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        idx_t begin,
        idx_t count) {
    const idx_t wide = roundUp(setup.depth, kCanonicalSlots);
    stride_ = roundUp(setup.depth, setup.common.lanes);
    if (room_ < count) {
        room_ = 0;
        rows_.allocate(count * stride_);
        terms_.allocate(count);
        components_.allocate(count * wide);
        room_ = count;
    }
    PackJob<T> pack;
    pack.rows = setup.queries;
    pack.begin = begin;
    pack.count = count;
    pack.depth = setup.depth;
    pack.panels = rows_.get();
    pack.terms = terms_.get();
    setup.common.copyQueries(pack, setup.metric, stride_);
    prepared_.resize(count);
    for (idx_t i = 0; i < count; ++i) {
        prepared_[i].components = components_.get() + i * wide;
        kernels.prepareQuery(
                setup.queries.row(begin + i), setup.depth, prepared_[i]);
    }
}

template <class T>
RangeScanner<T>::RangeScanner(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        T limit,
        bool takesAll)
        : kernels_(kernels),
          limit_(limit),
          piece_(pieceOf(setup)),
          takesAll_(takesAll) {
    setup_.metric = setup.metric;
    setup_.power = setup.power;
    setup_.depth = setup.depth;
    setup_.common = setup.common;
    setup_.kernels = setup.kernels;
}

template <class T>
void RangeScanner<T>::reserve(idx_t rows, idx_t columns) {
    stride_ = roundUp(columns, setup_.common.tileVectors);
    if (room_ < rows * stride_) {
        room_ = 0;
        keys_.allocate(rows * stride_ + kSlack);
        ids_.allocate(rows * stride_ + kSlack);
        room_ = rows * stride_;
    }
}

template <class T>
void RangeScanner<T>::sweep(
        const RangeQueries<T>& queries,
        const RowView<T>& vectors,
        idx_t begin,
        idx_t end) {
    terms_.assign(queries.count(), T(0)); // keys are whole
    Sink<T> sink;
    sink.queryTerm = terms_.data();
    if (needsLengths(setup_.metric)) {
        sink.kind = SinkKind::Store;
        sink.distances = keys_.get();
        sink.distanceStride = stride_;
        sink.firstId = begin;
    } else {
        hits_.resize(queries.count());
        for (auto& hits : hits_) {
            hits.clear();
        }
        states_.assign(queries.count(), RowState::Below);
        sink.kind = SinkKind::Range;
        sink.filter = sink.limit = limits_.data();
        sink.state = states_.data();
        sink.hits = hits_.data();
    }
    ScanJob<T> job;
    job.queries = queries.rows();
    job.queryStride = queries.stride();
    job.rows = int(queries.count());
    job.vectors = vectors;
    job.begin = job.firstId = begin;
    job.end = end;
    job.depth = setup_.depth;
    job.power = setup_.power;
    job.sink = &sink;
    T largestSquare = 0;
    job.largestSquare = &largestSquare;
    if (setup_.metric == KernelMetric::Cosine) {
        scales_.resize(end - begin);
        job.scales = scales_.data();
    }
    setup_.kernels.scanDirect(job);
    raiseTo(setup_.lengths->largestSquare, largestSquare);
    if (setup_.metric == KernelMetric::Cosine) {
        noteLengths(
                *setup_.lengths,
                setup_.metric,
                vectors,
                setup_.depth,
                begin,
                end - begin,
                scales_.data());
    }
}

template <class T>
void RangeScanner<T>::reachOf(const RangeQueries<T>& queries) {
    const ErrorBound<T> bound(setup_, true);
    reaches_.resize(queries.count());
    limits_.resize(queries.count());
    for (idx_t i = 0; i < queries.count(); ++i) {
        reaches_[i] = bound.reachIfAny(limit_, queries.prepared(i));
        limits_[i] = limitAbove(reaches_[i]);
    }
}

template <class T>
void RangeScanner<T>::find(
        const RangeQueries<T>& queries,
        const RowView<T>& vectors,
        idx_t begin,
        idx_t end) {
    const idx_t count = end - begin;
    reserve(queries.count(), count);
    Lengths<T> lengths;
    setup_.lengths = &lengths;
    const bool isStored = needsLengths(setup_.metric);
    if (!isStored) {
        reachOf(queries);
    }
    if (!takesAll_) {
        sweep(queries, vectors, begin, end);
    }
    if (isStored) {
        reachOf(queries);
    }
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    lists_.clear();
    found_.clear();
    for (idx_t i = 0; i < queries.count(); ++i) {
        T* keys = keys_.get() + i * stride_;
        CandidateId<T>* ids = ids_.get() + i * stride_;
        idx_t left = 0;
        if (reaches_[i] == -kInfinity) {
            continue;
        } else if (takesAll_ || reaches_[i] == kInfinity) {
            left = count;
            std::iota(ids, ids + count, CandidateId<T>(begin));
        } else if (isStored) {
            NarrowJob<T> job;
            job.keys = job.outKeys = keys;
            job.outIds = ids;
            job.firstId = begin;
            job.count = count;
            left = setup_.common.keepUnder(job, reaches_[i]).count;
        } else {
            for (const RangeHit<T>& hit : hits_[i]) {
                ids[left++] = hit.id;
            }
        }
        if (left > 0) {
            const bool isUnbounded = !takesAll_ && reaches_[i] == kInfinity;
            rescored_ += isUnbounded ? 0 : left;
            lists_.push_back({queries.prepared(i), ids, left, keys});
            found_.push_back({i, ids, left, keys, isUnbounded});
        }
    }
    RescoreJob<T> job;
    job.lists = lists_.data();
    job.numLists = idx_t(lists_.size());
    job.vectors = vectors;
    job.depth = setup_.depth;
    job.power = double(setup_.power);
    kernels_.rescore(job);
}

template <class T>
void RangeScanner<T>::note(idx_t kept, idx_t pairs) {
    takesAll_ = takesAll_ ? 3 * kept > pairs : 2 * kept > pairs;
}

template class RangeQueries<float>;
template class RangeQueries<double>;
template class RangeScanner<float>;
template class RangeScanner<double>;

} // namespace faiss_bits::cpu
