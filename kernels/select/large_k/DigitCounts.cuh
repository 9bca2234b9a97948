/// What the kernels of DigitSort.cuh are made of: counts of digits by block,
/// their sums, and items put in order by a digit.
#pragma once

#include "kernels/device/BlockScan.cuh"
#include "kernels/select/large_k/Composite.cuh"
#include "kernels/select/large_k/DigitSort.h"
#include "kernels/select/large_k/RowTile.cuh"

namespace faiss_bits {

constexpr int kDigitWarps = kDigitSortThreads / kWarpSize;
/// Threads that add up the counts of one digit.
constexpr int kDigitGroups = kDigitSortThreads / kDigits;
/// One more than digits: for keys that equal the limit.
constexpr int kPlacedDigits = kDigits + 1;
constexpr uint32_t kTieDigit = kDigits;
/// Counts of 16 bits from one warp to the next: a whole number of words.
constexpr int kDigitStride = kPlacedDigits + 1;
constexpr uint32_t kDigitTile = kDigitSortThreads * kDigitSortItems;
static_assert(kDigitTile <= kSplitGrain && kSplitGrain % kDigitTile == 0);

template <class T>
constexpr DataType kNarrowType =
        std::is_same_v<T, __half> ? DataType::Float16 : DataType::BFloat16;

/// The part of a row that this block has.
struct DigitPart {
    uint32_t row; // of the batch
    uint32_t part;

    __device__ explicit DigitPart(uint32_t splits)
            : row(blockIdx.x / splits), part(blockIdx.x % splits) {}

    /// Of counts [rows, splits, 256].
    __device__ uint32_t* countsOfRow(uint32_t* counts, uint32_t splits) const {
        return counts + uint64_t(row) * splits * kDigits;
    }
    __device__ uint32_t* counts(uint32_t* counts, uint32_t splits) const {
        return countsOfRow(counts, splits) + part * kDigits;
    }
};

/// A thread's additions to counts in shared memory. Runs of one digit, which
/// all threads would add to one word one after another, are one addition.
class DigitCounter {
   public:
    __device__ explicit DigitCounter(uint32_t* counts) : counts_(counts) {}

    __device__ __forceinline__ void add(uint32_t digit) {
        if (digit != digit_) {
            flush();
            digit_ = digit;
        }
        ++run_;
    }
    __device__ __forceinline__ void flush() {
        if (run_ > 0) {
            atomicAdd(counts_ + digit_, run_);
        }
        run_ = 0;
    }

   private:
    uint32_t* counts_;
    uint32_t digit_ = 0;
    uint32_t run_ = 0;
};

/// Calls visit(key) with the keys of columns [begin, end), in 16 bits, in no
/// order that matters.
template <class T, class Visit>
__device__ __forceinline__ void forEachKey(
        const KeyRow<T, false>& keys,
        uint32_t begin,
        uint32_t end,
        Visit visit) {
    constexpr int kItems = 8; // in flight
    for (uint32_t at = begin; at < end; at += kItems * kDigitSortThreads) {
        const auto column = [&](int i) {
            return at + i * kDigitSortThreads + threadIdx.x;
        };
        uint32_t ordered[kItems];
        keys.keysAt(ordered, column, [&](int i) { return column(i) < end; });
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (column(i) < end) {
                visit(narrowKey(kNarrowType<T>, ordered[i]));
            }
        }
    }
}

/// Of one digit, in thread `digit`; nothing in the threads behind.
struct DigitSums {
    uint32_t all = 0;
    uint32_t before = 0; // of the parts before this one
};

/// Room for the sums of a block.
struct DigitRoom {
    uint32_t all[kDigitGroups][kDigits];
    uint32_t before[kDigitGroups][kDigits];
    uint32_t sums[kWarpSize];
    LimitDigit found;
};

/// The counts [parts, 256] of a row, added up. Begins and ends with a barrier
/// between other uses of the room and this one.
__device__ __forceinline__ DigitSums sumOfParts(
        const uint32_t* counts,
        uint32_t parts,
        uint32_t part,
        DigitRoom& room) {
    const uint32_t digit = threadIdx.x % kDigits;
    const uint32_t group = threadIdx.x / kDigits;
    DigitSums mine;
#pragma unroll 8
    for (uint32_t other = group; other < parts; other += kDigitGroups) {
        const uint32_t count = counts[other * kDigits + digit];
        mine.all += count;
        mine.before += other < part ? count : 0;
    }
    __syncthreads();
    room.all[group][digit] = mine.all;
    room.before[group][digit] = mine.before;
    __syncthreads();
    DigitSums sums;
    if (group == 0) {
#pragma unroll
        for (int g = 0; g < kDigitGroups; ++g) {
            sums.all += room.all[g][digit];
            sums.before += room.before[g][digit];
        }
    }
    return sums;
}

