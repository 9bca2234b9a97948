/// Some columns of a row in shared memory, and what may be among the k best of
/// it so far.
#pragma once

#include "kernels/select/short_rows/FewOfFull.cuh"
#include "kernels/select/short_rows/TurnedColumns.cuh"
#include "kernels/select/short_rows/GroupSort.cuh"

namespace faiss_bits {

/// All lanes of the warp call everything, kLanes of them for each row.
template <class T, int kLanes, int kMinima>
class FewOfTile {
    using Group = LaneGroup<kLanes>;
    using Columns = TurnedColumns<kLanes>;
    using Bits = typename Columns::Bits;
    static constexpr uint32_t kAhead = Columns::kAhead;
    static constexpr uint32_t kTurn = Columns::kTurn;
    /// Twice as many as the limit lets through in random order, or more.
    using Full = FewOfFull<T, kLanes, kMinima <= 2 ? 4 : 2 * kMinima>;

   public:
    static constexpr uint32_t kRoom = Full::kRoom;
    /// Tiles are padded to so many columns.
    static constexpr uint32_t kStep = Columns::kStep;
    /// Columns that are looked at for survivors at a time: a bit of a lane for
    /// each of its own, in two words.
    static constexpr uint32_t kSpan = 64 * kLanes;

    /// room: [kRoom], of the row.
    __device__ __forceinline__ FewOfTile(
            const SelectParams& params,
            uint64_t* room)
            : params_(params), room_(room) {
        reset();
    }

    /// A key that is none.
    __device__ __forceinline__ static T nan() {
        return T(__uint_as_float(kNan));
    }

    /// Behind the columns, but for the first `left` places: never the least, and
    /// within no limit. A tile has room for one more.
    __device__ __forceinline__ static void pad(
            T* keys,
            uint32_t cols,
            uint32_t left) {
        const uint32_t end = (cols + kStep - 1) / kStep * kStep;
        for (uint32_t c = cols + left + Group::lane(); c < end; c += kLanes) {
            keys[c] = nan();
        }
    }

    /// For another row.
    __device__ __forceinline__ void reset() {
        held_ = {};
#pragma unroll
        for (float& least : least_) {
            least = __uint_as_float(kNan);
        }
    }

    /// Adds what `cols` columns from `first` on have, padded. `lowers`: the
    /// limit is lowered, which takes a sort. Begins with the warp in step.
    __device__ __forceinline__ void take(
            const T* keys,
            uint32_t first,
            uint32_t cols,
            bool lowers) {
        float least[kMinima];
#pragma unroll
        for (float& one : least) {
            one = __uint_as_float(kNan);
        }
        const uint32_t end = (cols + kStep - 1) / kStep * kStep;
        uint32_t turn = Group::lane();
        for (uint32_t at = 0; at < end; at += kStep, turn += kTurn) {
            const T* from = keys + at + turn % kLanes;
#pragma unroll
            for (int i = 0; i < int(kAhead); ++i) {
                float& one = least[i % kMinima];
                one = fminf(one, valueOf(from[i * kLanes]));
            }
        }
        float leastOfAll = least[0];
#pragma unroll
        for (float one : least) {
            leastOfAll = fminf(leastOfAll, one);
        }
        const uint32_t leastKey = orderedKey(leastOfAll);
        if (first > 0 && !__any_sync(kFullWarp, leastKey <= held_.most)) {
            return;
        }
#pragma unroll
        for (int i = 0; i < kMinima; ++i) {
            least_[i] = fminf(least_[i], least[i]);
        }
        if (lowers || __any_sync(kFullWarp, held_.count > kRoom / 2)) {
            held_.limit = min(held_.limit, limit());
            held_.most = min(held_.most, held_.limit);
        }
        if (!takeOfLanes(keys, first, cols, leastKey)) {
            for (uint32_t at = 0; at < cols; at += kSpan) {
                takeSpan(keys + at, first + at, min(cols - at, kSpan));
            }
        }
    }

    /// Calls write(place, entry) in one lane for each of the k best.
    template <class Write>
    __device__ __forceinline__ void rank(const Write& write) {
        __syncwarp();
        uint32_t count = held_.count;
        if (__any_sync(kFullWarp, count > kLanes)) {
            count = Full::keepUpTo(
                    room_, count, makeEntry(held_.limit, Full::kAnyColumn));
        }
        const uint32_t most = __reduce_max_sync(kFullWarp, count);
        // So that what lies behind the held ones does not count.
        const uint32_t end = (most + kTogether - 1) / kTogether * kTogether;
        for (uint32_t i = count + Group::lane(); i < end; i += kLanes) {
            room_[i] = kNoEntry;
        }
        __syncwarp();
        if (most <= kLanes) {
            rankEach<1>(0, count, end, write);
        } else if (most <= 2 * kLanes) {
            rankEach<2>(0, count, end, write);
        } else {
            for (uint32_t from = 0; from < most; from += 4 * kLanes) {
                rankEach<4>(from, count, end, write);
            }
        }
        __syncwarp();
    }

