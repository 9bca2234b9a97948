/// Rows of keys of 16 bits that some lanes hold: as ShortRow.cuh, but a key and
/// its column are one number of 32 bits, of which no two are equal. So a bound
/// is a number that k are not above, and no columns decide.
///
/// Bound by: instructions.
#pragma once

#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/LaneGroup.cuh"
#include "kernels/select/short_rows/NarrowPair.cuh"
#include "kernels/select/short_rows/NarrowResult.cuh"
#include "kernels/select/short_rows/NarrowWords.h"

namespace faiss_bits {

/// As ShortRow's; rows of one chunk.
template <class T, int kLanes, int kItems, int kSorted>
class NarrowRow {
    static_assert(sizeof(T) == 2 && kItems % 2 == 0);
    using Group = LaneGroup<kLanes>;
    using Pair = NarrowPair<T>;
    static constexpr int kPairs = kItems / 2;
    static constexpr uint32_t kNone = ~uint32_t(0);
    static constexpr bool kSortsAll = kSorted == kItems;

   public:
    /// Numbers of a row in shared memory.
    static constexpr uint32_t kRoom = kLanes * kSorted;
    /// From one row's to the next one's: rows of a warp lie in different banks.
    static constexpr uint32_t kRoomStride =
            kRoom + (kLanes < kWarpSize && kSorted >= 8 ? kLanes + 1 : 0);

    /// Up to half of the lanes' least numbers are within the bound that these
    /// give, and in random order hardly more than kRoom * 0.7 of all. Where
    /// all are sorted, k may be more than the columns.
    __host__ __device__ static constexpr bool takes(uint32_t cols, int k) {
        return cols <= uint32_t(kLanes * kItems) &&
                (kSortsAll ||
                 (uint32_t(k) <= cols && uint32_t(k) * 2 <= kRoom));
    }

    __device__ __forceinline__
    NarrowRow(const SelectParams& params, uint32_t row, uint32_t* room)
            : params_(params), row_(row), room_(room) {}

    /// All lanes of the warp call it; `writes`: else they only go along.
    __device__ __forceinline__ void run(bool writes) {
        uint32_t numbers[kItems];
        load(numbers);
        if constexpr (kSortsAll) {
            GroupSort<kLanes, kItems>::sort(numbers);
            write(numbers, writes);
        } else {
            uint32_t sorted[kSorted];
            const uint32_t held = keep(numbers);
            __syncwarp();
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                const uint32_t place = i * kLanes + Group::lane();
                sorted[i] = place < held ? room_[place] : kNone;
            }
            __syncwarp();
            GroupSort<kLanes, kSorted>::sort(sorted);
            write(sorted, writes);
        }
    }

