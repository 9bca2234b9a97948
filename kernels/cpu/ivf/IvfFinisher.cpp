#include "kernels/cpu/ivf/IvfFinisher.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/SortEntries.h"

namespace faiss_bits::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr idx_t kSlack = 32;

/// Of all candidates, so many are rescored at once, and compared with the
/// others then.
idx_t mostChosen(idx_t k) {
    return k + 2 + k / 32;
}

/// The least and the largest; both NaN where there is one.
void rangeOf(const float* keys, idx_t count, float& least, float& most) {
    least = most = keys[0];
    for (idx_t i = 0; i < count; ++i) {
        if (std::isnan(keys[i])) {
            least = most = keys[i];
            return;
        }
        least = std::min(least, keys[i]);
        most = std::max(most, keys[i]);
    }
}

} // namespace

void IvfFinisher::finish(
        const IvfSelection& selection,
        idx_t begin,
        idx_t end,
        IvfOutcomes& outcomes) {
    const IvfBlock& block = selection.block();
    const IvfWaysUsed used = selection.waysUsed();
    bounds_.clear();
    if (used.tiles) {
        bounds_.emplace_back(setup_.search, false);
    }
    if (used.direct) {
        bounds_.emplace_back(setup_.search, true);
    }
    const idx_t together = reserve(selection, end - begin);
    rescored_ = 0;
    for (idx_t first = begin; first < end; first += together) {
        const idx_t count = std::min(together, end - first);
        for (idx_t i = 0; i < count; ++i) {
            Attempt& attempt = attempts_[i];
            attempt.count = 0;
            attempt.all = {};
            setup_.canonical.prepareQuery(
                    setup_.search.queries.row(block.first() + first + i),
                    setup_.search.depth,
                    attempt.query);
            // A query with NaN has no result.
            if (!std::isnan(attempt.query.squares)) {
                attempt.all = selection.candidatesOf(
                        first + i,
                        allKeys_.get() + i * room_,
                        allSlots_.get() + i * room_);
                choose(attempt);
            }
        }
        rescore(block, attempts_.data(), count);
        for (idx_t i = 0; i < count; ++i) {
            const idx_t query = block.first() + first + i;
            const bool isNan = std::isnan(attempts_[i].query.squares);
            const Outcome outcome =
                    isNan ? Outcome::Done : prove(block, attempts_[i]);
            if (outcome == Outcome::Done) {
                write(block, attempts_[i], query);
            }
            outcomes.note(query, outcome);
        }
    }
    outcomes.rescored.fetch_add(rescored_);
}

idx_t IvfFinisher::reserve(const IvfSelection& selection, idx_t rows) {
    // Vectors of the next row are fetched while those of one are rescored; what
    // the rows need meanwhile has to fit in a cache.
    constexpr idx_t kMostTogether = 32, kBytes = 1 << 20;
    const idx_t room = std::max(room_, selection.mostCandidates() + kSlack);
    const idx_t stride = roundUp(setup_.search.depth, kCanonicalSlots);
    const idx_t bytes = stride * 8 + room * 24;
    // No more than there are: a search of one query is soon done, and the
    // system clears what it allocates.
    const idx_t together = std::clamp<idx_t>(
            kBytes / bytes, 1, std::clamp<idx_t>(rows, 1, kMostTogether));
    if (room == room_ && together <= idx_t(attempts_.size())) {
        return together;
    }
    room_ = 0;
    attempts_.resize(together);
    queries_.allocate(together * stride);
    allKeys_.allocate(together * room);
    allSlots_.allocate(together * room);
    keys_.allocate(together * room);
    slots_.allocate(together * room);
    rows_.resize(together * room);
    extraKeys_.allocate(room);
    entries_.allocate(room);
    sorted_.allocate(room);
    room_ = room;
    for (idx_t i = 0; i < together; ++i) {
        Attempt& attempt = attempts_[i];
        attempt.query.components = queries_.get() + i * stride;
        attempt.slots = slots_.get() + i * room;
        attempt.keys = keys_.get() + i * room;
        attempt.rows = rows_.data() + i * room;
    }
    return together;
}

void IvfFinisher::chooseAll(Attempt& attempt) {
    std::copy_n(attempt.all.slots, attempt.all.count, attempt.slots);
    attempt.count = attempt.all.count;
    attempt.pivot = kInfinity;
}

void IvfFinisher::choose(Attempt& attempt) {
    const IvfCandidates& all = attempt.all;
    NarrowJob<float> job;
    job.keys = all.keys;
    job.ids = all.slots;
    job.count = all.count;
    job.k = std::min(setup_.problem.k, all.count);
    job.most = mostChosen(job.k);
    if (all.count <= job.most) {
        return chooseAll(attempt);
    }
    attempt.pivot = setup_.search.common.findLimit(job);
    job.outKeys = attempt.keys;
    job.outIds = attempt.slots;
    // Where many are alike these may be more than `most`.
    attempt.count = setup_.search.common.keepUnder(job, attempt.pivot).count;
}

