/// One row, read once by a few lanes, some hundred or a thousand keys at a
/// time, which are held in registers.
///
/// Of the first keys a bound is found that k of them and not many more are
/// within; those go to shared memory. Of later keys only what is within the
/// bound is added, and where there is no more room, a new bound is found for
/// what is held and what comes. No sample is trusted: in any order, a chunk of
/// keys costs a bound at most.
#pragma once

#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/ShortRowBound.cuh"
#include "kernels/select/short_rows/ShortSort.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// kItems keys a lane at a time; room for kSorted entries a lane, of which the
/// k best are the result. kSorted = kItems: rows of one chunk, all sorted.
template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
class ShortRow : ShortRowBound<T, kHasBias, kLanes, kItems, kSorted> {
    using Bound = ShortRowBound<T, kHasBias, kLanes, kItems, kSorted>;
    using Group = LaneGroup<kLanes>;
    using Bound::chunk_;
    using Bound::kAnyColumn;
    using Bound::kIsOneChunk;
    using Bound::kKept;
    using Bound::kRoom;
    using Bound::params_;
    using typename Bound::Chunk;
    using typename Bound::Kept;
    using typename Bound::Within;

   public:
    static constexpr bool kSortsAll = kSorted == kItems;
    using Sort = ShortSort<T, kLanes, kSorted, kSortsAll>;
    /// Entries of a row in shared memory.
    static constexpr int kSpace = Sort::kRoom;

    /// writes: else the lanes only go along with the others of their warp.
    __device__ ShortRow(
            const SelectParams& params,
            uint32_t row,
            bool writes,
            uint64_t* room)
            : Bound(params), row_(row), writes_(writes), room_(room) {}

    __device__ __forceinline__ void run() {
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
            if constexpr (kIsOneChunk) {
                chunk_.load(params_, row_);
                takeChunk();
            } else {
                for (; chunk_.base < chunk_.cols;
                     chunk_.base += Chunk::kColumns) {
                    chunk_.load(params_, row_);
                    takeChunk();
                }
            }
            __syncwarp();
            // In any arrangement, as they are sorted: neighbouring lanes take
            // neighbouring places, which lie in different banks.
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                const uint32_t place = i * kLanes + Group::lane();
                entries[i] = place < held_ ? room_[place] : kNoEntry;
            }
            __syncwarp();
        }
        Sort::sort(entries, room_);
        write(entries);
    }

   private:
    /// What these kernels do for rows with structure hardly fits the cache of
    /// instructions: they have loops where others have them written out.
    static constexpr bool kIsMuchCode =
            kLanes == kWarpSize && kItems == 32 && kSorted >= 8 && !kSortsAll;

    /// A warp a row, in several chunks. Kernels of more entries take up to 1.2
    /// of the time in random order with it (H200).
    static constexpr bool kLooksAhead = !kIsOneChunk && !kHasBias &&
            kLanes == kWarpSize && kSorted <= (sizeof(T) == 4 ? 4 : 2);
    static constexpr uint32_t kLeastAhead = 512; // columns

    /// Whether so many of a chunk are better than the bound that the row is
    /// likely to go on so, as in descending order, where every chunk would take
    /// a bound of its own. In random order so many hardly are.
    __device__ __forceinline__ bool isLedAstray(uint32_t all) const {
        return all >= 2 * kRoom &&
                chunk_.base + Chunk::kColumns + kLeastAhead <= chunk_.cols;
    }

    /// A bound from later columns, some runs of neighbours as far apart as they
    /// can be, with the last of the row: what k keys of those are not above.
    /// Keys of lower columns that are equal to it are of use.
    __device__ __forceinline__ void lookAhead() {
        static_assert((kLeastAhead - kWarpSize) / kSorted >= kWarpSize);
        const float sign = __uint_as_float(0x3F800000u ^ params_.signMask);
        const uint32_t last = chunk_.cols - kWarpSize;
        const uint32_t step = (last - chunk_.base - Chunk::kColumns) / kSorted;
        const T* keys = static_cast<const T*>(params_.keys) +
                params_.rowStride * int64_t(row_) + last + Group::lane();
        uint32_t ahead[kSorted];
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            ahead[i] = Chunk::numberOf(toFloat(*(keys - i * step)), sign);
        }
        GroupSort<kLanes, kSorted>::sortAgain(ahead);
        const uint32_t place = uint32_t(params_.k) - 1;
        uint32_t limit = ahead[0];