   private:
    /// As NarrowWords has them; NaN behind the end.
    __device__ __forceinline__ void load(uint32_t (&numbers)[kItems]) const {
        const T* keys = static_cast<const T*>(params_.keys) +
                params_.rowStride * int64_t(row_);
        const NarrowWords words{
                params_.cols,
                uint32_t(reinterpret_cast<uintptr_t>(keys) / 2 % 2)};
        const bool isOdd = words.isOdd != 0;
        const bool isCut = words.isCut() != 0;
        const bool hasEdge = words.edges() > Group::lane();
        const int first = words.columnOf(Group::lane());
        const auto* from = reinterpret_cast<const uint32_t*>(keys + first);
        // Else it is computed for each load.
        asm("" : "+l"(from));
        uint32_t pairs[kPairs];
        const int left = words.count() - Group::lane();
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            pairs[i] = kNarrowNan;
            if (i * kLanes < left && (i > 0 || !hasEdge)) {
                pairs[i] = __ldg(from + i * kLanes);
            }
        }
        if (hasEdge) {
            const auto* halves = reinterpret_cast<const unsigned short*>(keys);
            const uint32_t last = halves[isCut ? params_.cols - 1 : 0];
            pairs[0] = uint32_t(halves[0]) << 16 | last;
        }
        const auto sign = Pair::signOf(params_);
        uint32_t upper = 0xFFFF0000u;
        // In a register, one instruction masks and joins.
        asm("" : "+r"(upper));
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const uint32_t both =
                    Pair::inOrder(sign, pairs[i]) ^ 0x80008000u; // unsigned
            const uint32_t column = uint32_t(first + 2 * i * kLanes);
            numbers[2 * i] = (both << 16) + column;
            numbers[2 * i + 1] = (both & upper) + column + 1;
            if (i == 0 && hasEdge) {
                numbers[0] = isCut ? (both << 16) + (params_.cols - 1) : kNone;
                numbers[1] = isOdd ? both & upper : kNone;
            }
        }
    }

    __device__ __forceinline__ static uint32_t countUpTo(
            const uint32_t (&numbers)[kItems],
            uint32_t most) {
        uint32_t count = 0;
#pragma unroll
        for (uint32_t number : numbers) {
            count += number <= most ? 1 : 0;
        }
        return count;
    }

    /// Puts k or more of the least into the room; returns how many.
    __device__ __forceinline__ uint32_t
    keep(const uint32_t (&numbers)[kItems]) const {
        uint32_t limit = limitOfParts(numbers);
        uint32_t mine = countUpTo(numbers, limit);
        uint32_t all = Group::sum(mine);
        // Rows of a warp go on together.
        if (__any_sync(kFullWarp, all > kRoom)) {
            limit = narrowed(numbers, limit, all > kRoom);
            mine = countUpTo(numbers, limit);
            all = Group::sum(mine);
        }
        uint32_t* out = room_ + Group::sumBefore(mine);
#pragma unroll
        for (uint32_t number : numbers) {
            if (number <= limit) {
                *out++ = number;
            }
        }
        return all;
    }

    /// A number that k of the parts' least are not above.
    __device__ __forceinline__ uint32_t
    limitOfParts(const uint32_t (&numbers)[kItems]) const {
        uint32_t parts[kSorted];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            // Keys of a period of a power of two do not meet in one part.
            const int part = (i + i / kSorted) % kSorted;
            parts[part] =
                    i < kSorted ? numbers[i] : min(parts[part], numbers[i]);
        }
        GroupSort<kLanes, kSorted>::sort(parts);
        const uint32_t place = uint32_t(params_.k) - 1;
        uint32_t limit = parts[0];
#pragma unroll
        for (int i = 1; i < kSorted; ++i) {
            limit = place % kSorted == i ? parts[i] : limit;
        }
        return __shfl_sync(kFullWarp, limit, place / kSorted, kLanes);
    }

    /// Up to `high`, by halving from the least number on: k or more are not
    /// above it, and no more than there is room for.
    __device__ __forceinline__ uint32_t narrowed(
            const uint32_t (&numbers)[kItems],
            uint32_t high,
            bool searches) const {
        uint32_t least = numbers[0];
#pragma unroll
        for (int i = 1; i < kItems; ++i) {
            least = min(least, numbers[i]);
        }
        least = Group::least(least);
        uint32_t low = searches ? least : high;
#pragma unroll 1
        while (__any_sync(kFullWarp, low < high)) {
            const uint32_t middle = low + (high - low) / 2;
            const uint32_t count = Group::sum(countUpTo(numbers, middle));
            if (low < high) {
                const bool isEnough = count >= uint32_t(params_.k);
                high = isEnough ? middle : high;
                low = !isEnough ? middle + 1 : count <= kRoom ? high : low;
            }
        }
        return high;
    }

    template <int kCount>
    __device__ __forceinline__ void write(
            const uint32_t (&numbers)[kCount],
            bool writes) const {
        // The row's keys come before what fills it up.
        const int most =
                kSortsAll ? min(params_.k, int(params_.cols)) : params_.k;
        NarrowResult<T, kLanes>::write(
                params_, row_, most, numbers, room_, writes);
        if (kSortsAll && most < params_.k && writes) {
            for (int place = most + Group::lane(); place < params_.k;
                 place += kLanes) {
                writeResult<T>(params_, row_, place, kNoEntry);
            }
        }
    }

    const SelectParams& params_;
    const uint32_t row_;
    uint32_t* room_; // [kRoom]
};

} // namespace faiss_bits
