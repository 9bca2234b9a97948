#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/Types.h"
#include "kernels/cpu/AlignedMemory.h"
#include "kernels/cpu/KernelMetric.h"

/// What the host code of this family hands to the kernels of an instruction
/// set, and gets back. Plain structs; no SIMD header.
namespace faiss_bits::cpu {

inline idx_t roundUp(idx_t value, idx_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/// Number of a candidate within one search: its place in the sorted vectorIds.
template <class T>
using CandidateId = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Rows of a matrix, or of a subset of it.
template <class T>
struct RowView {
    const T* data = nullptr;
    idx_t stride = 0;           ///< elements
    const idx_t* ids = nullptr; ///< nullptr: row i is row i

    const T* row(idx_t i) const {
        return data + (ids ? ids[i] : i) * stride;
    }
};

/// Memory for vector loads and stores; not initialised.
template <class T>
class AlignedBuffer {
   public:
    AlignedBuffer() = default;
    explicit AlignedBuffer(size_t size) {
        allocate(size);
    }
    AlignedBuffer(AlignedBuffer&& other) noexcept
            : data_(std::exchange(other.data_, nullptr)),
              bytes_(other.bytes_) {}
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;
    ~AlignedBuffer() {
        release();
    }

    /// Throws std::bad_alloc; the buffer is then empty.
    void allocate(size_t size) {
        release();
        if (size > SIZE_MAX / 2 / sizeof(T)) {
            throw std::bad_alloc();
        }
        bytes_ = size * sizeof(T);
        data_ = static_cast<T*>(takeAligned(bytes_));
    }
    void release() {
        giveAligned(std::exchange(data_, nullptr), bytes_);
    }
    T* get() const {
        return data_;
    }

   private:
    T* data_ = nullptr;
    size_t bytes_ = 0;
};

/// How a row of distances is selected from.
enum class SinkKind : uint8_t {
    Buffer, ///< candidates under the limit, cut back to k when they are many
    Heap,   ///< binary heap of the k nearest
    Store,  ///< every distance
    Range,  ///< candidates under the radius
};

/// What a row of a sink takes.
enum class RowState : uint8_t {
    All,     ///< everything: fewer than k candidates so far
    Numbers, ///< whatever is not NaN: k candidates, NaN among them
    Below,   ///< keys under the limit
};

template <class T>
struct RangeHit {
    T key;
    CandidateId<T> id;
};

/// A key and an id in one, ordered by key, then id; NaN last, -0 as +0.
template <class T>
struct OrderedEntry;

/// The least and the largest key of some entries.
template <class T>
struct OrderRange;

/// How far the limit of a heap is above the key of its root: ofKey |key| +
/// ofTerm queryTerm + more.
template <class T>
struct HeapSlack {
    bool isOn = false;
    T ofKey = 0, ofTerm = 0, more = 0;
};

/// Where the rows of a block of distances go. Candidates of a row arrive with
/// ascending ids, so a key that equals the limit comes too late.
template <class T>
struct Sink {
    SinkKind kind = SinkKind::Buffer;
    bool clampAtZero = false; ///< L2 as a difference may fall below zero
    idx_t k = 0;

    // [rows]; filter has room for a tile more, which takes nothing
    T* filter = nullptr; ///< limit - queryTerm: what kernels compare with
    /// Buffer: where a row is in the arrays below; nullptr: row i is at i. So
    /// rows that are far apart can be neighbours in a tile.
    const int32_t* places = nullptr;
    T* limit = nullptr;
    RowState* state = nullptr;
    T* queryTerm = nullptr;  ///< |q|^2, or 0: added to what the kernels give
    idx_t* counts = nullptr; ///< Buffer, Heap

    // Buffer: rows of candidates with ascending ids, with room for a vector
    // more. A row that takes all has no ids yet: they are firstId and on.
    T* keys = nullptr;             ///< [rows, firstCapacity], keyStride apart
    CandidateId<T>* ids = nullptr; ///< [rows, capacity], idStride apart
    idx_t keyStride = 0, idStride = 0;
    idx_t capacity = 0;      ///< a row with a tile's width less is cut
    idx_t firstCapacity = 0; ///< the same before it has a limit

    OrderedEntry<T>* heaps = nullptr; ///< Heap: [rows, k], heapStride apart
    idx_t heapStride = 0;
    /// Heap: what is nearly as near as the root is kept, too, in up to `aside`
    /// places behind the heap.
    HeapSlack<T> slack;
    idx_t aside = 0;

    T* distances = nullptr; ///< Store: [rows, ...], distanceStride apart
    idx_t distanceStride = 0;
    idx_t firstId = 0; ///< Store: of column 0; Buffer: of the first candidate

    std::vector<RangeHit<T>>* hits = nullptr; ///< Range: [rows]

    idx_t placeOf(idx_t row) const {
        return places ? places[row] : row;
    }
};

/// A block of packed queries against a block of packed vectors.
template <class T>
struct TileJob {
    const T* queries = nullptr;    ///< panels of tileQueries, [depth][tile]
    const T* vectors = nullptr;    ///< panels of tileVectors, [depth][tile]
    const T* vectorTerm = nullptr; ///< [columns, whole panels]
    idx_t firstRow = 0;            ///< of the sink
    int rows = 0;
    idx_t columns = 0;
    idx_t firstId = 0; ///< of column 0
    int depth = 0;
    int depthBlock = 0;
    int groupPanels = 1; ///< panels of vectors that a depth block visits
    /// groupPanels x rows (whole panels) x tileVectors, if depthBlock < depth
    T* partial = nullptr;
    T power = 0; ///< KernelMetric::Power
    Sink<T>* sink = nullptr;
};

/// Vectors of so many bytes are taken to be in a cache of a core, or near it,
/// where they are searched again and again.
constexpr double kNearBytes = 2 << 20;

/// Vectors against few queries, without packing.
template <class T>
struct ScanJob {
    const T* queries = nullptr; ///< [rows, queryStride], zero-padded, aligned
    idx_t queryStride = 0;
    int rows = 0;
    RowView<T> vectors;
    idx_t begin = 0, end = 0; ///< rows of `vectors`
    idx_t firstId = 0;        ///< id of the row `begin`
    int depth = 0;
    T power = 0;
    Sink<T>* sink = nullptr;
    bool isNear = false; ///< the vectors are up to kNearBytes
    /// Product, if not null: raised to what no |x|^2 is above, but for its
    /// rounding. It may be some times as much.
    T* largestSquare = nullptr;
    /// Cosine, if not null: 1 / |x| of each vector, from `begin` on.
    T* scales = nullptr;
};

/// Panels to fill from rows begin, begin + 1, ..., `count` of them.
template <class T>
struct PackJob {
    RowView<T> rows;
    idx_t begin = 0;
    idx_t count = 0;
    int depth = 0;
    T* panels = nullptr; ///< whole panels; missing rows are zero
    T* terms = nullptr;  ///< [count, whole panels]; see the two kernels
    /// 16-bit integers (Int16Types.h): raised to the largest square of what
    /// they leave of a vector, as a share of its own; infinity for one that
    /// they cannot stand for.
    double* roundingShare = nullptr;
};

/// Candidates of which the k nearest are to stay; ascending ids.
template <class T>
struct NarrowJob {
    const T* keys = nullptr;
    const CandidateId<T>* ids = nullptr; ///< nullptr: firstId, firstId + 1, ...
    idx_t firstId = 0;
    idx_t count = 0;
    idx_t k = 0;    ///< < count
    idx_t most = 0; ///< >= k: as many may stay, if that is less work
    /// Room for a vector more than `count`; may be the arrays above.
    T* outKeys = nullptr;
    CandidateId<T>* outIds = nullptr;
};

template <class T>
struct Narrowed {
    idx_t count = 0; ///< k .. most; in the order they came
    T limit = 0;     ///< later candidates with such a key or more are too late
    RowState state = RowState::All; ///< Numbers: the limit is NaN
};

/// Kernels of one scalar type that no metric is part of.
template <class T>
struct CommonKernels {
    int tileQueries = 0, tileVectors = 0, lanes = 0;
    /// terms: |x|^2 (L2, Product), 1 / |x| (Cosine), untouched (others)
    void (*packVectors)(const PackJob<T>&, KernelMetric) = nullptr;
    /// terms: |q|^2 (L2), 0 (others). Negates for Product and Cosine, and
    /// scales to unit length for Cosine.
    void (*packQueries)(const PackJob<T>&, KernelMetric) = nullptr;
    /// As packQueries, but row after row with zeros behind: for ScanJob.
    void (*copyQueries)(const PackJob<T>&, KernelMetric, idx_t stride) =
            nullptr;
    Narrowed<T> (*narrow)(const NarrowJob<T>&) = nullptr;
    /// A key with k .. most keys at or under it, or the k-th where there is
    /// none such; NaN where there are not k numbers.
    T (*findLimit)(const NarrowJob<T>&) = nullptr;
    idx_t (*countUnder)(const T* keys, idx_t count, T limit) = nullptr;
    /// The candidates at or under a limit.
    Narrowed<T> (*keepUnder)(const NarrowJob<T>&, T limit) = nullptr;
    /// The candidates above one limit, at or under another: how many.
    idx_t (*keepBetween)(const NarrowJob<T>&, T above, T limit) = nullptr;
    /// Feeds a row of keys to the 4-ary heap of a row of the sink.
    void (*scanRow)(
            const T* keys,
            idx_t count,
            idx_t firstId,
            idx_t k,
            OrderedEntry<T>* heap,
            idx_t* heapCount) = nullptr;
    /// Entries of `count` candidates; ids may be null: firstId and on.
    OrderRange<T> (*makeEntries)(
            const T* keys,
            const CandidateId<T>* ids,
            idx_t firstId,
            idx_t count,
            OrderedEntry<T>* to) = nullptr;
    /// Keys and ids of sorted entries, none of them NaN: keys may be negated,
    /// ids looked up in a map.
    void (*writeEntries)(
            const OrderedEntry<T>* entries,
            idx_t count,
            bool negate,
            const idx_t* idMap,
            T* keys,
            idx_t* ids) = nullptr;
};

template <class T>
struct MetricKernels {
    void (*runTiles)(const TileJob<T>&) = nullptr;
    void (*scanDirect)(const ScanJob<T>&) = nullptr;
};

} // namespace faiss_bits::cpu
