/// What FewOfTile does where more keys are within the limit than there is room
/// for, or NaN is among the best: many equal keys, or the best of a row in the
/// columns of a few lanes.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/SelectParams.h"
#include "kernels/select/short_rows/TurnedColumns.cuh"

namespace faiss_bits {

/// What a row has come to.
struct HeldOfRow {
    uint32_t count = 0;       // entries in the room
    uint32_t limit = kNanKey; // k keys so far are not above it
    uint32_t most = kNanKey;  // later keys above it are of no more use
};

/// All lanes of the warp call everything, kLanes of them for each row, which has
/// room for kEach entries of each.
template <class T, int kLanes, int kEach>
class FewOfFull {
    using Group = LaneGroup<kLanes>;
    using Columns = TurnedColumns<kLanes>;

   public:
    /// Entries of a row that there is room for.
    static constexpr uint32_t kRoom = kEach * kLanes;
    static constexpr uint32_t kAnyColumn = ~uint32_t(0);
    static constexpr uint32_t kInfinity = 0xFF800000u; // its key

    /// Adds the span of `cols` columns from `first` on, whose keys are in
    /// shared memory. Where they are too many, finds a lower limit for what is
    /// held and the span: k or more are within it, and as many as there is room
    /// for at most. Out of line, so that it costs the others no registers.
    __device__ static __noinline__ HeldOfRow
    take(const SelectParams& params,
         uint64_t* room,
         HeldOfRow held,
         const T* keys,
         uint32_t first,
         uint32_t cols) {
        __syncwarp();
        held = FewOfFull{params, room, keys, first, cols}.added(held);
        __syncwarp();
        return held;
    }

