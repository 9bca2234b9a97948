#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/SortEntries.h"

/// The end of a row of a certified search: candidates, canonical distances, and
/// the proof that no other vector belongs to the result.
namespace faiss_bits::cpu {

namespace {

constexpr idx_t kSlack = 16;

/// The k-th smallest; NaN are largest.
template <class T>
T kthOf(const T* keys, idx_t count, idx_t k) {
    std::vector<T> sorted(keys, keys + count);
    const auto kth = sorted.begin() + (k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), [](T a, T b) {
        return std::isnan(b) ? !std::isnan(a) : a < b;
    });
    return *kth;
}

/// The least and the largest; both NaN where there is one.
template <class T>
void rangeOf(const T* keys, idx_t count, T& least, T& most) {
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

template <class T>
void KnnSelection<T>::allocateCertified(int depth) {
    for (Scratch& mine : scratch_) {
        if (!mine.query.get()) {
            mine.query.allocate(roundUp(depth, kCanonicalSlots));
            mine.canonical.allocate(widest_ + kSlack);
            mine.chosen.allocate(widest_ + kSlack);
        }
    }
}

template <class T>
typename KnnSelection<T>::Candidates KnnSelection<T>::bufferedCandidates(
        idx_t row,
        Scratch& mine) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const Sink<T>& first = sinks_[0];
    Candidates found;
    found.isAll = true;
    found.limit = kInfinity;
    if (isWholeRow()) {
        found.keys = first.distances + row * first.distanceStride;
        found.count = setup_.numVectors;
        return found;
    }
    for (const Sink<T>& sink : sinks_) {
        if (sink.state[row] != RowState::All) {
            found.isAll = false;
        }
        // What is behind a limit of NaN is NaN, too.
        if (sink.state[row] == RowState::Below) {
            found.limit = std::min(found.limit, sink.limit[row]);
        }
    }
    if (parts() == 1) {
        found.keys = first.keys + row * first.keyStride;
        found.ids = first.state[row] == RowState::All
                ? nullptr
                : first.ids + row * first.idStride;
        found.firstId = first.firstId;
        found.count = first.counts[row];
        return found;
    }
    for (const Sink<T>& sink : sinks_) {
        appendRow(sink, row, mine, found.count);
    }
    found.keys = mine.keys.get();
    found.ids = mine.ids.get();
    return found;
}

template <class T>
typename KnnSelection<T>::Candidates KnnSelection<T>::candidatesOf(
        idx_t row,
        Scratch& mine) {
    const Sink<T>& first = sinks_[0];
    if (first.kind == SinkKind::Buffer || isWholeRow()) {
        return bufferedCandidates(row, mine);
    }
    Candidates found;
    found.limit = std::numeric_limits<T>::infinity();
    found.count = collectHeaps(row, mine);
    found.isAll = found.count == setup_.numVectors;
    found.idsAscend = false;
    for (idx_t i = 0; i < found.count; ++i) {
        const OrderedEntry<T> entry = mine.entries.get()[i];
        mine.keys.get()[i] = entry.key();
        mine.ids.get()[i] = entry.id();
    }
    // A full heap turned down what is not under its root; a NaN there, NaN.
    idx_t begin = 0;
    for (const Sink<T>& sink : sinks_) {
        const idx_t size =
                sink.kind == SinkKind::Store ? found.count : sink.counts[row];
        if (size == k_) {
            const T root = mine.entries.get()[begin].key();
            found.limit = root < found.limit ? root : found.limit;
        }
        begin += size;
    }
    found.keys = mine.keys.get();
    found.ids = mine.ids.get();
    return found;
}

template <class T>
Outcome KnnSelection<T>::certifyRow(
        idx_t row,
        idx_t query,
        Scratch& mine,
        const Certifier<T>& certifier,
        const ErrorBound<T>& bound,
        const KnnOutput<T>& out,
        idx_t& rescored) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const idx_t k = certifier.k;
    const idx_t place = out.row(query) * out.k;
    RescoreJob<T> job;
    job.query.components = mine.query.get();
    certifier.kernels.prepareQuery(
            setup_.queries.row(query), setup_.depth, job.query);
    if (std::isnan(job.query.squares)) {
        // A query with NaN has no result.
        writeRow(nullptr, 0, out.distances + place, out.ids + place, out.k);
        return Outcome::Done;
    }
    const Candidates all = candidatesOf(row, mine);
    job.vectors = setup_.vectors;
    job.ids = mine.chosen.get();
    job.depth = setup_.depth;
    job.power = double(setup_.power);
    job.keys = mine.canonical.get();

    NarrowJob<T> choose;
    choose.keys = all.keys;
    choose.ids = all.ids;
    choose.firstId = all.firstId;
    choose.count = all.count;
    choose.k = std::min(k, all.count);
    choose.most = choose.k + 2 + choose.k / 32;
    choose.outKeys = mine.canonical.get();
    choose.outIds = mine.chosen.get();
    const auto chooseAll = [&] {
        for (idx_t i = 0; i < all.count; ++i) {
            mine.chosen.get()[i] =
                    all.ids ? all.ids[i] : CandidateId<T>(all.firstId + i);
        }
        return all.count;
    };

    // First the k nearest by their approximate keys, or a few more.
    T pivot = std::numeric_limits<T>::quiet_NaN();
    if (all.count > choose.most) {
        pivot = setup_.common.findLimit(choose);
    }
    const idx_t chosen = std::isnan(pivot)
            ? chooseAll()
            : setup_.common.keepUnder(choose, pivot).count;
    job.count = chosen;
    certifier.kernels.rescore(job);
    rescored += chosen;
    if (chosen < all.count || !all.isAll) {
        // The k-th of the result is at most the largest of these, and no
        // vector whose approximate key is beyond `reach` is as near as that.
        T least, most;
        rangeOf(job.keys, chosen, least, most);
        T reach = chosen < k ? kInfinity : bound.reach(most, job.query);
        if (!(reach < all.limit) && chosen > k) {
            reach = bound.reach(kthOf(job.keys, chosen, k), job.query);
        }
        if (!(reach < all.limit) && !all.isAll) {
            job.count = chooseAll();
            certifier.kernels.rescore(job);
            rescored += job.count - chosen;
            rangeOf(job.keys, job.count, least, most);
            return least < most ? Outcome::Misled : Outcome::Tied;
        }
        // Then what else is within reach, in the order of the ids.
        const bool everything = !(reach < kInfinity);
        const idx_t within = everything
                ? all.count
                : setup_.common.countUnder(all.keys, all.count, reach);
        if (within > chosen) {
            if (everything) {
                chooseAll();
            } else {
                setup_.common.keepUnder(choose, reach);
            }
            job.count = within;
            certifier.kernels.rescore(job);
            rescored += within - chosen;
        }
    }
    for (idx_t i = 0; i < job.count; ++i) {
        mine.entries.get()[i] = OrderedEntry<T>(job.keys[i], job.ids[i]);
    }
    const OrderedEntry<T>* sorted = sortEntries<T>(
            mine.entries.get(), mine.sorted.get(), job.count, all.idsAscend);
    writeRow(
            sorted,
            std::min(job.count, k),
            out.distances + place,
            out.ids + place,
            out.k);
    return Outcome::Done;
}

template class KnnSelection<float>;
template class KnnSelection<double>;

} // namespace faiss_bits::cpu
