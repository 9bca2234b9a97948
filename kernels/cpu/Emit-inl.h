// What happens to a row of a tile of distances: the selection after the first
// loop, one function for every kind of sink.

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/Heap.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Reservoir-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_EMIT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_EMIT_INL_H_
#undef FAISS_BITS_KERNELS_CPU_EMIT_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_EMIT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of the micro-kernel's tile: its width in registers.
constexpr int kTileWidth = 2;

/// The most rows of a tile on any target.
constexpr int kMaxTileQueries = 12;

/// A cut leaves k candidates and this share of the others, at most: a tight
/// limit turns down more of what follows, a loose one is found sooner.
constexpr idx_t kCutShare = 16;

template <class T>
constexpr int lanesOf() {
    return int(hn::MaxLanes(hn::ScalableTag<T>()));
}

template <class T>
constexpr int tileVectors() {
    return kTileWidth * lanesOf<T>();
}

/// A row of a tile: tileVectors<T>() values as the kernels give them, for the
/// ids from firstId on, `valid` of which exist.
template <class T>
struct TileRow {
    const T* values;
    idx_t firstId;
    int valid;
};

/// The key of a value: |q|^2 added, and no less than zero where that is due.
/// Comparisons that a NaN passes through unchanged.
template <class D, class V>
HWY_INLINE V finishKey(D d, V value, V queryTerm, bool clampAtZero) {
    const V key = hn::Add(value, queryTerm);
    if (clampAtZero) {
        return hn::IfThenZeroElse(hn::Lt(key, hn::Zero(d)), key);
    }
    return key;
}

/// May a row take what the filter turns down?
template <class T>
HWY_INLINE bool takesAll(const Sink<T>& sink, idx_t row) {
    return sink.kind == SinkKind::Store ||
            sink.state[sink.placeOf(row)] != RowState::Below;
}

/// Does any value of the row pass the filter? Values under the limit do.
template <class T>
HWY_INLINE bool passesFilter(T filter, const T* values) {
    const hn::ScalableTag<T> d;
    const auto limit = hn::Set(d, filter);
    auto any = hn::Le(hn::Load(d, values), limit);
    for (int v = 1; v < kTileWidth; ++v) {
        any = hn::Or(
                any, hn::Le(hn::Load(d, values + v * lanesOf<T>()), limit));
    }
    return !hn::AllFalse(d, any);
}

template <class T>
HWY_INLINE void setLimit(Sink<T>& sink, idx_t row, T limit, RowState state) {
    const idx_t place = sink.placeOf(row);
    sink.state[place] = state;
    sink.limit[place] = limit;
    sink.filter[row] = limit - sink.queryTerm[place];
}

template <class T>
HWY_NOINLINE void cutRow(Sink<T>& sink, idx_t row) {
    const idx_t place = sink.placeOf(row);
    NarrowJob<T> job;
    job.keys = job.outKeys = sink.keys + place * sink.keyStride;
    job.outIds = sink.ids + place * sink.idStride;
    job.ids = sink.state[place] == RowState::All ? nullptr : job.outIds;
    job.firstId = sink.firstId;
    job.count = sink.counts[place];
    job.k = sink.k;
    job.most = std::min(
            job.k + (job.count - job.k) / kCutShare,
            sink.capacity - tileVectors<T>());
    const Narrowed<T> left = narrow(job);
    sink.counts[place] = left.count;
    setLimit(sink, row, left.limit, left.state);
}

/// Rows of a whole tile that have limits, into their buffers. Written without
/// branches: which rows and lanes pass cannot be predicted.
template <class T>
void emitTileToBuffers(
        Sink<T>& sink,
        idx_t firstRow,
        int rows,
        const TileRow<T>& tile) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    constexpr int kLanes = lanesOf<T>();
    int passing[kMaxTileQueries];
    int numPassing = 0;
    for (int i = 0; i < rows; ++i) {
        passing[numPassing] = i;
        numPassing += passesFilter(
                sink.filter[firstRow + i], tile.values + i * tileVectors<T>());
    }
    const auto firstIds = hn::Iota(di, CandidateId<T>(tile.firstId));
    for (int j = 0; j < numPassing; ++j) {
        const idx_t row = firstRow + passing[j];
        const idx_t place = sink.placeOf(row);
        const T* values = tile.values + passing[j] * tileVectors<T>();
        T* keys = sink.keys + place * sink.keyStride;
        CandidateId<T>* ids = sink.ids + place * sink.idStride;
        idx_t count = sink.counts[place];
        const auto queryTerm = hn::Set(d, sink.queryTerm[place]);
        const auto limit = hn::Set(d, sink.limit[place]);
        for (int v = 0; v < kTileWidth; ++v) {
            const auto key = finishKey(
                    d,
                    hn::Load(d, values + v * kLanes),
                    queryTerm,
                    sink.clampAtZero);
            const auto mask = hn::Lt(key, limit);
            const auto id =
                    hn::Add(firstIds, hn::Set(di, CandidateId<T>(v * kLanes)));
            storeCompressed(d, key, mask, keys + count);
            storeCompressed(di, id, hn::RebindMask(di, mask), ids + count);
            count += idx_t(hn::CountTrue(d, mask));
        }
        sink.counts[place] = count;
        if (HWY_UNLIKELY(count + tileVectors<T>() > sink.capacity)) {
            cutRow(sink, row);
        }
    }
}

