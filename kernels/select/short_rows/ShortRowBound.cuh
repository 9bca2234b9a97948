/// The bound of a short row: a key, and where many are equal a column, that k
/// or more of the entries are within, and as many as there is room for at most.
///
/// It is found by halving the range of the keys, first for the least keys of
/// parts of the chunk, which are few and nearly always decide.
#pragma once

#include "kernels/select/short_rows/BoundSearch.cuh"
#include "kernels/select/short_rows/RowChunk.cuh"
#include "kernels/select/short_rows/ShortChunk.h"

namespace faiss_bits {

/// The chunk of keys, and the search among them. As in ShortRow.
template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
class ShortRowBound {
    using Group = LaneGroup<kLanes>;
    /// Least time with random keys (H200; docs/design/selection_short_rows.md).
    static constexpr Halving kHalving =
            kItems == 32 && kLanes >= 16 && kSorted <= 2 ? Halving::SoonValues
            : kSorted <= 2 &&
                    (kLanes == 8 ? kItems <= 16 : kLanes * kItems == 512)
            ? Halving::ThenValues
            : kLanes == 32 && kItems == 32 && kSorted >= 8 ? Halving::Evenly
                                                           : Halving::Only;

   protected:
    using Chunk = RowChunk<T, kHasBias, kLanes, kItems>;
    static constexpr bool kIsOneChunk = Chunk::kColumns < kShortChunkColumns;
    static constexpr int kKept = kIsOneChunk ? 0 : kSorted;
    using Kept = KeptEntries<kKept>;
    using Search = BoundSearch<T, kLanes, kKept, kHalving>;
    /// Entries that there is room for.
    static constexpr uint32_t kRoom = kLanes * kSorted;

    __device__ __forceinline__ explicit ShortRowBound(
            const SelectParams& params)
            : params_(params), chunk_{params.cols} {}

    /// Entries up to one of a key and a column; kAnyColumn: up to the key.
    struct Within {
        uint32_t key;
        uint32_t column;

        __device__ __forceinline__ bool has(uint64_t entry) const {
            return entry <= makeEntry(key, column);
        }
    };
    static constexpr uint32_t kAnyColumn = ~uint32_t(0);

    /// Of the chunk and the entries that are kept of those before it. No number
    /// above `most` is looked at: k keys are not above it, or it is no less
    /// than infinity.
    __device__ __forceinline__ Within
    findBound(const Kept& kept, uint32_t most) const {
        const uint32_t k = uint32_t(params_.k);
        const auto countOf = [&](const auto& keys, uint32_t most) {
            uint32_t count = 0;
#pragma unroll
            for (uint32_t key : keys) {
                count += key <= most ? 1 : 0;
            }
#pragma unroll
            for (int i = 0; i < kKept; ++i) {
                count += entryKey(kept[i]) <= most ? 1 : 0;
            }
            return Group::sum(count);
        };
        uint32_t least = chunk_.least();
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            least = min(least, entryKey(kept[i]));
        }
        least = Group::least(least);
        const Search search{k};
        uint32_t limit = kNanKey;
        if (kParts < kItems && k <= kRoom * 3 / 4) {
            limit = limitOfParts(search, kept, countOf, least, most);
        }
        // Of kNanKey nobody asks.
        uint32_t count = 0;
        if constexpr (kParts < kItems) {
            count = countOf(chunk_.keys, limit);
        }
        if constexpr (Search::kLooksAtValues) {
            if (__all_sync(kFullWarp, limit < kNanKey && count <= kRoom)) {
                return {limit, kAnyColumn};
            }
            return findBoundByValues(
                    search, kept, countOf, least, limit, count);
        } else {
            return findBoundByHalves(
                    search, kept, countOf, least, limit, count, most);
        }
    }

    const SelectParams& params_;
    Chunk chunk_;

