#include "kernels/cpu/ivf/IvfExact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/ErrorBound.h"

namespace faiss_bits::cpu {

namespace {

/// Vectors whose distances are computed at a time.
constexpr idx_t kPiece = 512;

/// Fewer are not worth approximate keys first.
constexpr idx_t kLeastChosenFrom = 32;

/// Entries beyond k, and beyond twice k, before they are cut.
constexpr idx_t kMoreEntries = 64;

/// Room for a tile or a vector that is stored behind the last.
constexpr idx_t kSlack = 64;

} // namespace

void IvfExactSearch::run(idx_t row) {
    const IvfKnnProblem& problem = setup_.problem;
    const idx_t index = setup_.query(row);
    components_.resize(roundUp(setup_.search.depth, kCanonicalSlots));
    CanonicalQuery query;
    query.components = components_.data();
    setup_.canonical.prepareQuery(
            setup_.search.queries.row(row), setup_.search.depth, query);
    copyQuery(row);
    entries_.clear();
    hasLimit_ = false;
    limit_ = {std::numeric_limits<float>::infinity(), 0, {}};
    idx_t left = problem.mostVectors;
    for (idx_t i = 0; i < problem.nprobe && !std::isnan(query.squares); ++i) {
        const idx_t list = problem.probes[index * problem.nprobe + i];
        const idx_t length = list < 0 ? 0 : problem.lists->length(list);
        if (length == 0) {
            continue;
        }
        scanList(
                list,
                problem.mostVectors > 0 ? std::min(left, length) : length,
                query);
        left -= length;
        if (problem.mostVectors > 0 && left <= 0) {
            break;
        }
    }
    cut();
    std::sort(entries_.begin(), entries_.end());
    const bool similarity = isSimilarity(problem.metric);
    constexpr float kMax = std::numeric_limits<float>::max();
    for (idx_t i = 0; i < problem.k; ++i) {
        const idx_t at = index * problem.k + i;
        const bool isThere = i < idx_t(entries_.size());
        const float key = isThere ? entries_[i].key : kMax;
        problem.outDistances[at] = similarity ? 0.f - key : key;
        problem.outIds[at] = isThere ? ivfLabelOf(problem, entries_[i].at) : -1;
    }
}

void IvfExactSearch::copyQuery(idx_t row) {
    const Setup<float>& search = setup_.search;
    const idx_t stride = roundUp(search.depth, search.common.lanes);
    if (!query_.get()) {
        query_.allocate(stride);
        approximate_.allocate(kPiece + kSlack);
        chosenKeys_.allocate(kPiece + kSlack);
        chosen_.allocate(kPiece + kSlack);
        places_.resize(kPiece);
        rows_.resize(kPiece);
        keys_.resize(kPiece);
    }
    float term;
    PackJob<float> pack;
    pack.rows = search.queries;
    pack.begin = row;
    pack.count = 1;
    pack.depth = search.depth;
    pack.panels = query_.get();
    pack.terms = &term;
    search.common.copyQueries(pack, search.metric, stride);
}

idx_t IvfExactSearch::choose(
        const RowView<float>& vectors,
        idx_t begin,
        idx_t count,
        const CanonicalQuery& query) {
    const Setup<float>& search = setup_.search;
    const auto all = [&] {
        std::iota(chosen_.get(), chosen_.get() + count, 0);
        return count;
    };
    if (!hasLimit_ || count < kLeastChosenFrom) {
        return all();
    }
    float noTerm = 0, largest = 0;
    Sink<float> sink;
    sink.kind = SinkKind::Store;
    sink.queryTerm = &noTerm;
    sink.distances = approximate_.get();
    ScanJob<float> job;
    job.queries = query_.get();
    job.rows = 1;
    job.vectors = vectors;
    job.begin = begin;
    job.end = begin + count;
    job.depth = search.depth;
    job.isNear = setup_.isNear;
    job.sink = &sink;
    job.largestSquare = &largest;
    search.kernels.scanDirect(job);
    raiseTo(search.lengths->largestSquare, largest);
    const float within =
            ErrorBound<float>(search, true).reach(limit_.key, query);
    if (!(within < std::numeric_limits<float>::infinity())) {
        return all();
    }
    NarrowJob<float> narrow;
    narrow.keys = approximate_.get();
    narrow.count = count;
    narrow.outKeys = chosenKeys_.get();
    narrow.outIds = chosen_.get();
    return search.common.keepUnder(narrow, within).count;
}

void IvfExactSearch::scanList(
        idx_t list,
        idx_t length,
        const CanonicalQuery& query) {
    const IvfKnnProblem& problem = setup_.problem;
    const IvfPlaces* allowed = setup_.allowed(list);
    const idx_t depth = setup_.search.depth;
    const idx_t most = 2 * problem.k + kMoreEntries;
    const OpenIvfList open(*problem.lists, list);
    const idx_t columns = !allowed
            ? length
            : std::lower_bound(allowed->begin(), allowed->end(), length) -
                    allowed->begin();
    const RowView<float> vectors = {
            open.rows(), depth, allowed ? allowed->data() : nullptr};
    idx_t piece;
    for (idx_t begin = 0; begin < columns; begin += piece) {
        // A limit as soon as may be.
        piece = std::min(
                {kPiece,
                 columns - begin,
                 hasLimit_ ? kPiece : most - idx_t(entries_.size())});
        const idx_t count = choose(vectors, begin, piece, query);
        if (count == 0) {
            continue;
        }
        for (idx_t i = 0; i < count; ++i) {
            const idx_t column = begin + chosen_.get()[i];
            places_[i] = allowed ? (*allowed)[column] : column;
            rows_[i] = vectors.row(column);
        }
        RescoreList<float> rescored;
        rescored.query = query;
        rescored.rows = rows_.data();
        rescored.count = count;
        rescored.keys = keys_.data();
        RescoreJob<float> job;
        job.lists = &rescored;
        job.numLists = 1;
        job.depth = depth;
        setup_.canonical.rescore(job);
        for (idx_t i = 0; i < count; ++i) {
            if (keys_[i] <= limit_.key) { // and is a number
                const IvfPlace at = {list, places_[i]};
                const Entry entry = {
                        keys_[i], problem.lists->id(at.list, at.place), at};
                if (!hasLimit_ || entry < limit_) {
                    entries_.push_back(entry);
                }
            }
        }
        if (idx_t(entries_.size()) >= most) {
            cut();
        }
    }
}

void IvfExactSearch::cut() {
    const idx_t k = setup_.problem.k;
    if (idx_t(entries_.size()) <= k) {
        return;
    }
    const auto kth = entries_.begin() + (k - 1);
    std::nth_element(entries_.begin(), kth, entries_.end());
    limit_ = *kth;
    hasLimit_ = true;
    entries_.resize(k);
}

} // namespace faiss_bits::cpu
