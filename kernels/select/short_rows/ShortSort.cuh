/// The sort of the entries of a short row, by numbers of 32 bits: these take a
/// third of the instructions that entries take, and those are most of the time
/// where k is near the row's length.
#pragma once

#include <type_traits>

#include "kernels/select/large_k/Composite.cuh"
#include "kernels/select/short_rows/GroupSort.cuh"

namespace faiss_bits {

/// kItems entries in each of kLanes lanes, of keys of type T and columns below
/// 65,535; kIsRow: all of a row, item i of a lane from column i * kLanes +
/// lane. All lanes of the warp call it, each group for itself.
template <class T, int kLanes, int kItems, bool kIsRow>
struct ShortSort {
    using Group = LaneGroup<kLanes>;
    using Sort = GroupSort<kLanes, kItems>;

   private:
    /// With fewer entries there is too little to save, and more want too many
    /// registers (measured, H100). Of lists that are not full, a place behind
    /// the end may be before that of the last entry.
    static constexpr bool kByDistance =
            sizeof(T) == 4 && kIsRow && kItems >= 4 && kItems <= 16;
    static constexpr int kSize = kLanes * kItems;

    /// Where a column's entry lies in the room: one place in 16 is left out, so
    /// that what lanes load of a row in order, or in its reverse, lies in
    /// different banks, as do the rows of a warp.
    __device__ __forceinline__ static uint32_t placeOf(uint32_t column) {
        return column + column / 16;
    }

   public:
    /// Entries of a group's room.
    static constexpr int kRoom = kSize + (kByDistance ? kSize / 16 : 0);

    /// Sorts ascending: entry lane * kItems + i of the result is item i of a
    /// lane. room: of the group, overwritten.
    __device__ __forceinline__ static void sort(
            uint64_t (&entries)[kItems],
            uint64_t* room) {
        if constexpr (sizeof(T) == 2) {
            sortNarrow(entries);
        } else if constexpr (kByDistance) {
            sortByDistance(entries, room);
        } else {
            Sort::sort(entries);
        }
    }

   private:
    /// A key of 16 bits and its column are one number.
    __device__ __forceinline__ static void sortNarrow(
            uint64_t (&entries)[kItems]) {
        constexpr DataType kType = std::is_same_v<T, __half>
                ? DataType::Float16
                : DataType::BFloat16;
        uint32_t numbers[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            numbers[i] = narrowKey(kType, entryKey(entries[i])) << 16 |
                    (entryColumn(entries[i]) & 0xFFFFu);
        }
        Sort::sort(numbers);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            entries[i] = numbers[i] == ~uint32_t(0)
                    ? kNoEntry
                    : makeEntry(
                              widenKey(kType, numbers[i] >> 16),
                              numbers[i] & 0xFFFFu);
        }
    }

    /// By how far the keys lie above the least one, in as many bits as the
    /// columns leave. Where that does not tell keys apart, neighbours change
    /// places, or the entries themselves are sorted.
    __device__ __forceinline__ static void sortByDistance(
            uint64_t (&entries)[kItems],
            uint64_t* room) {
        constexpr int kPlaceBits = kSize == 32 ? 5
                : kSize == 64                  ? 6
                : kSize == 128                 ? 7
                : kSize == 256                 ? 8
                : kSize == 512                 ? 9
                                               : 10;
        static_assert(1 << kPlaceBits == kSize);
        constexpr uint32_t kInfinity = 0xFF800000u; // and above it NaN
        uint32_t least = kNanKey;
        uint32_t greatest = 0;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t key = entryKey(entries[i]);
            least = min(least, key);
            greatest = max(greatest, key < kInfinity ? key : 0);
        }
        least = Group::least(least);
        greatest = Group::greatest(greatest);
        // Behind the greatest by one step, for all that is not finite: in the
        // greatest's own step it would be sorted by its column.
        const uint32_t span = greatest >= least ? greatest - least : 0;
        const int shift =
                max(0, kPlaceBits - __clz(int(span + (1u << kPlaceBits))));
        const uint32_t range = ((span >> shift) + 1) << shift;
        uint32_t numbers[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            // The column.
            const uint32_t place = i * kLanes + Group::lane();
            room[placeOf(place)] = entries[i];
            const uint32_t above = min(entryKey(entries[i]) - least, range);
            numbers[i] = above >> shift << kPlaceBits | place;
        }
        Sort::sort(numbers);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            entries[i] = room[placeOf(numbers[i] % kSize)];
        }
        // What lies in one step is in the order of its columns: few, as a rule,
        // such as those around zero of keys of any power of two.
        int turns = kMostTurns;
#pragma unroll 1
        while (__any_sync(kFullWarp, isWrong(entries))) {
            if (--turns < 0) {
                Sort::sortAgain(entries);
                break;
            }
            turnNeighbours(entries);
        }
        __syncwarp();
    }

    /// Enough for 12 keys of one step.
    static constexpr int kMostTurns = 6;

    /// Whether an entry of this lane comes before the one that it follows.
    __device__ __forceinline__ static bool isWrong(
            const uint64_t (&entries)[kItems]) {
        bool is = false;
#pragma unroll
        for (int i = 0; i + 1 < kItems; ++i) {
            is = is || entries[i + 1] < entries[i];
        }
        const uint64_t next =
                __shfl_down_sync(kFullWarp, entries[0], 1, kLanes);
        return is ||
                (Group::lane() + 1 < kLanes && next < entries[kItems - 1]);
    }

    /// Two steps of a transposition sort: g neighbours in any order are sorted
    /// after g steps.
    __device__ __forceinline__ static void turnNeighbours(
            uint64_t (&entries)[kItems]) {
        static_assert(kItems % 2 == 0);
#pragma unroll
        for (int i = 0; i < kItems; i += 2) {
            order(entries[i], entries[i + 1]);
        }
        // The lesser of the last one and the next lane's first stays.
        uint64_t greater = __shfl_down_sync(kFullWarp, entries[0], 1, kLanes);
        if (Group::lane() + 1 < kLanes) {
            order(entries[kItems - 1], greater);
        }
        greater = __shfl_up_sync(kFullWarp, greater, 1, kLanes);
        if (Group::lane() > 0) {
            entries[0] = greater;
        }
#pragma unroll
        for (int i = 1; i + 1 < kItems; i += 2) {
            order(entries[i], entries[i + 1]);
        }
    }

    __device__ __forceinline__ static void order(uint64_t& a, uint64_t& b) {
        const uint64_t first = min(a, b);
        b = max(a, b);
        a = first;
    }
};

} // namespace faiss_bits
