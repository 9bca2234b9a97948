/// A few of the best of each row, 1 < k <= 80: a warp holds a row in registers,
/// some thousand keys at a time.
///
/// Each lane finds the least of its keys, or of two or four parts of them. What
/// k of these are not above, k keys are not above, and in random order hardly
/// more are: one sort of a few numbers a lane is the limit. Columns of what is
/// within it go to shared memory; their keys are read again, from L1.
///
/// Bound by: instructions (docs/design/selection_short_rows.md).
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/FewOfLanesFull.cuh"
#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/ShortRowsLaunch.h"
#include "kernels/select/short_rows/ShortSort.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// A row without bias of at most 65,534 columns. kItems: keys of a lane at a
/// time. kMinima: numbers of a lane among which the limit is sought.
template <class T, int kItems, int kMinima>
class FewOfLanes {
    using Group = LaneGroup<kWarpSize>;
    using Full = FewOfLanesFull<T, kMinima <= 2 ? 4 : 8>;
    static constexpr uint32_t kColumns = kItems * kWarpSize;
    static constexpr int kWords = (kItems + 31) / 32;
    static constexpr int kGroup = 8; // items that are loaded as one
    static constexpr uintptr_t kLine = kWarpSize * sizeof(T); // an item's bytes
    static_assert(kItems % kGroup == 0);
    /// So many entries are sorted in less time than more.
    static constexpr uint32_t kSoon = (kMinima <= 2 ? 2 : 4) * kWarpSize;
    /// Random keys hardly ever have more within their limit and equal numbers;
    /// k is fewer, so that k of such a chunk are not above it.
    static constexpr uint32_t kManyWithin = kMinima * kWarpSize;
    static constexpr int kManyTies = 4;

   public:
    static constexpr uint32_t kRoom = Full::kRoom;

    /// room: [kRoom], of the row.
    __device__ __forceinline__
    FewOfLanes(const SelectParams& params, uint32_t row, uint32_t* room)
            : params_(params), row_(row), room_(room) {
        const uintptr_t first =
                reinterpret_cast<uintptr_t>(Full::keysOf(params, row));
        lines_ = first / kLine * kLine;
        skew_ = uint32_t(first - lines_) / uint32_t(sizeof(T));
        end_ = skew_ + params.cols;
#pragma unroll
        for (float& one : least_) {
            one = __uint_as_float(kNan);
        }
    }

    __device__ __forceinline__ void run() {
        for (uint32_t base = 0; base < end_; base += kColumns) {
            load(base);
            take(base);
        }
        __syncwarp();
        if (held_.count > kSoon) {
            held_ = Full::keepWithin(params_, row_, room_, held_);
        }
        if (held_.count <= kWarpSize) {
            finish<1>();
        } else if (held_.count <= 2 * kWarpSize) {
            finish<2>();
        } else if (kMinima <= 2 || held_.count <= 4 * kWarpSize) {
            finish<4>();
        } else {
            finish<8>();
        }
    }

   private:
    /// Lanes turn from item to item, so that keys of a period of a power of two
    /// do not meet in one lane, nor those of every other item in half of the
    /// lanes. By exclusive or, as that is the same for addresses.
    __device__ __forceinline__ static constexpr uint32_t turnOf(uint32_t i) {
        return i * 83 / 8 % kWarpSize;
    }
    __device__ __forceinline__ static uint32_t placeOf(uint32_t i) {
        return i * kWarpSize + (Group::lane() ^ turnOf(i));
    }

    /// Which of a lane's numbers an item counts for: neighbours for different
    /// ones, and so what lies 1,024 columns apart.
    __device__ __forceinline__ static constexpr int partOf(int i) {
        return (i + i / kWarpSize) % kMinima;
    }