/// A row of a tile into the buffer of a row that takes all. Stores a whole tile
/// also where less of it exists.
template <class T>
HWY_INLINE void appendAll(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    const hn::ScalableTag<T> d;
    const idx_t place = sink.placeOf(row);
    T* keys = sink.keys + place * sink.keyStride + sink.counts[place];
    const auto queryTerm = hn::Set(d, sink.queryTerm[place]);
    for (int v = 0; v < kTileWidth; ++v) {
        const auto value = hn::Load(d, tile.values + v * lanesOf<T>());
        hn::StoreU(
                finishKey(d, value, queryTerm, sink.clampAtZero),
                d,
                keys + v * lanesOf<T>());
    }
    sink.counts[place] += tile.valid;
    if (sink.counts[place] + tileVectors<T>() > sink.firstCapacity) {
        cutRow(sink, row);
    }
}

template <class T>
void emitToBuffer(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    const idx_t place = sink.placeOf(row);
    if (sink.state[place] == RowState::All) {
        return appendAll(sink, row, tile);
    }
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    constexpr int kLanes = lanesOf<T>();
    T* keys = sink.keys + place * sink.keyStride;
    CandidateId<T>* ids = sink.ids + place * sink.idStride;
    idx_t count = sink.counts[place];
    const auto queryTerm = hn::Set(d, sink.queryTerm[place]);
    const auto limit = hn::Set(d, sink.limit[place]);
    for (int v = 0; v < kTileWidth; ++v) {
        const int left = tile.valid - v * kLanes;
        if (left <= 0) {
            break;
        }
        const auto key = finishKey(
                d,
                hn::Load(d, tile.values + v * kLanes),
                queryTerm,
                sink.clampAtZero);
        auto mask = sink.state[place] == RowState::Below ? hn::Lt(key, limit)
                                                         : hn::Eq(key, key);
        if (left < kLanes) {
            mask = hn::And(mask, hn::FirstN(d, size_t(left)));
        }
        const auto id = hn::Iota(di, CandidateId<T>(tile.firstId + v * kLanes));
        storeCompressed(d, key, mask, keys + count);
        storeCompressed(di, id, hn::RebindMask(di, mask), ids + count);
        count += idx_t(hn::CountTrue(d, mask));
    }
    sink.counts[place] = count;
    // Room for the next row of a tile.
    if (count + tileVectors<T>() > sink.capacity) {
        cutRow(sink, row);
    }
}

/// The keys of a row of a tile, and a bit for each that is under the limit.
template <class T>
HWY_INLINE uint64_t
keysUnder(const Sink<T>& sink, idx_t row, const TileRow<T>& tile, T* keys) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    const auto queryTerm = hn::Set(d, sink.queryTerm[row]);
    const auto limit = hn::Set(d, sink.limit[row]);
    uint64_t under = 0;
    for (int v = 0; v < kTileWidth; ++v) {
        const auto key = finishKey(
                d,
                hn::Load(d, tile.values + v * kLanes),
                queryTerm,
                sink.clampAtZero);
        hn::Store(key, d, keys + v * kLanes);
        uint8_t bits[8] = {};
        hn::StoreMaskBits(d, hn::Lt(key, limit), bits);
        uint64_t word;
        std::memcpy(&word, bits, sizeof(word));
        under |= word << (v * kLanes);
    }
    return under & (~uint64_t(0) >> (64 - tile.valid));
}

/// The limit of a heap with slack: what was turned down is not under it.
template <class T>
T slackLimit(const Sink<T>& sink, idx_t row, T root) {
    return root +
            (sink.slack.ofKey * std::abs(root) +
             sink.slack.ofTerm * sink.queryTerm[row] + sink.slack.more);
}

/// Of the first keys of such a heap of one, those that its limit will not turn
/// down again; all if none is a number, or nothing is known of their errors.
template <class T>
uint64_t keysWithin(const Sink<T>& sink, idx_t row, const T* keys, int valid) {
    T least = std::numeric_limits<T>::infinity();
    for (int i = 0; i < valid; ++i) {
        least = keys[i] < least ? keys[i] : least;
    }
    const T low = slackLimit(sink, row, least);
    uint64_t within = 0;
    for (int i = 0; i < valid; ++i) {
        within |= uint64_t(!(keys[i] >= low)) << i;
    }
    return within;
}

