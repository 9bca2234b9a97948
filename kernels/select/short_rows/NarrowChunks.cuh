/// The k best of rows of 16-bit keys: a warp a row, some 2,000 keys at a time,
/// two in a register.
///
/// Of the first keys a limit is found that k of them and not many more are
/// within; those go to shared memory, each with its column in a number of 32
/// bits. Of later keys only what is below the limit is added, and where there
/// is no more room, a new limit is found for what is held and what comes. Keys
/// are counted two at a time. Where many are equal to the limit, only the
/// first of them are taken, as many as are wanted.
///
/// Bound by: instructions (docs/design/selection_narrow_chunks.md).
#pragma once

#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/NarrowChunk.cuh"
#include "kernels/select/short_rows/NarrowChunksLaunch.h"
#include "kernels/select/short_rows/NarrowResult.cuh"
#include "kernels/select/short_rows/NarrowSearch.cuh"

namespace faiss_bits {

/// A row without bias of at most 65,473 columns, k up to
/// mostKOfNarrowChunks(kSorted): kSorted numbers of a lane are held and sorted.
template <class T, int kSorted>
class NarrowChunks {
    using Group = LaneGroup<kWarpSize>;
    using Chunk = NarrowChunk<T>;
    using Two = typename Chunk::Two;
    using Keys = NarrowKeys<T>;
    static constexpr int kKeptPairs = kSorted / 2;
    struct KeysHeld {
        Two pairs[kKeptPairs];
    };
    static constexpr uint32_t kNone = ~uint32_t(0);
    /// A limit that says nothing.
    static constexpr uint32_t kNoLimit = Keys::kNan;

   public:
    /// Numbers of a row in shared memory.
    static constexpr uint32_t kRoom = kSorted * kWarpSize;

    /// room: [kRoom], of the row.
    __device__ __forceinline__
    NarrowChunks(const SelectParams& params, uint32_t row, uint32_t* room)
            : params_(params),
              row_(row),
              k_(uint32_t(params.k)),
              room_(room),
              chunk_(params, row) {}

    __device__ __forceinline__ void run() {
        for (uint32_t base = 0; base < chunk_.end(); base += Chunk::kPlaces) {
            chunk_.load(base);
            take();
        }
        __syncwarp();
        if (held_ <= kRoom / 4) {
            finish<kSorted / 4>();
        } else if (held_ <= kRoom / 2) {
            finish<kSorted / 2>();
        } else {
            finish<kSorted>();
        }
    }

   private:
    /// Adds what may be among the k best.
    __device__ __forceinline__ void take() {
        ChunkBits bits;
        uint32_t all = kRoom + 1;
        if (limit_ != kNoLimit) {
            bits = chunk_.upTo(limit_ - 1);
            all = Group::sum(bits.count());
            if (all == 0) {
                return;
            }
        }
        const bool narrows = held_ + all > kRoom;
        if (narrows) {
            const NarrowLimit found = findLimit(keysHeld());
            if (found.key == kNoLimit) {
                takeInOrder();
                return;
            }
            limit_ = found.key;
            bits = chunk_.upTo(drop(found.count));
        }
        append(bits);
        if (narrows && held_ < k_) {
            appendEqual();
        }
    }

    /// Of what is held, drops what is not within the limit, which `count` keys
    /// are not above. Returns up to which key the chunk's are of use: where
    /// those are more than there is room for, fewer than k are below the limit,
    /// and of equal ones the first count, those that are held before others.
    __device__ __forceinline__ uint32_t drop(uint32_t count) {
        // Loaded again, as the search wants the registers.
        uint32_t numbers[kSorted];
        loadHeld(numbers);
        __syncwarp();
        uint32_t most = Keys::lastNumber(limit_);
        const bool isTied = count > kRoom;
        if (isTied) {
            most = firstEqual(numbers, most);
        }
        keep(numbers, most);
        return isTied ? limit_ - 1 : limit_;
    }