   private:
    static constexpr uint32_t kNan = 0x7FFFFFFFu;
    /// Entries that are looked at together; kRoom is a multiple of it.
    static constexpr uint32_t kTogether = 4;
    /// So many least numbers are found faster one by one than by a sort.
    static constexpr int kFewLeast = 5;

    __device__ __forceinline__ float valueOf(T key) const {
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ params_.signMask);
    }

    /// Ranks kEach entries of a lane, from one on, by how many are less.
    template <int kEach, class Write>
    __device__ __forceinline__ void rankEach(
            uint32_t from,
            uint32_t count,
            uint32_t end,
            const Write& write) const {
        uint64_t entries[kEach];
        uint32_t places[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t at = from + e * kLanes + Group::lane();
            entries[e] = at < count ? room_[at] : 0;
            places[e] = 0;
        }
        for (uint32_t i = 0; i < end; i += kTogether) {
#pragma unroll
            for (uint32_t j = 0; j < kTogether; ++j) {
                const uint64_t other = room_[i + j];
#pragma unroll
                for (int e = 0; e < kEach; ++e) {
                    places[e] += other < entries[e] ? 1 : 0;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t at = from + e * kLanes + Group::lane();
            if (at < count && places[e] < uint32_t(params_.k)) {
                write(places[e], entries[e]);
            }
        }
    }

    /// A key that k keys of the lanes' least ones are not above.
    __device__ __forceinline__ uint32_t limit() const {
        uint32_t numbers[kMinima];
#pragma unroll
        for (int i = 0; i < kMinima; ++i) {
            numbers[i] = orderedKey(least_[i]);
        }
        if constexpr (kLanes == kWarpSize && kMinima == 1) {
            if (params_.k <= kFewLeast) {
                return kthOfWarp(numbers[0]);
            }
        }
        GroupSort<kLanes, kMinima>::sort(numbers);
        const uint32_t at = params_.k - 1;
        uint32_t mine = numbers[0];
#pragma unroll
        for (int i = 1; i < kMinima; ++i) {
            mine = at % kMinima == i ? numbers[i] : mine;
        }
        return __shfl_sync(kFullWarp, mine, at / kMinima, kLanes);
    }

    /// The k-th least number, one after another.
    __device__ __forceinline__ uint32_t kthOfWarp(uint32_t number) const {
        uint32_t least = __reduce_min_sync(kFullWarp, number);
        for (int i = 1; i < params_.k; ++i) {
            const uint32_t lanes = __ballot_sync(kFullWarp, number == least);
            number = Group::lane() == __ffs(lanes) - 1 ? kNanKey : number;
            least = __reduce_min_sync(kFullWarp, number);
        }
        return least;
    }

    /// Those that isTaken(value) of `cols` columns, padded.
    template <class IsTaken>
    __device__ __forceinline__ Bits
    bitsOf(const T* keys, uint32_t cols, const IsTaken& isTaken) const {
        Bits bits;
        uint32_t turn = Group::lane();
#pragma unroll
        for (uint32_t w = 0; w < 2; ++w) {
            const uint32_t end = min((cols + kLanes - 1) / kLanes, 32 * w + 32);
            for (uint32_t i = 32 * w; i < end; i += kAhead, turn += kTurn) {
                const T* from = keys + i * kLanes + turn % kLanes;
                uint32_t some = 0;
#pragma unroll
                for (int j = 0; j < int(kAhead); ++j) {
                    some |= isTaken(valueOf(from[j * kLanes])) ? 1u << j : 0;
                }
                bits.words[w] |= some << (i % 32);
            }
        }
        return bits;
    }

    /// Where few lanes have a key within the limit, the lanes of a row look at
    /// the columns of one of those after the other. False, and nothing is added,
    /// where it takes longer than that each looks at its own, or there is too
    /// little room.
    __device__ __forceinline__ bool takeOfLanes(
            const T* keys,
            uint32_t first,
            uint32_t cols,
            uint32_t leastKey) {
        uint32_t lanes = Columns::ofRow(
                __ballot_sync(kFullWarp, leastKey <= held_.most));
        const uint32_t items = (cols + kLanes - 1) / kLanes;
        const uint32_t turns = (items + kLanes - 1) / kLanes;
        const uint32_t count =
                __reduce_max_sync(kFullWarp, uint32_t(__popc(lanes)));
        // A turn takes about as long as three items of each lane.
        if (3 * count * turns > items + 12 ||
            __any_sync(kFullWarp, held_.most == kNanKey)) {
            return false;
        }
        const float most = keyValue(held_.most);
        const uint32_t lower = (1u << Group::lane()) - 1;
        uint32_t held = held_.count;
        for (uint32_t c = 0; c < count; ++c) {
            const bool isThere = lanes != 0;
            const uint32_t of = isThere ? __ffs(lanes) - 1 : 0;
            lanes &= lanes - 1;
            for (uint32_t from = 0; from < items; from += kLanes) {
                const uint32_t i = from + Group::lane();
                const uint32_t at =
                        i * kLanes + (of + i / kAhead * kTurn) % kLanes;
                const float value = isThere && i < items
                        ? valueOf(keys[at])
                        : __uint_as_float(kNan);
                const bool isTaken = value <= most;
                const uint32_t taken =
                        Columns::ofRow(__ballot_sync(kFullWarp, isTaken));
                const uint32_t place = held + __popc(taken & lower);
                if (isTaken && place < kRoom) {
                    room_[place] = makeEntry(orderedKey(value), first + at);
                }
                held += __popc(taken);
            }
        }
        if (__any_sync(kFullWarp, held > kRoom)) {
            // Others write there next.
            __syncwarp();
            return false;
        }
        held_.count = held;
        return true;
    }

    /// `cols` columns from `first` on, padded.
    __device__ __forceinline__ void takeSpan(
            const T* keys,
            uint32_t first,
            uint32_t cols) {
        const float most = keyValue(held_.most);
        Bits bits =
                bitsOf(keys, cols, [&](float value) { return value <= most; });
        uint32_t total = 0;
        uint32_t before = Columns::sumBefore(bits.count(), total);
        const bool isFull = held_.count + total > kRoom;
        if (__any_sync(kFullWarp, isFull || held_.most == kNanKey)) {
            if (!takeTied(keys, cols, isFull, bits)) {
                held_ = Full::take(params_, room_, held_, keys, first, cols);
                return;
            }
            before = Columns::sumBefore(bits.count(), total);
        }
        uint64_t* to = room_ + held_.count + before;
        while (bits.any()) {
            const uint32_t at = Columns::columnOf(bits.takeFirst());
            *to++ = makeEntry(orderedKey(valueOf(keys[at])), first + at);
        }
        held_.count += total;
    }

    /// Where rows have more keys within the limit than there is room for, as
    /// many are equal to it and fewer than k are less: leaves the bits of these,
    /// and of as many of the first equal ones as make k with them. False where
    /// it is not so in all of those rows, or where there is NaN.
    __device__ __forceinline__ bool
    takeTied(const T* keys, uint32_t cols, bool isFull, Bits& bits) {
        const float most = keyValue(held_.most);
        const Bits less =
                bitsOf(keys, cols, [&](float value) { return value < most; });
        uint32_t numLess = 0;
        Columns::sumBefore(less.count(), numLess);
        const uint32_t k = uint32_t(params_.k);
        // What is held may be less, too.
        const bool isTied = held_.count == 0 && numLess < k;
        if (__any_sync(
                    kFullWarp,
                    (isFull && !isTied) || held_.most == kNanKey)) {
            return false;
        }
        uint32_t wanted = isFull ? k - numLess : 0;
        Bits taken = less;
        for (uint32_t i = 0; i * kLanes < cols; ++i) {
            if (!__any_sync(kFullWarp, wanted > 0)) {
                break;
            }
            const uint32_t word = i < 32 ? bits.words[0] & ~less.words[0]
                                         : bits.words[1] & ~less.words[1];
            const bool isEqual = (word >> (i % 32) & 1) != 0;
            const uint32_t lanes =
                    Columns::ofRow(__ballot_sync(kFullWarp, isEqual));
            if (isEqual && uint32_t(__popc(lanes & Columns::lanesBefore(i))) < wanted) {
                (i < 32 ? taken.words[0] : taken.words[1]) |= 1u << (i % 32);
            }
            wanted -= min(wanted, uint32_t(__popc(lanes)));
        }
        if (isFull) {
            bits = taken;
            held_.most = Full::below(held_.most);
        }
        return true;
    }

    const SelectParams& params_;
    uint64_t* room_;
    float least_[kMinima]; // of this lane's columns so far
    HeldOfRow held_;
};

} // namespace faiss_bits