void IvfFinisher::rescore(
        const IvfBlock& block,
        Attempt* attempts,
        idx_t count) {
    wanted_.clear();
    lists_.clear();
    for (Attempt* each = attempts; each < attempts + count; ++each) {
        for (idx_t i = 0; i < each->count; ++i) {
            wanted_.push_back({each->slots[i], each->rows + i});
        }
        if (each->count > 0) {
            lists_.push_back(
                    {each->query,
                     nullptr,
                     each->count,
                     each->keys,
                     each->rows});
        }
        rescored_ += each->count;
    }
    findRows(block);
    RescoreJob<float> job;
    job.lists = lists_.data();
    job.numLists = idx_t(lists_.size());
    job.depth = setup_.search.depth;
    setup_.canonical.rescore(job);
}

void IvfFinisher::rescoreFrom(
        const IvfBlock& block,
        Attempt& attempt,
        idx_t from) {
    Attempt rest = attempt;
    rest.slots += from;
    rest.keys += from;
    rest.rows += from;
    rest.count -= from;
    rescore(block, &rest, 1);
}

void IvfFinisher::findRows(const IvfBlock& block) {
    const IvfLists& lists = *setup_.problem.lists;
    const idx_t depth = setup_.search.depth;
    const bool areKept = lists.areKept();
    if (!areKept) {
        // Every list is opened once.
        std::sort(
                wanted_.begin(),
                wanted_.end(),
                [](const Wanted& a, const Wanted& b) {
                    return a.slot < b.slot;
                });
        copies_.resize(wanted_.size() * depth);
    }
    for (size_t i = 0; i < wanted_.size();) {
        const IvfItem& item = block.itemOfSlot(wanted_[i].slot);
        const OpenIvfList list(lists, item.list);
        const IvfPlaces* allowed = setup_.allowed(item.list);
        for (; i < wanted_.size(); ++i) {
            const idx_t column = wanted_[i].slot - item.firstSlot;
            if (column < 0 || column >= item.count) {
                break;
            }
            const idx_t place = allowed ? (*allowed)[item.begin + column]
                                        : item.begin + column;
            const float* row = list.rows() + place * depth;
            if (!areKept) {
                float* copy = copies_.data() + i * depth;
                std::copy_n(row, depth, copy);
                row = copy;
            }
            *wanted_[i].to = row;
        }
    }
}

float IvfFinisher::reach(float key, const CanonicalQuery& query) const {
    float most = key;
    for (const ErrorBound<float>& bound : bounds_) {
        most = std::max(most, bound.reach(key, query));
    }
    return most;
}

Outcome IvfFinisher::prove(const IvfBlock& block, Attempt& attempt) {
    const IvfCandidates& all = attempt.all;
    const idx_t k = setup_.problem.k;
    if (attempt.count == all.count && all.isAll) {
        return Outcome::Done;
    }
    // The k-th of the result is at most the largest of these, and no vector
    // whose approximate key is beyond `reach` is as near as that.
    float least, most, within = kInfinity;
    if (attempt.count >= k) {
        rangeOf(attempt.keys, attempt.count, least, most);
        within = reach(most, attempt.query);
    }
    if (!(within < all.limit) && attempt.count > k) {
        ordered_.assign(attempt.keys, attempt.keys + attempt.count);
        const auto kth = ordered_.begin() + (k - 1);
        std::nth_element(
                ordered_.begin(), kth, ordered_.end(), [](float a, float b) {
                    return std::isnan(b) ? !std::isnan(a) : a < b;
                });
        within = reach(*kth, attempt.query);
    }
    if (!(within < all.limit) && !all.isAll) {
        if (all.count == 0) {
            return Outcome::Misled;
        }
        const idx_t chosen = attempt.count;
        chooseAll(attempt);
        rescoreFrom(block, attempt, 0);
        rescored_ -= chosen;
        rangeOf(attempt.keys, attempt.count, least, most);
        return least < most ? Outcome::Misled : Outcome::Tied;
    }
    if (attempt.count < all.count && within < kInfinity) {
        // Then what else is within reach.
        NarrowJob<float> job;
        job.keys = all.keys;
        job.ids = all.slots;
        job.count = all.count;
        job.outKeys = extraKeys_.get();
        job.outIds = attempt.slots + attempt.count;
        const idx_t from = attempt.count;
        attempt.count +=
                setup_.search.common.keepBetween(job, attempt.pivot, within);
        rescoreFrom(block, attempt, from);
    } else if (attempt.count < all.count) {
        const idx_t chosen = attempt.count;
        chooseAll(attempt);
        rescoreFrom(block, attempt, 0);
        rescored_ -= chosen;
    }
    return Outcome::Done;
}

void IvfFinisher::write(
        const IvfBlock& block,
        const Attempt& attempt,
        idx_t query) {
    const OrderRange<float> range = setup_.search.common.makeEntries(
            attempt.keys, nullptr, 0, attempt.count, entries_.get());
    const OrderedEntry<float>* sorted = sortEntries<float>(
            entries_.get(), sorted_.get(), attempt.count, true, range);
    writeIvfRow(
            setup_.problem,
            setup_.query(query),
            sorted,
            attempt.count,
            tied_,
            [&](const OrderedEntry<float>& entry) {
                const int32_t slot = attempt.slots[entry.id()];
                const IvfItem& item = block.itemOfSlot(slot);
                const idx_t column = item.begin + (slot - item.firstSlot);
                const IvfPlaces* allowed = setup_.allowed(item.list);
                return IvfPlace{
                        item.list, allowed ? (*allowed)[column] : column};
            });
}

} // namespace faiss_bits::cpu