    /// The key that k or more keys are not above: not more than there is room
    /// for, or it is the k-th. kNoLimit: NaN is among the k best.
    __device__ __forceinline__ NarrowLimit
    findLimit(const KeysHeld& held) const {
        using Search = NarrowSearch<T>;
        const Two(&values)[Chunk::kWords] = chunk_.values();
        const Two(&kept)[kKeptPairs] = held.pairs;
        const Search search{k_};
        Two parts[kSorted];
        chunk_.parts(parts);
        const uint32_t least = Search::least(parts, kept);
        NarrowLimit limit{kNoLimit, 0};
        if (k_ <= kRoom * 13 / 16) {
            const uint32_t high =
                    min(Search::greatestUpTo(Keys::kInfinity - 1, parts, kept),
                        limit_);
            const uint32_t all = Search::count(high, parts, kept);
            if (all >= k_) {
                limit = search.find(
                        least,
                        {high, all},
                        k_ + k_ / (k_ <= kRoom * 5 / 8 ? 8 : 16),
                        true,
                        parts,
                        kept);
                limit.count = Search::count(limit.key, values, kept);
            }
        }
        bool isEven = false;
        if (limit.key == kNoLimit) {
            limit.key =
                    min(Search::greatestUpTo(Keys::kInfinity - 1, values, kept),
                        limit_);
            limit.count = Search::count(limit.key, values, kept);
            isEven = limit.count >= k_;
            if (!isEven) {
                limit.key = Keys::kInfinity;
                limit.count = Search::count(limit.key, values, kept);
                if (limit.count < k_) {
                    return {kNoLimit, 0};
                }
            }
        }
        return limit.count <= kRoom
                ? limit
                : search.find(least, limit, kRoom, isEven, values, kept);
    }

    /// A number up to which, with what the chunk has below the limit, there are
    /// k or more, or all that are held, and no more than there is room for.
    __device__ __forceinline__ uint32_t
    firstEqual(const uint32_t (&numbers)[kSorted], uint32_t high) const {
        const uint32_t less = Group::sum(chunk_.upTo(limit_ - 1).count());
        const auto countHeld = [&](uint32_t most) {
            uint32_t count = less;
#pragma unroll
            for (uint32_t number : numbers) {
                count += __popc(__ballot_sync(kFullWarp, number <= most));
            }
            return count;
        };
        uint32_t count = countHeld(high);
        uint32_t low = Keys::firstNumber(limit_);
#pragma unroll 1
        while (low < high && count > kRoom) {
            const uint32_t middle = low + (high - low) / 2;
            const uint32_t found = countHeld(middle);
            if (found < k_) {
                low = middle + 1;
            } else {
                high = middle;
                count = found;
            }
        }
        return high;
    }

    template <int kEach>
    __device__ __forceinline__ void finish() {
        uint32_t sorted[kEach];
        loadHeld(sorted);
        __syncwarp();
        // In little code, as it is there for each number of entries.
        GroupSort<kWarpSize, kEach>::sortAgain(sorted);
        NarrowResult<T, kWarpSize>::template write<1>(
                params_, row_, params_.k, sorted, room_, true);
    }

    template <int kEach>
    __device__ __forceinline__ void loadHeld(uint32_t (&numbers)[kEach]) const {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t place = i * kWarpSize + Group::lane();
            numbers[i] = place < held_ ? room_[place] : kNone;
        }
    }

