#include <algorithm>
#include <limits>

#include "kernels/cpu/KnnSelection.h"

/// What a sweep left of a row, and what it says of the other vectors.
namespace faiss_bits::cpu {

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
    const idx_t count = collectHeaps(row, mine);
    found.isAll = count == setup_.numVectors;
    found.idsAscend = false;
    // A full heap turned down what is not under its root; a NaN there, NaN.
    for (const Sink<T>& sink : sinks_) {
        if (sink.kind == SinkKind::Store && count == k_) {
            const T root = mine.entries.get()[0].key();
            found.limit = root < found.limit ? root : found.limit;
        } else if (
                sink.kind == SinkKind::Heap &&
                sink.state[row] == RowState::Below) {
            found.limit = std::min(found.limit, sink.limit[row]);
        }
    }
    for (idx_t i = 0; i < count; ++i) {
        const OrderedEntry<T> entry = mine.entries.get()[i];
        // What was taken before the limit was so low is like what was not.
        if (first.slack.isOn && !found.isAll && entry.key() >= found.limit) {
            continue;
        }
        mine.keys.get()[found.count] = entry.key();
        mine.ids.get()[found.count++] = entry.id();
    }
    found.keys = mine.keys.get();
    found.ids = mine.ids.get();
    return found;
}

template class KnnSelection<float>;
template class KnnSelection<double>;

} // namespace faiss_bits::cpu
