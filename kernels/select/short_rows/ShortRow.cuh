/// One row, read once by a few lanes, some hundred or a thousand keys at a
/// time, which are held in registers.
///
/// Of the first keys a bound is found that k of them and not many more are
/// within; those go to shared memory. Of later keys only what is within the
/// bound is added, and where there is no more room, a new bound is found for
/// what is held and what comes. No sample is trusted: in any order, a chunk of
/// keys costs a bound at most.
///
/// A bound is found by halving the range of the keys, first for the least keys
/// of parts of the chunk, which are few and nearly always decide.
#pragma once

#include "kernels/select/short_rows/BoundSearch.cuh"
#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/RowChunk.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// kItems keys a lane at a time; room for kSorted entries a lane, of which the
/// k best are the result. kSorted = kItems: rows of one chunk, all sorted.
template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
class ShortRow {
    using Group = LaneGroup<kLanes>;
    using Chunk = RowChunk<T, kHasBias, kLanes, kItems>;
    /// What took least time with random keys (H200; docs/design.md).
    static constexpr Halving kHalving =
            kItems == 32 && kLanes >= 16 && kSorted <= 2 ? Halving::SoonValues
            : kSorted <= 2 &&
                    (kLanes == 8 ? kItems <= 16 : kLanes * kItems == 512)
            ? Halving::ThenValues
            : Halving::Only;
    using Search = BoundSearch<T, kLanes, kSorted, kHalving>;

   public:
    static constexpr bool kSortsAll = kSorted == kItems;
    /// Entries of a row in shared memory.
    static constexpr uint32_t kRoom = kLanes * kSorted;

    /// writes: else the lanes only go along with the others of their warp.
    __device__ ShortRow(
            const SelectParams& params,
            uint32_t row,
            bool writes,
            uint64_t* room)
            : params_(params),
              row_(row),
              writes_(writes),
              room_(room),
              chunk_{params.cols} {}