#pragma unroll
        for (int i = 1; i < kSorted; ++i) {
            limit = place % kSorted == i ? ahead[i] : limit;
        }
        limit = __shfl_sync(kFullWarp, limit, place / kSorted);
        bound_ = limit < bound_ ? limit + 1 : bound_;
    }

    /// Adds what is better than the bound of the keys.
    __device__ __forceinline__ void takeChunk() {
        Within within{};        // what is added
        bool isBounded = false; // there is room for all of it
        if (!kIsOneChunk && chunk_.base > 0) {
            uint32_t count = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                count += chunk_.keys[i] < bound_ ? 1 : 0;
            }
            uint32_t all = Group::sum(count);
            if constexpr (kLooksAhead) {
                if (isLedAstray(all)) {
                    lookAhead();
                    count = __popc(chunk_.below(bound_));
                    all = Group::sum(count);
                }
            }
            if (!__any_sync(kFullWarp, all > 0)) {
                return;
            }
            if (__all_sync(kFullWarp, held_ + all <= kRoom)) {
                if constexpr (kIsMuchCode) {
                    within = {bound_ - 1, kAnyColumn};
                    isBounded = true;
                } else {
                    addTaken(count, all, [&](int i) {
                        return chunk_.keys[i] < bound_;
                    });
                    return;
                }
            }
        } else if (chunk_.cols <= kRoom) { // all rows have as many columns
            within = {kNanKey, chunk_.cols - 1};
            if constexpr (kIsMuchCode) {
                isBounded = true;
            } else {
                add(within);
                return;
            }
        }
        if (!isBounded) {
            within = narrowRoom();
        }
        add(within);
    }

    /// Finds what to keep of those held and the chunk: at least k, and as many
    /// as there is room for at most. Drops others that are held.
    __device__ __forceinline__ Within narrowRoom() {
        Kept kept;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            const uint32_t place = i * kLanes + Group::lane();
            kept[i] = place < held_ ? room_[place] : kNoEntry;
        }
        __syncwarp();
        // Where a row looks ahead, what is held may be above the bound.
        const bool isBounded = kSorted >= 8 && !kLooksAhead && chunk_.base > 0;
        const Within within =
                this->findBound(kept, isBounded ? bound_ : kNanKey);
        uint32_t stay = 0;
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            stay += within.has(kept[i]) ? 1 : 0;
        }
        if constexpr (kKept > 0) {
            uint32_t place = Group::sumBefore(stay);
#pragma unroll
            for (int i = 0; i < kKept; ++i) {
                if (within.has(kept[i])) {
                    room_[place++] = kept[i];
                }
            }
            held_ = Group::sum(stay);
        }
        // k of lower columns are not above it, or of any what lies ahead said.
        bound_ = kLooksAhead && chunk_.base > 0 ? min(bound_, within.key)
                                                : within.key;
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
        addTaken(mine, Group::sum(mine), takes);
    }

    /// mine: as many of this lane; all: of the row.
    template <class Takes>
    __device__ __forceinline__ void addTaken(
            uint32_t mine,
            uint32_t all,
            const Takes& takes) {
        uint64_t* out = room_ + held_ + Group::sumBefore(mine);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (takes(i)) {
                *out++ = chunk_.entryOf(i);
            }
        }
        held_ += all;
    }

    /// Where an entry of the result lies in the room. Lanes store pairs of
    /// theirs, eight at a time, and load what neighbours have, 16 at a time;
    /// neither meet in a bank so. Without it all pairs of 16 entries a lane
    /// did.
    __device__ __forceinline__ static uint32_t turned(uint32_t place) {
        constexpr uint32_t kPairs = kSorted / 2; // of a lane
        constexpr uint32_t kTurns = kPairs < 1 ? 1 : kPairs < 8 ? kPairs : 8;
        constexpr uint32_t kEntries = kSorted > 16 ? kSorted : 16;
        return place ^ place / kEntries % kTurns * 2;
    }

    /// Neighbouring lanes write neighbouring places.
    __device__ __forceinline__ void write(
            const uint64_t (&entries)[kSorted]) const {
        if constexpr (kSorted > 1) {
#pragma unroll
            for (int i = 0; i < kSorted; i += 2) {
                uint64_t* to = room_ + turned(Group::lane() * kSorted + i);
                *reinterpret_cast<ulonglong2*>(to) = {
                        entries[i], entries[i + 1]};
            }
            __syncwarp();
        }
        if constexpr (kIsMuchCode) {
#pragma unroll 1
            for (int place = Group::lane(); place < params_.k && writes_;
                 place += kLanes) {
                writeResult<T>(params_, row_, place, room_[turned(place)]);
            }
        } else {
#pragma unroll
            for (int i = 0; i < kSorted; ++i) {
                const int place = i * kLanes + Group::lane();
                if (place < params_.k && writes_) {
                    writeResult<T>(
                            params_,
                            row_,
                            place,
                            kSorted > 1 ? room_[turned(place)] : entries[0]);
                }
            }
        }
    }

    const uint32_t row_;
    const bool writes_;
    uint64_t* room_;     // [kSpace], at a multiple of 16 bytes
    uint32_t held_ = 0;  // entries in the room; from kRoom + 1 columns on, k
    uint32_t bound_ = 0; // keys that are not below it are of no more use
};

} // namespace faiss_bits