    __device__ __forceinline__ KeysHeld keysHeld() const {
        KeysHeld held;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < kKeptPairs; ++i) {
            const uint32_t place = 2 * i * kWarpSize + Group::lane();
            held.pairs[i] = Keys::ofNumbers(
                    place < held_ ? room_[place] : kNone,
                    place + kWarpSize < held_ ? room_[place + kWarpSize]
                                              : kNone);
        }
        return held;
    }

    /// Of the numbers that were held, those up to one.
    __device__ __forceinline__ void keep(
            const uint32_t (&numbers)[kSorted],
            uint32_t most) {
        uint32_t mine = 0;
#pragma unroll
        for (uint32_t number : numbers) {
            mine += number <= most ? 1 : 0;
        }
        uint32_t* to = room_ + Group::sumBefore(mine);
#pragma unroll
        for (uint32_t number : numbers) {
            if (number <= most) {
                *to++ = number;
            }
        }
        held_ = Group::sum(mine);
    }

    /// Adds some of the chunk's keys.
    __device__ __forceinline__ void append(const ChunkBits& bits) {
        const uint32_t mine = bits.count();
        uint32_t* to = room_ + held_ + Group::sumBefore(mine);
        const uint32_t before = held_;
        held_ += Group::sum(mine);
#pragma unroll
        for (int w = 0; w < 2; ++w) {
            uint32_t word = bits.words[w];
#pragma unroll 1
            while (word != 0) {
                const uint32_t bit = __ffs(word) - 1;
                word &= word - 1;
                *to++ = chunk_.columnOf(bit % 16 + 16 * w, bit / 16);
            }
        }
        // Columns in the room become numbers: neighbouring lanes take
        // neighbouring places.
        __syncwarp();
#pragma unroll 4
        for (uint32_t place = before + Group::lane(); place < held_;
             place += kWarpSize) {
            room_[place] = chunk_.numberAt(room_[place]);
        }
        __syncwarp();
    }

    /// Adds the first keys that are equal to the limit, until k are held, or up
    /// to 63 more. They are read again, as registers have no number.
    __device__ __forceinline__ void appendEqual() {
        const uint32_t limit = limit_ << 16;
        const uint32_t end = chunk_.endColumn();
#pragma unroll 1
        for (uint32_t from = chunk_.firstColumn(); held_ < k_ && from < end;
             from += 2 * kWarpSize) {
            const uint32_t column = from + Group::lane();
            const uint32_t first = chunk_.numberOrNone(column);
            const uint32_t second = chunk_.numberOrNone(column + kWarpSize);
            addWhere(first, (first & 0xFFFF0000u) == limit);
            addWhere(second, (second & 0xFFFF0000u) == limit);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void addWhere(uint32_t number, bool adds) {
        const uint32_t lanes = __ballot_sync(kFullWarp, adds);
        if (adds) {
            room_[held_ + __popc(lanes & ((1u << Group::lane()) - 1))] = number;
        }
        held_ += __popc(lanes);
    }

    /// The chunk's numbers, 32 at a time: NaN is among the best.
    __device__ __forceinline__ void takeInOrder() {
        uint32_t most = kNone - 1;
        const uint32_t end = chunk_.endColumn();
#pragma unroll 1
        for (uint32_t from = chunk_.firstColumn(); from < end;
             from += kWarpSize) {
            if (held_ + kWarpSize > kRoom) {
                most = keepBest();
            }
            const uint32_t number = chunk_.numberOrNone(from + Group::lane());
            addWhere(number, number <= most);
        }
        __syncwarp();
    }

    /// Keeps the k best; returns the last of them.
    __device__ __forceinline__ uint32_t keepBest() {
        uint32_t numbers[kSorted];
        __syncwarp();
        loadHeld(numbers);
        __syncwarp();
        GroupSort<kWarpSize, kSorted>::sortAgain(numbers);
        const uint32_t place = k_ - 1;
        uint32_t last = 0;
#pragma unroll
        for (int i = 0; i < kSorted; ++i) {
            const uint32_t one =
                    __shfl_sync(kFullWarp, numbers[i], place / kSorted);
            last = place % kSorted == i ? one : last;
        }
        keep(numbers, last);
        return last;
    }

    const SelectParams& params_;
    const uint32_t row_;
    const uint32_t k_;
    uint32_t* room_; // numbers: a key in order, and its column
    uint32_t held_ = 0;
    uint32_t limit_ = kNoLimit; // k of those that are held are not above it
    Chunk chunk_;
};

/// A warp a row.
template <class T, int kSorted>
__global__ void __launch_bounds__(kShortRowsThreads, 5)
        narrowChunksKernel(const __grid_constant__ ShortRowsParams params) {
    using Row = NarrowChunks<T, kSorted>;
    constexpr int kWarps = kShortRowsThreads / kWarpSize;
    __shared__ uint32_t room[kWarps][Row::kRoom];
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t at = blockIdx.x * kWarps + warp;
    if (at < params.rows) {
        Row(params.select, params.select.firstRow + at, room[warp]).run();
    }
}

} // namespace faiss_bits