    /// Before and behind the row there is NaN, which is within no limit.
    __device__ __forceinline__ void load(uint32_t base) {
        const uintptr_t from = lines_ + (base + Group::lane()) * sizeof(T);
        const int left = int(end_ - base);
        const auto at = [&](int i) {
            const uintptr_t address = from ^ (turnOf(i) * sizeof(T));
            return __ldg(reinterpret_cast<const T*>(address) + i * kWarpSize);
        };
        T loaded[kItems];
#pragma unroll
        for (int first = 0; first < kItems; first += kGroup) {
            if (left >= (first + kGroup) * kWarpSize) {
#pragma unroll
                for (int i = max(first, 1); i < first + kGroup; ++i) {
                    loaded[i] = at(i);
                }
            } else {
#pragma unroll
                for (int i = max(first, 1); i < first + kGroup; ++i) {
                    loaded[i] = T(__uint_as_float(kNan));
                    if (int(placeOf(i)) < left) {
                        loaded[i] = at(i);
                    }
                }
            }
        }
        const uint32_t first = base + Group::lane();
        loaded[0] = T(__uint_as_float(kNan));
        if (first >= skew_ && first < end_) {
            loaded[0] = at(0);
        }
        const float sign = __uint_as_float(0x3F800000u ^ params_.signMask);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            values_[i] = toFloat(loaded[i]) * sign;
        }
    }

    /// A key that k of this chunk and of others that have come here are not
    /// above; kNanKey where the lanes' numbers do not say.
    __device__ __forceinline__ uint32_t limit() {
        // Two chains each.
        float least[2 * kMinima];
#pragma unroll
        for (float& one : least) {
            one = __uint_as_float(kNan);
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            float& one = least[partOf(i) + i / 2 % 2 * kMinima];
            one = fminf(one, values_[i]);
        }
        uint32_t numbers[kMinima];
#pragma unroll
        for (int i = 0; i < kMinima; ++i) {
            least_[i] = fminf(least_[i], fminf(least[i], least[i + kMinima]));
            numbers[i] = orderedKey(least_[i]);
        }
        GroupSort<kWarpSize, kMinima>::sort(numbers);
        const uint32_t place = uint32_t(params_.k) - 1;
        uint32_t found = 0;
#pragma unroll
        for (int i = 0; i < kMinima; ++i) {
            const uint32_t one =
                    __shfl_sync(kFullWarp, numbers[i], place / kMinima);
            found = place % kMinima == i ? one : found;
        }
        return found;
    }

    /// A bit for each of the chunk that is not above one, or below it.
    struct Bits {
        uint32_t words[kWords] = {};

        __device__ __forceinline__ uint32_t count() const {
            uint32_t sum = 0;
#pragma unroll
            for (uint32_t word : words) {
                sum += __popc(word);
            }
            return sum;
        }
        __device__ __forceinline__ Bits without(const Bits& other) const {
            Bits rest;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                rest.words[w] = words[w] & ~other.words[w];
            }
            return rest;
        }
    };
    template <bool kLess>
    __device__ __forceinline__ Bits within(uint32_t key) const {
        const float most = keyValue(key);
        Bits bits;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            if (kLess ? values_[i] < most : values_[i] <= most) {
                bits.words[i / 32] |= 1u << i % 32;
            }
        }
        return bits;
    }

    /// Whether a lower limit is worth a sort: with twice as many columns half
    /// as many of each chunk are within it.
    __device__ __forceinline__ bool lowersLimit(uint32_t base) const {
        const uint32_t chunk = base / kColumns;
        return (chunk & (chunk + 1)) == 0 &&
                (base == 0 || held_.count * end_ > kSoon * base);
    }

    __device__ __forceinline__ void take(uint32_t base) {
        uint32_t most = held_.most;
        if (lowersLimit(base)) {
            most = min(most, limit());
        }
        if (most == kNanKey) {
            takeInOrder(base);
            return;
        }
        const Bits bits = within<false>(most);
        const uint32_t total = Group::sum(bits.count());
        if (total > kManyWithin || held_.count + total > kRoom) {
            takeMany(base, most, bits, total);
            return;
        }
        append(base, bits);
        // k of these columns, or of those before, are not above it.
        if (most < held_.most) {
            lowerLimit(most);
        }
    }

    __device__ __forceinline__ void lowerLimit(uint32_t most) {
        held_.limit = most;
        held_.most = Full::below(most);
    }

    /// Where more of the chunk are within a limit than of random keys: if it is
    /// the k-th key, as where many are equal, what is less and the first equal
    /// ones; else all of them, or where these have no room, one step of 32
    /// columns after the other.
    __device__ __forceinline__ void takeMany(
            uint32_t base,
            uint32_t most,
            Bits bits,
            uint32_t total) {
        bool isFull = held_.count + total > kRoom;
        if (isFull && base > 0) {
            if (held_.count > uint32_t(params_.k)) {
                held_ = Full::narrow(params_, row_, room_, held_);
            }
            most = min(held_.most, limit());
            bits = within<false>(most);
            total = Group::sum(bits.count());
            isFull = held_.count + total > kRoom;
        }
        Bits equal;
        uint32_t wanted = 0; // of these
        if (isFull || (total > kManyWithin && areTied(most))) {
            const Bits less = within<true>(most);
            const uint32_t numLess = Group::sum(less.count());
            if (numLess < uint32_t(params_.k)) {
                equal = bits.without(less);
                wanted = uint32_t(params_.k) - numLess;
                bits = less;
            } else if (isFull) {
                held_.most = most;
                takeInOrder(base);
                return;
            }
        }
        append(base, bits);
        appendEqual(base, equal, wanted);
        if (most < held_.most || wanted > 0) {
            lowerLimit(most);
        }
    }

    /// Whether so many of the lanes' numbers are the limit that many keys are.
    __device__ __forceinline__ bool areTied(uint32_t limit) const {
        const float most = keyValue(limit);
        int numTied = 0;
#pragma unroll
        for (float one : least_) {
            numTied += __popc(__ballot_sync(kFullWarp, one == most));
        }
        return numTied >= kManyTies;
    }

    __device__ __forceinline__ void append(uint32_t base, const Bits& bits) {
        uint32_t* to = room_ + held_.count;
        const uint32_t count = bits.count();
        const uint32_t before = Group::sumBefore(count);
        to += before;
        held_.count += __shfl_sync(kFullWarp, before + count, kWarpSize - 1);
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            uint32_t word = bits.words[w];
            while (word != 0) {
                const uint32_t i = w * 32 + __ffs(word) - 1;
                word &= word - 1;
                *to++ = base - skew_ + placeOf(i);
            }
        }
    }

    /// The first so many of the chunk's equal keys, one step of 32 columns
    /// after the other.
    __device__ __forceinline__ void appendEqual(
            uint32_t base,
            const Bits& equal,
            uint32_t wanted) {
#pragma unroll 1
        for (int i = 0; i < kItems && wanted > 0; ++i) {
            const uint32_t mine =
                    i < 32 ? equal.words[0] : equal.words[kWords - 1];
            // In the order of columns.
            const uint32_t word = __shfl_xor_sync(kFullWarp, mine, turnOf(i));
            const bool isEqual = (word >> i % 32 & 1) != 0;
            const uint32_t all = __ballot_sync(kFullWarp, isEqual);
            const uint32_t place = __popc(all & ((1u << Group::lane()) - 1));
            if (isEqual && place < wanted) {
                room_[held_.count + place] =
                        base - skew_ + i * kWarpSize + Group::lane();
            }
            const uint32_t taken = min(wanted, uint32_t(__popc(all)));
            held_.count += taken;
            wanted -= taken;
        }
    }

    __device__ __forceinline__ void takeInOrder(uint32_t base) {
        const uint32_t begin = base == 0 ? 0 : base - skew_;
        const uint32_t end = min(base + kColumns, end_) - skew_;
        held_ = Full::take(params_, row_, room_, held_, begin, end);
    }

    template <int kEach>
    __device__ __forceinline__ void finish() {
        uint64_t entries[kEach];
        Full::load(
                entries,
                Full::keysOf(params_, row_),
                params_.signMask,
                room_,
                held_.count);
        ShortSort<T, kWarpSize, kEach, false>::sort(entries, nullptr);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const int place = Group::lane() * kEach + i;
            if (place < params_.k) {
                writeResult<T>(params_, row_, place, entries[i]);
            }
        }
    }

    static constexpr uint32_t kNan = 0x7FC00000u;

    const SelectParams& params_;
    const uint32_t row_;
    uint32_t* room_; // columns, [kRoom]
    // The row's columns are the places from skew_ to end_ of lines of 32 keys,
    // each of which is one of L1's, or half of it.
    uintptr_t lines_;
    uint32_t skew_;
    uint32_t end_;
    HeldColumns held_;
    float least_[kMinima]; // of this lane's columns
    float values_[kItems]; // of the chunk, in the order of "smallest first"
};

/// Blocks of a multiprocessor that there are registers for: the compiler, left
/// to itself, takes more for loads that it has in flight anyway.
template <int kItems>
constexpr int kFewOfLanesBlocks = kItems <= 32 ? 8
        : kItems <= 48                         ? 6
                                               : 5;

/// A warp a row.
template <class T, int kItems, int kMinima>
__global__ void __launch_bounds__(kShortRowsThreads, kFewOfLanesBlocks<kItems>)
        fewOfLanesKernel(const __grid_constant__ ShortRowsParams params) {
    using Row = FewOfLanes<T, kItems, kMinima>;
    constexpr int kWarps = kShortRowsThreads / kWarpSize;
    __shared__ uint32_t room[kWarps][Row::kRoom];
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t at = blockIdx.x * kWarps + warp;
    if (at < params.rows) {
        Row(params.select, params.select.firstRow + at, room[warp]).run();
    }
}

} // namespace faiss_bits