    /// Drops entries beyond one; returns how many are left.
    __device__ __forceinline__ static uint32_t keepUpTo(
            uint64_t* room,
            uint32_t count,
            uint64_t most) {
        uint64_t entries[kEach];
        uint32_t mine = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t at = i * kLanes + Group::lane();
            entries[i] = at < count ? room[at] : kNoEntry;
            // There may be a limit that kNoEntry is within.
            mine += at < count && entries[i] <= most ? 1 : 0;
        }
        const uint32_t before = Group::sumBefore(mine);
        __syncwarp();
        uint64_t* to = room + before;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t at = i * kLanes + Group::lane();
            if (at < count && entries[i] <= most) {
                *to++ = entries[i];
            }
        }
        __syncwarp();
        return __shfl_sync(kFullWarp, before + mine, kLanes - 1, kLanes);
    }

    /// The greatest key of a number below one; zero is one number.
    __device__ __forceinline__ static uint32_t below(uint32_t key) {
        return key == kNanKey ? kInfinity : key == kZeroKey ? key - 2 : key - 1;
    }

   private:
    __device__ __forceinline__ FewOfFull(
            const SelectParams& params,
            uint64_t* room,
            const T* keys,
            uint32_t first,
            uint32_t cols)
            : params_(params),
              room_(room),
              keys_(keys),
              first_(first),
              cols_(cols) {}

    __device__ __forceinline__ uint32_t keyAt(uint32_t c) const {
        const uint32_t bits = __float_as_uint(toFloat(keys_[c]));
        return orderedKey(__uint_as_float(bits ^ params_.signMask));
    }

    /// take(key) for all that is held and what is of use of the span, of this
    /// lane.
    template <class Take>
    __device__ __forceinline__ void forEach(
            const HeldOfRow& held,
            const Take& take) const {
        for (uint32_t i = Group::lane(); i < held.count; i += kLanes) {
            take(entryKey(room_[i]));
        }
        for (uint32_t c = Group::lane(); c < cols_; c += kLanes) {
            const uint32_t key = keyAt(c);
            if (key <= held.most) {
                take(key);
            }
        }
    }

    __device__ __forceinline__ uint32_t
    countUpTo(const HeldOfRow& held, uint32_t most) const {
        uint32_t count = 0;
        forEach(held, [&](uint32_t key) { count += key <= most ? 1 : 0; });
        return Group::sum(count);
    }

    __device__ __forceinline__ HeldOfRow added(HeldOfRow held) const {
        const uint32_t k = uint32_t(params_.k);
        uint32_t high = held.limit;
        uint32_t column = kAnyColumn;
        uint32_t count = countUpTo(held, high);
        const bool isFull = count > kRoom; // which is more than k
        if (__any_sync(kFullWarp, isFull)) {
            // Is this the k-th key? Else it is in the range of those below it.
            uint32_t least = kNanKey;
            uint32_t next = 0;
            uint32_t less = 0;
            forEach(held, [&](uint32_t key) {
                least = min(least, key);
                next = max(next, key < high ? key : 0);
                less += key < high ? 1 : 0;
            });
            least = Group::least(least);
            next = Group::greatest(next);
            less = Group::sum(less);
            const bool isLower = isFull && less >= k;
            uint32_t low = isLower ? least : high;
            high = isLower ? next : high;
            count = isLower ? less : count;
            while (__any_sync(kFullWarp, low < high && count > kRoom)) {
                const uint32_t middle = low + (high - low) / 2;
                const uint32_t some = countUpTo(held, middle);
                if (low < high && count > kRoom) {
                    low = some < k ? middle + 1 : low;
                    high = some < k ? high : middle;
                    count = some < k ? count : some;
                }
            }
            // So many are equal, or NaN, that their columns decide.
            const bool isTied = isFull && count > kRoom;
            if (__any_sync(kFullWarp, isTied)) {
                column = tiedColumn(held, high, isTied);
            }
        }
        const uint64_t within = makeEntry(high, column);
        held.count = keepUpTo(room_, held.count, within);
        held.count += add(held, within);
        // Equal keys of later columns are too late.
        held.most = isFull ? below(high) : held.most;
        return held;
    }

    /// Puts what is within a limit behind what is held; returns how many.
    __device__ __forceinline__ uint32_t
    add(const HeldOfRow& held, uint64_t within) const {
        const auto isTaken = [&](uint64_t entry) {
            return entry <= within && entryKey(entry) <= held.most;
        };
        uint32_t mine = 0;
        for (uint32_t c = Group::lane(); c < cols_; c += kLanes) {
            mine += isTaken(makeEntry(keyAt(c), first_ + c)) ? 1 : 0;
        }
        const uint32_t before = Group::sumBefore(mine);
        uint64_t* to = room_ + held.count + before;
        for (uint32_t c = Group::lane(); c < cols_; c += kLanes) {
            const uint64_t entry = makeEntry(keyAt(c), first_ + c);
            if (isTaken(entry)) {
                *to++ = entry;
            }
        }
        return __shfl_sync(kFullWarp, before + mine, kLanes - 1, kLanes);
    }

    /// The last column of a key with which k are within the limit; any, unless
    /// isTied. Held ones come before the span.
    __device__ __forceinline__ uint32_t
    tiedColumn(const HeldOfRow& held, uint32_t key, bool isTied) const {
        uint32_t less = 0;
        uint32_t equal = 0;
        forEach(held, [&](uint32_t one) { less += one < key ? 1 : 0; });
        for (uint32_t i = Group::lane(); i < held.count; i += kLanes) {
            equal += entryKey(room_[i]) == key ? 1 : 0;
        }
        less = Group::sum(less);
        equal = Group::sum(equal);
        // 1 or more, if it is tied.
        const uint32_t wanted = uint32_t(params_.k) - less;
        uint32_t column = 0;
        if (isTied && wanted <= equal) {
            for (uint32_t i = Group::lane(); i < held.count; i += kLanes) {
                const uint64_t entry = room_[i];
                uint32_t place = 1;
                for (uint32_t j = 0; j < held.count; ++j) {
                    place += entryKey(room_[j]) == key && room_[j] < entry;
                }
                if (entryKey(entry) == key && place == wanted) {
                    column = entryColumn(entry);
                }
            }
        }
        __syncwarp();
        column = Group::greatest(column);
        uint32_t seen = equal;
        for (uint32_t c = 0; c < cols_; c += kLanes) {
            const bool searches = isTied && seen < wanted;
            if (!__any_sync(kFullWarp, searches)) {
                break;
            }
            const uint32_t at = c + Group::lane();
            const uint32_t lanes = Columns::ofRow(__ballot_sync(
                    kFullWarp, at < cols_ && keyAt(at) == key));
            const uint32_t found = __popc(lanes);
            if (searches && seen + found >= wanted) {
                column = first_ + c + __fns(lanes, 0, int(wanted - seen));
            }
            seen += found;
        }
        return isTied ? column : kAnyColumn;
    }

    const SelectParams& params_;
    uint64_t* room_;
    const T* keys_; // in shared memory
    uint32_t first_;    // column
    uint32_t cols_;
};

} // namespace faiss_bits
