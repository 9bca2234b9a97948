#include "kernels/cpu/ivf/IvfExact.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace faiss_bits::cpu {

namespace {

/// Vectors whose distances are computed at a time.
constexpr idx_t kPiece = 512;

} // namespace

void IvfExactSearch::run(idx_t row) {
    const IvfKnnProblem& problem = setup_.problem;
    const idx_t index = setup_.query(row);
    components_.resize(roundUp(setup_.search.depth, kCanonicalSlots));
    CanonicalQuery query;
    query.components = components_.data();
    setup_.canonical.prepareQuery(
            setup_.search.queries.row(row), setup_.search.depth, query);
    entries_.clear();
    limit_ = std::numeric_limits<float>::infinity();
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

void IvfExactSearch::scanList(
        idx_t list,
        idx_t length,
        const CanonicalQuery& query) {
    const IvfKnnProblem& problem = setup_.problem;
    const std::vector<idx_t>* allowed = setup_.allowed(list);
    const idx_t depth = setup_.search.depth;
    const idx_t most = 2 * problem.k + 4 * kPiece;
    const OpenIvfList open(*problem.lists, list);
    places_.resize(kPiece);
    rows_.resize(kPiece);
    keys_.resize(kPiece);
    const idx_t columns = allowed ? idx_t(allowed->size()) : length;
    for (idx_t begin = 0; begin < columns; begin += kPiece) {
        idx_t count = std::min(kPiece, columns - begin);
        for (idx_t i = 0; i < count; ++i) {
            const idx_t place = allowed ? (*allowed)[begin + i] : begin + i;
            if (place >= length) {
                count = i;
                break;
            }
            places_[i] = place;
            rows_[i] = open.rows() + place * depth;
        }
        if (count == 0) {
            return;
        }
        RescoreList<float> rescored;
        rescored.query = query;
        rescored.rows = rows_.data();
        rescored.count = count;
        rescored.keys = keys_.data();
        RescoreJob<float> job;
        job.lists = &rescored;
        job.numLists = 1;
        job.depth = setup_.search.depth;
        setup_.canonical.rescore(job);
        for (idx_t i = 0; i < count; ++i) {
            if (keys_[i] <= limit_) { // and is a number
                const idx_t place = places_[i];
                entries_.push_back(
                        {keys_[i],
                         problem.lists->id(list, place),
                         {list, place}});
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
    limit_ = kth->key;
    entries_.resize(k);
}

} // namespace faiss_bits::cpu
