#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/SortEntries.h"
#include "kernels/cpu/WriteNearest.h"

/// The end of a row of a certified search: candidates, canonical distances, and
/// the proof that no other vector belongs to the result.
namespace faiss_bits::cpu {

namespace {

constexpr idx_t kSlack = 16;

/// Vectors of so many bytes stay in the cache of a core.
constexpr idx_t kPieceBytes = 1 << 19;

/// Candidates with canonical keys.
template <class T>
struct Rescored {
    CandidateId<T>* ids;
    T* keys;
    idx_t count;
};

/// Are all of them one number, or is a NaN among them?
template <class T>
bool areAlike(const T* keys, idx_t count) {
    bool alike = true;
    for (idx_t i = 0; i < count; ++i) {
        if (std::isnan(keys[i])) {
            return true;
        }
        alike = alike && keys[i] == keys[0];
    }
    return alike;
}

} // namespace

template <class T>
bool KnnSelection<T>::candidatesStay() const {
    return isWholeRow() || (sinks_[0].kind == SinkKind::Buffer && parts() == 1);
}

template <class T>
bool KnnSelection<T>::vectorsStay() const {
    return setup_.numVectors * setup_.depth * idx_t(sizeof(T)) <= kPieceBytes;
}

template <class T>
idx_t KnnSelection<T>::allocateCertified(
        idx_t rows,
        const Certifier<T>& certifier) {
    // Rows that are compared with a piece of the vectors while that is in the
    // cache; what they need meanwhile has to fit there, too, more or less.
    // Where the vectors stay in the cache of a core as they are, a row does
    // not need the others, and its candidates are better near.
    constexpr idx_t kBytes = 4 << 20, kBytesBesideVectors = 1 << 18;
    const idx_t threads = idx_t(scratch_.size());
    const idx_t stride = roundUp(setup_.depth, kCanonicalSlots);
    const idx_t room = roundUp(certifier.mostChosen + kSlack, 16);
    idx_t together = 1;
    if (candidatesStay()) {
        const idx_t bytes = stride * idx_t(sizeof(double)) +
                room * idx_t(sizeof(T) + sizeof(CandidateId<T>));
        together = std::clamp<idx_t>(
                threads > 1 ? rows / (2 * threads) : rows,
                1,
                (vectorsStay() ? kBytesBesideVectors : kBytes) / bytes + 1);
    }
    for (Scratch& mine : scratch_) {
        if (idx_t(mine.attempts.size()) >= together) {
            continue;
        }
        mine.attempts.resize(together);
        mine.lists.resize(together);
        mine.queries.allocate(together * stride);
        mine.chosenIds.allocate(together * room);
        mine.chosenKeys.allocate(together * room);
        mine.extraIds.allocate(widest_ + kSlack);
        mine.extraKeys.allocate(widest_ + kSlack);
        for (idx_t i = 0; i < together; ++i) {
            Attempt& attempt = mine.attempts[i];
            attempt.query.components = mine.queries.get() + i * stride;
            attempt.ids = mine.chosenIds.get() + i * room;
            attempt.keys = mine.chosenKeys.get() + i * room;
        }
    }
    return together;
}

template <class T>
void KnnSelection<T>::finishTogether(
        const Rows& rows,
        const KnnOutput<T>& out,
        Certifier<T>& certifier,
        KnnSelection& worker) {
    const ErrorBound<T> bound(setup_, certifier.direct);
    const idx_t most = worker.allocateCertified(rows.count, certifier);
    const idx_t times = (rows.count + most - 1) / most;
    for (idx_t i = 0; i < times; ++i) {
        certifyRows(
                rows.part(i * rows.count / times, (i + 1) * rows.count / times),
                worker.scratch_[0],
                certifier,
                bound,
                out);
    }
}

template <class T>
void KnnSelection<T>::certifyRows(
        const Rows& rows,
        Scratch& mine,
        Certifier<T>& certifier,
        const ErrorBound<T>& bound,
        const KnnOutput<T>& out) {
    for (idx_t i = 0; i < rows.count; ++i) {
        Attempt& attempt = mine.attempts[i];
        const T* query = setup_.queries.row(rows.query(i));
        certifier.kernels.prepareQuery(query, setup_.depth, attempt.query);
        if constexpr (std::is_same_v<T, float>) {
            attempt.query.rounding = setup_.int16
                    ? setup_.int16.roundingOf(query, setup_.depth)
                    : 0;
        }
        attempt.count = 0;
        if (!std::isnan(attempt.query.squares)) {
            attempt.all = candidatesOf(rows.row + i, mine);
            choose(attempt, certifier);
        }
    }
    idx_t rescored = rescoreChosen(mine, rows.count, certifier);
    for (idx_t i = 0; i < rows.count; ++i) {
        const idx_t query = rows.query(i);
        const idx_t place = out.row(query) * out.k;
        T* distances = out.distances + place;
        idx_t* ids = out.ids + place;
        const Attempt& attempt = mine.attempts[i];
        Outcome outcome = Outcome::Done;
        if (std::isnan(attempt.query.squares)) {
            // A query with NaN has no result.
            writeNearest<T>(setup_, nullptr, 0, distances, ids, out.k);
        } else {
            Sorted sorted;
            outcome = certifyRow(
                    attempt, mine, certifier, bound, sorted, rescored);
            if (outcome == Outcome::Done) {
                writeNearest(
                        setup_,
                        sorted.entries,
                        std::min(sorted.count, certifier.k),
                        distances,
                        ids,
                        out.k);
            }
        }
        certifier.note(query, outcome);
    }
    certifier.rescored.fetch_add(rescored);
}

template <class T>
void KnnSelection<T>::choose(Attempt& attempt, const Certifier<T>& certifier) {
    const Candidates& all = attempt.all;
    NarrowJob<T> job = all.narrowJob();
    job.k = certifier.leastChosen;
    job.most = certifier.mostChosen;
    job.outKeys = attempt.keys;
    job.outIds = attempt.ids;
    attempt.isLate = false;
    if (all.count <= job.most) {
        attempt.count = all.count;
        all.copyIds(attempt.ids);
        return;
    }
    attempt.pivot = setup_.common.findLimit(job);
    // Where many are alike there may be more than is room for.
    const idx_t within =
            setup_.common.countUnder(all.keys, all.count, attempt.pivot);
    attempt.isLate = within < job.k || within > job.most;
    attempt.count = attempt.isLate
            ? 0
            : setup_.common.keepUnder(job, attempt.pivot).count;
}

template <class T>
idx_t KnnSelection<T>::rescoreChosen(
        Scratch& mine,
        idx_t rows,
        const Certifier<T>& certifier) {
    idx_t total = 0;
    for (idx_t i = 0; i < rows; ++i) {
        total += mine.attempts[i].count;
        mine.attempts[i].done = 0;
    }
    const idx_t chunk = chunkOf(total, rows);
    const idx_t n = setup_.numVectors;
    for (idx_t end = chunk; end - chunk < n; end += chunk) {
        RescoreList<T>* list = mine.lists.data();
        for (idx_t i = 0; i < rows; ++i) {
            Attempt& attempt = mine.attempts[i];
            const idx_t upTo =
                    end < n ? attempt.groupsBefore(end) : attempt.count;
            if (upTo > attempt.done) {
                *list++ = {
                        attempt.query,
                        attempt.ids + attempt.done,
                        upTo - attempt.done,
                        attempt.keys + attempt.done};
                attempt.done = upTo;
            }
        }
        rescore(certifier, mine.lists.data(), list - mine.lists.data());
    }
    return total;
}

template <class T>
idx_t KnnSelection<T>::chunkOf(idx_t total, idx_t rows) const {
    // A piece that stays in the cache of a core, with what the rows need; a
    // larger one where it is more work to begin a row again than to read on.
    constexpr idx_t kMostBytes = 1 << 22;
    constexpr idx_t kPerRow = 32;
    const idx_t n = setup_.numVectors;
    const idx_t rowBytes = setup_.depth * idx_t(sizeof(T));
    if (vectorsStay() || rows < 2 || 2 * total < n) {
        return n; // in the cache as they are, or most are met by one row alone
    }
    const idx_t bytes = kPerRow * n * rows / total * rowBytes;
    return std::max<idx_t>(
            16, std::clamp(bytes, kPieceBytes, kMostBytes) / rowBytes);
}

template <class T>
void KnnSelection<T>::rescore(
        const Certifier<T>& certifier,
        const RescoreList<T>* lists,
        idx_t count) {
    RescoreJob<T> job;
    job.lists = lists;
    job.numLists = count;
    job.vectors = setup_.vectors;
    job.vectorSquares = certifier.vectorSquares;
    job.depth = setup_.depth;
    job.power = double(setup_.power);
    certifier.kernels.rescore(job);
}

template <class T>
Outcome KnnSelection<T>::certifyRow(
        const Attempt& attempt,
        Scratch& mine,
        const Certifier<T>& certifier,
        const ErrorBound<T>& bound,
        Sorted& sorted,
        idx_t& rescored) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const Candidates& all = attempt.all;
    const idx_t k = certifier.k;
    Rescored<T> chosen = {attempt.ids, attempt.keys, attempt.count};
    Rescored<T> extra = {mine.extraIds.get(), mine.extraKeys.get(), 0};
    const auto rescoreExtra = [&] {
        const RescoreList<T> list = {
                attempt.query, extra.ids, extra.count, extra.keys};
        rescore(certifier, &list, extra.count > 0);
        rescored += extra.count;
    };
    const auto rescoreAll = [&] {
        extra = {mine.extraIds.get(), mine.extraKeys.get(), all.count};
        all.copyIds(extra.ids);
        rescoreExtra();
        rescored -= chosen.count;
        chosen = extra;
        extra.count = 0;
    };
    OrderedEntry<T>* entries = mine.entries.get();
    OrderedEntry<T>* other = mine.sorted.get();
    const auto sortAll = [&](idx_t count, bool idsAscend, OrderRange<T> range) {
        OrderedEntry<T>* const to =
                sortEntries<T>(entries, other, count, idsAscend, range);
        if (to != entries) {
            std::swap(entries, other);
        }
        sorted = {entries, count};
    };
    const auto sort = [&] {
        const OrderRange<T> range = setup_.common.makeEntries(
                chosen.keys, chosen.ids, 0, chosen.count, entries);
        sortAll(chosen.count, all.idsAscend, range);
    };
    const auto sortMore = [&] {
        constexpr idx_t kFew = 64;
        const bool areFew = extra.count <= kFew;
        OrderedEntry<T>* const more = areFew ? other : entries + chosen.count;
        OrderRange<T> range = setup_.common.makeEntries(
                extra.keys, extra.ids, 0, extra.count, more);
        if (areFew) {
            mergeEntries(entries, chosen.count, more, extra.count);
            sorted.count += extra.count;
            return;
        }
        range.include(entries[0].order());
        range.include(entries[chosen.count - 1].order());
        sortAll(chosen.count + extra.count, false, range);
    };
    NarrowJob<T> job = all.narrowJob();
    if (attempt.isLate && std::isnan(attempt.pivot)) {
        rescoreAll();
    } else if (attempt.isLate) {
        job.outIds = extra.ids;
        job.outKeys = extra.keys;
        extra.count = setup_.common.keepUnder(job, attempt.pivot).count;
        rescoreExtra();
        chosen = extra;
        extra = {chosen.ids + chosen.count, chosen.keys + chosen.count, 0};
    }
    sort();
    if (chosen.count == all.count && all.isAll) {
        return Outcome::Done;
    }
    // The k-th of the result is at most the k-th of these, and no vector whose
    // approximate key is beyond `reach` is as near as that.
    const T reach = sorted.count < k
            ? kInfinity
            : bound.reach(sorted.entries[k - 1].key(), attempt.query);
    if (!(reach < all.limit) && !all.isAll) {
        rescoreAll();
        return areAlike(chosen.keys, chosen.count) ? Outcome::Tied
                                                   : Outcome::Misled;
    }
    // Then what else is within reach; all, NaN too, where nothing is known.
    if (chosen.count < all.count && !(reach < kInfinity)) {
        rescoreAll();
        sort();
    } else if (chosen.count < all.count && reach > attempt.pivot) {
        job.outIds = extra.ids;
        job.outKeys = extra.keys;
        extra.count = setup_.common.keepBetween(job, attempt.pivot, reach);
        if (extra.count > 0) {
            rescoreExtra();
            sortMore();
        }
    }
    return Outcome::Done;
}

template class KnnSelection<float>;
template class KnnSelection<double>;

} // namespace faiss_bits::cpu