    __device__ __forceinline__ void run() {
        if (params_.k == 1) {
            runLeast();
            return;
        }
        uint64_t entries[kSorted];
        if constexpr (kSortsAll) {
            chunk_.load(params_, row_);
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                entries[i] = chunk_.columnOf(i) < chunk_.cols
                        ? chunk_.entryOf(i)
                        : kNoEntry;
            }
        } else {
            for (; chunk_.base < chunk_.cols; chunk_.base += Chunk::kColumns) {
                chunk_.load(params_, row_);
                takeChunk();
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                const uint32_t place = Group::lane() * kSorted + i;
                entries[i] = place < held_ ? room_[place] : kNoEntry;
            }
            __syncwarp();
        }
        GroupSort<kLanes, kSorted>::sort(entries);
        write(entries);
    }

   private:
    // ---- k = 1 --------------------------------------------------------------

    __device__ __forceinline__ void runLeast() {
        uint32_t best = kNanKey;
        uint32_t bestColumn = Group::lane();
        for (; chunk_.base < chunk_.cols; chunk_.base += Chunk::kColumns) {
            chunk_.load(params_, row_);
            const uint32_t least = chunk_.least();
            if (least < best) {
                best = least;
#pragma unroll
                for (int i = kItems - 1; i >= 0; --i) {
                    bestColumn = chunk_.keys[i] == least ? chunk_.columnOf(i)
                                                         : bestColumn;
                }
            }
        }
        const uint32_t key = Group::least(best);
        const uint32_t column =
                Group::least(best == key ? bestColumn : ~uint32_t(0));
        if (Group::lane() == 0 && writes_) {
            writeResult<T>(params_, row_, 0, makeEntry(key, column));
        }
    }

    // ---- k > 1 --------------------------------------------------------------

    /// Entries up to one of a key and a column; kAnyColumn: up to the key.
    struct Within {
        uint32_t key;
        uint32_t column;

        __device__ __forceinline__ bool has(uint64_t entry) const {
            return entry <= makeEntry(key, column);
        }
    };
    static constexpr uint32_t kAnyColumn = ~uint32_t(0);

    /// Adds what is better than the bound of the keys.
    __device__ __forceinline__ void takeChunk() {
        // All rows have as many columns.
        Within within{kNanKey, chunk_.cols - 1};
        bool fits = chunk_.cols <= kRoom;
        if (chunk_.base > 0) {
            if (!__any_sync(kFullWarp, chunk_.least() < bound_)) {
                return;
            }
            within = {bound_ - 1, kAnyColumn};
            uint32_t count = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                count += chunk_.keys[i] < bound_ ? 1 : 0;
            }
            fits = __all_sync(kFullWarp, held_ + Group::sum(count) <= kRoom);
        }
        if (!fits) {
            within = narrowRoom();
        }
        add(within);
    }

    /// Finds what to keep of those held and the chunk: at least k, and as many
    /// as there is room for at most. Drops others that are held.
    __device__ __forceinline__ Within narrowRoom() {
        uint64_t kept[kSorted];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            const uint32_t place = i * kLanes + Group::lane();
            kept[i] = place < held_ ? room_[place] : kNoEntry;
        }
        __syncwarp();
        const Within within = findBound(kept);
        uint32_t stay = 0;
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            stay += within.has(kept[i]) ? 1 : 0;
        }
        uint32_t place = Group::sumBefore(stay);
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            if (within.has(kept[i])) {
                room_[place++] = kept[i];
            }
        }
        held_ = Group::sum(stay);
        // k of lower columns are not above it.
        bound_ = within.key;
        return within;
    }

    /// Writes the chunk's entries within a bound behind those held.
    __device__ __forceinline__ void add(const Within& within) {
        // Seldom do columns matter.
        if (__all_sync(kFullWarp, within.column == kAnyColumn)) {
            addTaken([&](int i) { return chunk_.keys[i] <= within.key; });
        } else {
            addTaken([&](int i) { return within.has(chunk_.entryOf(i)); });
        }
    }

    template <class Takes>
    __device__ __forceinline__ void addTaken(const Takes& takes) {
        uint32_t mine = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            mine += takes(i) ? 1 : 0;
        }
        uint64_t* out = room_ + held_ + Group::sumBefore(mine);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (takes(i)) {
                *out++ = chunk_.entryOf(i);
            }
        }
        held_ += Group::sum(mine);
    }

    __device__ __forceinline__ Within
    findBound(const uint64_t (&kept)[kSorted]) const {
        const uint32_t k = uint32_t(params_.k);
        const auto countOf = [&](const auto& keys, uint32_t most) {
            uint32_t count = 0;
#pragma unroll
            for (uint32_t key : keys) {
                count += key <= most ? 1 : 0;
            }
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                count += entryKey(kept[i]) <= most ? 1 : 0;
            }
            return Group::sum(count);
        };
        uint32_t least = chunk_.least();
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            least = min(least, entryKey(kept[i]));
        }
        least = Group::least(least);
        const Search search{k};
        uint32_t limit = kNanKey;
        if (kParts < kItems && k <= kRoom * 3 / 4) {
            limit = limitOfParts(search, kept, countOf, least);
        }
        const uint32_t count = countOf(chunk_.keys, limit);
        if constexpr (Search::kLooksAtValues) {
            if (__all_sync(kFullWarp, limit < kNanKey && count <= kRoom)) {
                return {limit, kAnyColumn};
            }
            return findBoundByValues(
                    search, kept, countOf, least, limit, count);
        } else {
            return findBoundByHalves(
                    search, kept, countOf, least, limit, count);
        }
    }

    /// Of all keys, from the limit of parts on down, which `count` keys are
    /// within.
    template <class Count>
    __device__ __forceinline__ Within findBoundByHalves(
            const Search& search,
            const uint64_t (&kept)[kSorted],
            const Count& countOf,
            uint32_t least,
            uint32_t limit,
            uint32_t count) const {
        if (__any_sync(kFullWarp, limit == kNanKey || count > kRoom)) {
            const auto countOfAll = [&](uint32_t most) {
                return countOf(chunk_.keys, most);
            };
            const auto greatestUpTo = [&](uint32_t most) {
                return Search::greatestUpTo(most, chunk_.keys, kept);
            };
            const uint32_t finite = greatestUpTo(kInfinityKey - 1);
            uint32_t high = limit == kNanKey ? finite : limit;
            count = countOfAll(high);
            const bool isBeyond = count < search.k;
            if (__any_sync(kFullWarp, isBeyond)) {
                const uint32_t greatest = greatestUpTo(kNanKey - 1);
                high = isBeyond ? greatest : high;
                count = countOfAll(high);
            }
            const uint32_t found = search.halveKeys(
                    count > kRoom && !isBeyond ? least : high,
                    high,
                    kRoom,
                    countOfAll);
            limit = count < search.k ? kNanKey : found;
            count = countOf(chunk_.keys, limit);
        }
        const bool fits = limit < kNanKey && count <= kRoom;
        if (__all_sync(kFullWarp, fits)) {
            return {limit, kAnyColumn};
        }
        // So many are equal, or NaN, that their columns decide.
        const auto countWithin = [&](uint32_t column) {
            const Within within{limit, column};
            uint32_t sum = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                sum += within.has(chunk_.entryOf(i)) ? 1 : 0;
            }
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                sum += within.has(kept[i]) ? 1 : 0;
            }
            return Group::sum(sum);
        };
        const uint32_t last = chunk_.cols - 1;
        return {limit,
                search.narrow(fits ? last : 0, last, kRoom, countWithin)};
    }

    /// The same where few values have many keys: first the limit itself is
    /// asked whether it is the k-th key.
    template <class Count>
    __device__ __forceinline__ Within findBoundByValues(
            const Search& search,
            const uint64_t (&kept)[kSorted],
            const Count& countOf,
            uint32_t least,
            uint32_t limit,
            uint32_t count) const {
        const auto countOfAll = [&](uint32_t most) {
            return countOf(chunk_.keys, most);
        };
        if (__any_sync(kFullWarp, limit == kNanKey)) {
            const uint32_t greatest =
                    Search::greatestUpTo(kNanKey - 1, chunk_.keys, kept);
            limit = limit == kNanKey ? greatest : limit;
            count = countOfAll(limit);
        }
        uint32_t below = chunk_.below(limit);
        uint32_t less = __popc(below);
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            less += entryKey(kept[i]) < limit ? 1 : 0;
        }
        less = Group::sum(less);
        const bool searches = count > kRoom && less >= search.k;
        const bool hasNan = count < search.k;
        if (__any_sync(kFullWarp, searches || hasNan)) {
            const uint32_t found = search.narrowKeys(
                    searches ? least : limit,
                    searches ? limit - 1 : limit,
                    kRoom,
                    countOfAll,
                    chunk_.keys,
                    kept);
            limit = hasNan ? kNanKey : found;
            count = countOfAll(limit);
            below = chunk_.below(limit);
        }
        // So many are equal, or NaN, that their columns decide.
        const uint32_t equal = chunk_.equalTo(limit);
        const auto countWithin = [&](uint32_t column) {
            const Within within{limit, column};
            uint32_t sum = __popc(below | (equal & chunk_.upTo(column)));
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                sum += within.has(kept[i]) ? 1 : 0;
            }
            return Group::sum(sum);
        };
        const bool fits = limit < kNanKey && count <= kRoom;
        const uint32_t last = chunk_.cols - 1;
        return {limit,
                search.narrow(fits ? last : 0, last, kRoom, countWithin)};
    }

    /// A key that k keys are not above, by the least of parts of the chunk;
    /// kNanKey where those do not say.
    template <class Count>
    __device__ __forceinline__ uint32_t limitOfParts(
            const Search& search,
            const uint64_t (&kept)[kSorted],
            const Count& countOf,
            uint32_t least) const {
        // Neighbours are in different parts, and so are the last columns.
        uint32_t parts[kParts];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            parts[i % kParts] = i < kParts
                    ? chunk_.keys[i]
                    : min(parts[i % kParts], chunk_.keys[i]);
        }
        // Up to infinity is far to halve.
        const uint32_t high =
                Search::greatestUpTo(kInfinityKey - 1, parts, kept);
        const auto countOfParts = [&](uint32_t m) { return countOf(parts, m); };
        const bool says = countOfParts(high) >= search.k;
        // A few more cost less than to find out.
        const uint32_t found = search.narrowKeys(
                says ? least : high,
                high,
                search.k + search.k / 8,
                countOfParts,
                parts,
                kept);
        return says ? found : kNanKey;
    }

    /// Neighbouring lanes write neighbouring places.
    __device__ __forceinline__ void write(
            const uint64_t (&entries)[kSorted]) const {
        if constexpr (kSorted > 1) {
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                room_[Group::lane() * kSorted + i] = entries[i];
            }
            __syncwarp();
        }
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            const int place = i * kLanes + Group::lane();
            if (place < params_.k && writes_) {
                writeResult<T>(
                        params_,
                        row_,
                        place,
                        kSorted > 1 ? room_[place] : entries[0]);
            }
        }
    }

    /// Of a lane's keys in a chunk: twice as many parts as there is room for
    /// entries.
    static constexpr int kParts = 2 * kSorted < kItems ? 2 * kSorted : kItems;

    const SelectParams& params_;
    const uint32_t row_;
    const bool writes_;
    uint64_t* room_; // [kRoom]
    Chunk chunk_;
    uint32_t held_ = 0;  // entries in the room; from kRoom + 1 columns on, k
    uint32_t bound_ = 0; // keys that are not below it are of no more use
};

} // namespace faiss_bits