/// An entry that a full heap has not, behind it, if it is under the limit.
/// Where there are too many of these the farthest is the limit. Returns that.
template <class T>
HWY_NOINLINE T keepAside(
        const Sink<T>& sink,
        idx_t row,
        idx_t& count,
        T limit,
        OrderedEntry<T> entry) {
    OrderedEntry<T>* const begin = sink.heaps + row * sink.heapStride + sink.k;
    if (count == sink.k + sink.aside) {
        OrderedEntry<T>* const end = std::remove_if(
                begin, begin + sink.aside, [&](const OrderedEntry<T>& one) {
                    return !(one.key() < limit);
                });
        count = sink.k + idx_t(end - begin);
    }
    if (count < sink.k + sink.aside) {
        begin[count++ - sink.k] = entry;
        return limit;
    }
    OrderedEntry<T>* const farthest =
            std::max_element(begin, begin + sink.aside);
    if (sink.aside > 0 && entry < *farthest) {
        std::swap(entry, *farthest);
    }
    return entry.key();
}

template <class T>
void emitToHeap(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    OrderedEntry<T>* heap = sink.heaps + row * sink.heapStride;
    HWY_ALIGN T keys[tileVectors<T>()];
    uint64_t under = keysUnder(sink, row, tile, keys);
    idx_t count = sink.counts[row];
    T limit = sink.limit[row];
    RowState state = sink.state[row];
    if (state != RowState::Below) {
        under = ~uint64_t(0) >> (64 - tile.valid);
    }
    const bool hasSlack = sink.slack.isOn;
    if (hasSlack && sink.k == 1 && state == RowState::All) {
        const uint64_t within = keysWithin(sink, row, keys, tile.valid);
        under = within ? within : under;
    }
    for (; under; under &= under - 1) {
        const int i = int(hwy::Num0BitsBelowLS1Bit_Nonzero64(under));
        const T key = keys[i];
        const bool take = key < limit || state == RowState::All ||
                (state == RowState::Numbers && key == key);
        if (!take) {
            continue;
        }
        OrderedEntry<T> entry(key, CandidateId<T>(tile.firstId + i));
        const bool isFull = count >= sink.k;
        if (!isFull) {
            pushHeap<2>(heap, count, entry);
            if (++count < sink.k) {
                continue;
            }
        } else if (entry < heap[0]) {
            const OrderedEntry<T> last = heap[0];
            replaceRoot<2>(heap, sink.k, entry);
            entry = last;
        }
        const T root = heap[0].key();
        T most = root;
        if (hasSlack) {
            const T low = slackLimit(sink, row, root);
            most = low >= root ? low : root;
            most = state == RowState::Below && limit < most ? limit : most;
        }
        limit = most;
        state = limit == limit ? RowState::Below : RowState::Numbers;
        if (hasSlack && isFull && entry.key() < limit) {
            limit = keepAside(sink, row, count, limit, entry);
        }
    }
    sink.counts[row] = count;
    if (state != RowState::All) {
        setLimit(sink, row, limit, state);
    }
}

template <class T>
HWY_INLINE void emitToStore(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    const auto queryTerm = hn::Set(d, sink.queryTerm[row]);
    T* to = sink.distances + row * sink.distanceStride + tile.firstId -
            sink.firstId;
    for (int v = 0; v < kTileWidth; ++v) {
        const auto value = hn::Load(d, tile.values + v * kLanes);
        hn::StoreU(
                finishKey(d, value, queryTerm, sink.clampAtZero),
                d,
                to + v * kLanes);
    }
}

template <class T>
void emitToRange(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    HWY_ALIGN T keys[tileVectors<T>()];
    uint64_t under = keysUnder(sink, row, tile, keys);
    for (; under; under &= under - 1) {
        const int i = int(hwy::Num0BitsBelowLS1Bit_Nonzero64(under));
        sink.hits[row].push_back({keys[i], CandidateId<T>(tile.firstId + i)});
    }
}

template <class T>
HWY_NOINLINE void emitRow(Sink<T>& sink, idx_t row, const TileRow<T>& tile) {
    switch (sink.kind) {
        case SinkKind::Buffer:
            return emitToBuffer(sink, row, tile);
        case SinkKind::Heap:
            return emitToHeap(sink, row, tile);
        case SinkKind::Store:
            return emitToStore(sink, row, tile);
        case SinkKind::Range:
            return emitToRange(sink, row, tile);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