/// The digit of the wanted-th key, from 1 on; `count` is that of the thread's
/// digit. Every thread gets it. Ends with a barrier.
__device__ __forceinline__ LimitDigit
findDigit(uint32_t count, uint32_t wanted, DigitRoom& room) {
    const uint32_t below =
            sumOfThreadsBefore<kDigitSortThreads>(count, room.sums);
    // Behind the digits counts are zero: exactly one thread has it.
    if (below < wanted && wanted - below <= count) {
        room.found = {threadIdx.x, below};
    }
    __syncthreads();
    return room.found;
}

/// Lanes with the same digit as this one, of `Bits` bits.
template <int Bits>
__device__ __forceinline__ uint32_t lanesAlike(uint32_t digit) {
    uint32_t lanes = kFullWarp;
#pragma unroll
    for (int bit = 0; bit < Bits; ++bit) {
        const bool isSet = (digit >> bit & 1) != 0;
        const uint32_t set = __ballot_sync(kFullWarp, isSet);
        lanes &= isSet ? set : ~set;
    }
    return lanes;
}

/// Room to put items in order.
struct PlacingRoom {
    uint32_t next[kPlacedDigits]; // the place of the next item of a digit
    /// Of each warp, by digit: its items in the tile; then those of the warps
    /// before it.
    alignas(4) uint16_t counts[kDigitWarps][kDigitStride];
};
static_assert(kDigitTile <= 0xFFFF && kDigitStride % 2 == 0);

/// Calls place(item, to) for the items at [begin, end) that digitOf(item,
/// digit) says yes to, with consecutive places of each digit from room.next on,
/// in the order of the items. load(at) is item `at`. No place is behind
/// `most` by a tile or more. room.next is written before, without a barrier.
template <int Bits, class Load, class DigitOf, class Place>
__device__ __forceinline__ void placeInOrder(
        uint32_t begin,
        uint32_t end,
        uint32_t most,
        PlacingRoom& room,
        Load load,
        DigitOf digitOf,
        Place place) {
    constexpr uint32_t kUsed = Bits > 8 ? kPlacedDigits : kDigits;
    constexpr uint32_t kNone = ~uint32_t(0);
    const uint32_t lane = threadIdx.x % kWarpSize;
    const uint32_t warp = threadIdx.x / kWarpSize;
    uint16_t* counts = room.counts[warp];
    for (uint32_t tile = begin; tile < end; tile += kDigitTile) {
        // A warp has consecutive items, 32 at a time.
        const uint32_t first = tile + warp * kDigitSortItems * kWarpSize + lane;
        uint64_t items[kDigitSortItems];
        uint32_t digits[kDigitSortItems];
        uint32_t ranks[kDigitSortItems];
        load(first, end, items);
        for (uint32_t i = lane; i < kDigitStride / 2; i += kWarpSize) {
            reinterpret_cast<uint32_t*>(counts)[i] = 0;
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kDigitSortItems; ++i) {
            uint32_t digit = 0;
            const bool isPlaced =
                    first + i * kWarpSize < end && digitOf(items[i], digit);
            const uint32_t placed = __ballot_sync(kFullWarp, isPlaced);
            digits[i] = isPlaced ? digit : kNone;
            ranks[i] = 0;
            if (placed == 0) {
                continue; // the whole warp
            }
            const uint32_t lanes = lanesAlike<Bits>(digit) & placed;
            const uint32_t below = __popc(lanes & ((1u << lane) - 1));
            const uint32_t count = isPlaced ? counts[digit] : 0;
            __syncwarp();
            if (isPlaced && below == 0) {
                counts[digit] = uint16_t(count + __popc(lanes));
            }
            __syncwarp();
            ranks[i] = count + below;
        }
        __syncthreads();
        uint32_t sum = 0;
        if (threadIdx.x < kUsed) {
#pragma unroll 8
            for (int w = 0; w < kDigitWarps; ++w) {
                const uint32_t count = room.counts[w][threadIdx.x];
                room.counts[w][threadIdx.x] = uint16_t(sum);
                sum += count;
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kDigitSortItems; ++i) {
            if (digits[i] != kNone) {
                place(items[i],
                      room.next[digits[i]] + counts[digits[i]] + ranks[i]);
            }
        }
        __syncthreads();
        if (threadIdx.x < kUsed) {
            room.next[threadIdx.x] = min(room.next[threadIdx.x] + sum, most);
        }
    }
}

} // namespace faiss_bits