   private:
    /// Of all keys, from the limit of parts on down, which `count` keys are
    /// within.
    template <class Count>
    __device__ __forceinline__ Within findBoundByHalves(
            const Search& search,
            const Kept& kept,
            const Count& countOf,
            uint32_t least,
            uint32_t limit,
            uint32_t count,
            uint32_t most) const {
        if (__any_sync(kFullWarp, limit == kNanKey || count > kRoom)) {
            const auto countOfAll = [&](uint32_t most) {
                return countOf(chunk_.keys, most);
            };
            const auto greatestUpTo = [&](uint32_t most) {
                return Search::greatestUpTo(most, chunk_.keys, kept);
            };
            uint32_t high = limit;
            bool isBeyond = false;
            if (__any_sync(kFullWarp, limit == kNanKey)) {
                const uint32_t finite =
                        min(greatestUpTo(kInfinityKey - 1), most);
                high = limit == kNanKey ? finite : limit;
                count = countOfAll(high);
                isBeyond = count < search.k;
                if (__any_sync(kFullWarp, isBeyond)) {
                    const uint32_t greatest = greatestUpTo(kNanKey - 1);
                    high = isBeyond ? greatest : high;
                    count = countOfAll(high);
                }
            }
            const uint32_t found = search.halveKeys(
                    count > kRoom && !isBeyond ? least : high,
                    high,
                    kRoom,
                    countOfAll,
                    chunk_.keys,
                    kept,
                    count,
                    // The limit of the parts is often the k-th key.
                    __any_sync(kFullWarp, limit == kNanKey)
                            ? Search::kStepsOfRandom
                            : 1);
            limit = count < search.k ? kNanKey : found;
            count = countOf(chunk_.keys, limit);
        }
        const bool fits = limit < kNanKey && count <= kRoom;
        if (__all_sync(kFullWarp, fits)) {
            return {limit, kAnyColumn};
        }
        // So many are equal, or NaN, that their columns decide.
        const uint32_t less = __popc(chunk_.below(limit));
        const uint32_t equal = chunk_.equalTo(limit);
        const auto countWithin = [&](uint32_t column) {
            const Within within{limit, column};
            uint32_t sum = less + __popc(equal & chunk_.upTo(column));
#pragma unroll
            for (int i = 0; i < kKept; ++i) {
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
            const Kept& kept,
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
        for (int i = 0; i < kKept; ++i) {
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
                    kept,
                    count);
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
            for (int i = 0; i < kKept; ++i) {
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
            const Kept& kept,
            const Count& countOf,
            uint32_t least,
            uint32_t most) const {
        // Neighbours are in different parts, and so are the last columns; where
        // parts are turned, so are columns that lie 128, 256 or 512 apart, and
        // where lanes are, those that lie any power of two apart. If equal keys
        // are in one part, the parts say too much.
        uint32_t parts[kParts];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const int part = (kTurnsParts ? i + i / kParts : i) % kParts;
            if (i < kParts) {
                parts[part] = chunk_.keys[i];
                continue;
            }
            const uint32_t key = kTurnsLanes
                    ? __shfl_xor_sync(kFullWarp, chunk_.keys[i], i - kParts + 1)
                    : chunk_.keys[i];
            parts[part] = min(parts[part], key);
        }
        // Up to infinity is far to halve.
        const uint32_t high =
                min(Search::greatestUpTo(kInfinityKey - 1, parts, kept), most);
        const auto countOfParts = [&](uint32_t m) { return countOf(parts, m); };
        const uint32_t all = countOfParts(high);
        const bool says = all >= search.k;
        // A few more cost less than to find out.
        const uint32_t found = search.narrowKeys(
                says ? least : high,
                high,
                search.k + search.k / 8,
                countOfParts,
                parts,
                kept,
                all);
        return says ? found : kNanKey;
    }

    /// Of a lane's keys in a chunk: twice as many parts as there is room for
    /// entries.
    static constexpr int kParts = 2 * kSorted < kItems ? 2 * kSorted : kItems;
    /// As measured (H200; docs/design/selection_short_rows.md).
    static constexpr bool kTurnsParts = kItems >= 16;
    static constexpr bool kTurnsLanes =
            kLanes == kWarpSize && kItems == 32 && kParts == 16;
};

} // namespace faiss_bits
