/// 2 to 16 of the best floats of rows of some hundred columns: 8 or 16 lanes
/// hold a row in registers.
///
/// Each lane finds the least of its keys, or of two or four parts of them. What
/// k of these numbers are not above, k keys are not above, and in random order
/// hardly more are. Columns of what is within that limit go to shared memory;
/// each of their keys, read again from L1, counts those that come before it.
///
/// Bound by: instructions (docs/design/selection_short_rows.md).
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/FewOfLanesFull.cuh"
#include "kernels/select/short_rows/FewOfPacksLaunch.h"
#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/KeyRanks.cuh"
#include "kernels/select/short_rows/RowPacks.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// A row without bias.
template <int kLanes, int kPacks, int kMinima>
class FewOfPacks {
    using Packs = RowPacks<kLanes, kPacks>;
    using Group = typename Packs::Group;
    using Bits = typename Packs::Bits;
    static constexpr int kPack = Packs::kPack;
    static constexpr int kItems = kPacks * kPack; // of a lane
    using Full = FewOfLanesFull<float, 4>;

   public:
    /// Survivors of a lane that there is room for.
    static constexpr int kNumbers = kLanes * kMinima;
    static constexpr int kLeastRoom = kNumbers == 8 ? 16
            : kNumbers == 16                        ? 24
                                                    : 32;
    static constexpr int kMostEach = (kLeastRoom + kLanes - 1) / kLanes;
    static constexpr int kRoom = kMostEach * kLanes;

    /// Of the rows of a warp.
    struct Room {
        static constexpr int kRows = kWarpSize / kLanes;
        union {
            struct {
                // Four keys more, so that rows lie in different banks.
                alignas(16) float keys[kRows][kRoom + 4];
                uint32_t columns[kRows][kRoom + 4];
            };
            uint32_t all[Full::kRoom];
        };
    };

    __device__ __forceinline__
    FewOfPacks(const SelectParams& params, uint32_t row, Room& room)
            : params_(params), row_(row), room_(room) {}

    /// All lanes of the warp call it; `writes`: else they only go along.
    __device__ __forceinline__ void run(bool writes) {
        skew_ = Packs::load(params_, row_, values_);
        uint32_t most = limit<false>();
        Bits bits = within<false>(most);
        uint32_t before;
        uint32_t count = place(bits, before);
        const auto isWrong = [&] {
            return count < uint32_t(params_.k) || count > uint32_t(kRoom);
        };
        if (__any_sync(kFullWarp, isWrong())) {
            withoutTies(most, bits, count);
            if (__any_sync(kFullWarp, isWrong())) {
                most = limit<true>();
                bits = within<false>(most);
                count = place(bits, before);
                withoutTies(most, bits, count);
            }
            if (__any_sync(kFullWarp, isWrong())) {
                takeInOrder(isWrong(), writes);
                count = isWrong() ? 0 : count;
                bits = count == 0 ? Bits() : bits;
            }
            place(bits, before);
        }
        keepColumns(bits, before);
        __syncwarp();
        const uint32_t greatest = __reduce_max_sync(kFullWarp, count);
        if (greatest <= kLanes) {
            finish<1>(count, writes);
            return;
        }
        if constexpr (kMostEach > 2) {
            if (greatest > 2 * kLanes) {
                if (kMostEach == 3 || greatest <= 3 * kLanes) {
                    finish<3>(count, writes);
                } else {
                    finish<kMostEach>(count, writes);
                }
                return;
            }
        }
        finish<2>(count, writes);
    }

   private:
    __device__ __forceinline__ int inWarp() const {
        return threadIdx.x % kWarpSize / kLanes;
    }

    /// As orderedKey, of a number or of the one NaN that fminf has.
    __device__ __forceinline__ static uint32_t keyOf(float value) {
        const int32_t bits = __float_as_int(__fadd_rn(value, 0.0f));
        return uint32_t(bits) ^ (uint32_t(bits >> 31) | 0x80000000u);
    }

    /// A key that k of the row's are not above; kNanKey where the lanes'
    /// numbers do not say. Neighbours count for different numbers of a lane,
    /// and so do keys of a pack's place in the next pack; turned, keys of one
    /// place of different packs count for different lanes, too.
    template <bool kIsTurned>
    __device__ __forceinline__ uint32_t limit() {
        float least[kMinima];
#pragma unroll
        for (float& one : least) {
            one = __uint_as_float(0x7FFFFFFFu);
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const int pack = i / kPack;
            float& one = least[(i + pack) % kMinima];
            const float value = kIsTurned
                    ? __shfl_xor_sync(
                              kFullWarp, values_[i], (i + pack) % kLanes)
                    : values_[i];
            one = fminf(one, value);
        }
        uint32_t numbers[kMinima];
#pragma unroll
        for (int m = 0; m < kMinima; ++m) {
            numbers[m] = keyOf(least[m]);
        }
        GroupSort<kLanes, kMinima>::sort(numbers);
        least_ = numbers[0];
        // Bit by bit, as an index would put the numbers into memory.
        const int place = params_.k - 1;
#pragma unroll
        for (int step = 1; step < kMinima; step *= 2) {
#pragma unroll
            for (int m = 0; m < kMinima; m += 2 * step) {
                numbers[m] =
                        (place & step) != 0 ? numbers[m + step] : numbers[m];
            }
        }
        return __shfl_sync(kFullWarp, numbers[0], place / kMinima, kLanes);
    }

    /// A sum of floats is issued in half the time of one of integers: bits of
    /// 16 keys are summed in the mantissa of 2^23.
    template <bool kLess>
    __device__ __forceinline__ Bits within(uint32_t key) const {
        const float most = keyValue(key);
        Bits bits;
#pragma unroll
        for (int from = 0; from < kItems; from += 16) {
            float sum = 0x1p23f;
#pragma unroll
            for (int i = from; i < min(from + 16, kItems); ++i) {
                const bool is = kLess ? values_[i] < most : values_[i] <= most;
                sum = __fmaf_rn(is ? 1.0f : 0.0f, float(1 << (i - from)), sum);
            }
            bits.words[from / 32] |= (__float_as_uint(sum) & 0xFFFFu)
                    << from % 32;
        }
        return bits;
    }

    /// How many there are in the row, and in the lanes before this one.
    __device__ __forceinline__ uint32_t
    place(const Bits& bits, uint32_t& before) const {
        const uint32_t mine = bits.count();
        before = Group::sumBefore(mine);
        return __shfl_sync(kFullWarp, before + mine, kLanes - 1, kLanes);
    }

    /// Where more than there is room for are within a limit: what is below it,
    /// and where that is less than k, as the limit is the k-th key then, the
    /// first of those that are equal to it. So of all rows of the warp with
    /// more than k, as the most that a row has is what all of them take.
    __device__ __forceinline__ void withoutTies(
            uint32_t most,
            Bits& bits,
            uint32_t& count) const {
        if (!__any_sync(kFullWarp, count > uint32_t(kRoom))) {
            return;
        }
        const uint32_t k = uint32_t(params_.k);
        const bool isFull = count > k;
        const bool isLeast = __shfl_sync(kFullWarp, least_, 0, kLanes) == most;
        Bits less; // nothing, of a limit that is the least key
        if (__any_sync(kFullWarp, isFull && !isLeast)) {
            less = within<true>(most);
        }
        const uint32_t numLess = Group::sum(less.count());
        const bool isTied = isFull && numLess < k;
        if (__any_sync(kFullWarp, isTied)) {
            const Bits first =
                    bits.without(less).first(isTied ? k - numLess : 0);
            bits = isTied ? less.with(first) : bits;
            count = isTied ? k : count;
        }
        if (isFull && !isTied) {
            bits = less;
            count = numLess;
        }
    }

    /// Whole rows by the whole warp, one after the other, where the limit lets
    /// too many through, or NaN is among the best.
    __device__ __forceinline__ void takeInOrder(bool isWrong, bool writes) {
        const uint32_t mine = isWrong && writes ? row_ + 1 : 0;
        for (int one = 0; one < Room::kRows; ++one) {
            const uint32_t row = __shfl_sync(kFullWarp, mine, one * kLanes);
            if (row > 0) {
                takeRow(params_, row - 1, room_.all);
            }
        }
    }

    __device__ __noinline__ static void takeRow(
            const SelectParams& params,
            uint32_t row,
            uint32_t* room) {
        HeldColumns held;
        held = Full::take(params, row, room, held, 0, params.cols);
        held = Full::narrow(params, row, room, held);
        uint64_t entries[1];
        Full::load(
                entries,
                Full::keysOf(params, row),
                params.signMask,
                room,
                held.count);
        const int place = threadIdx.x % kWarpSize;
        if (place < params.k) {
            writeResult<float>(params, row, place, entries[0]);
        }
        __syncwarp();
    }

    /// Of each survivor which key of which lane it is.
    __device__ __forceinline__ void keepColumns(
            const Bits& bits,
            uint32_t before) {
        uint32_t* to = room_.columns[inWarp()] + before;
#pragma unroll
        for (int w = 0; w < Bits::kWords; ++w) {
            uint32_t word = bits.words[w];
            while (word != 0) {
                const uint32_t i = w * 32 + __ffs(word) - 1;
                word &= word - 1;
                *to++ = i * kLanes + Group::lane();
            }
        }
    }

    /// Ranks of the survivors, at most kEach of a lane, and the results.
    template <int kEach>
    __device__ __forceinline__ void finish(uint32_t count, bool writes) {
        float* room = room_.keys[inWarp()];
        const uint32_t* kept = room_.columns[inWarp()];
        const float* from = Packs::keysOf(params_, row_);
        uint32_t columns[kEach];
        float mine[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t place = e * kLanes + Group::lane();
            columns[e] =
                    place < count ? Packs::columnOf(kept[place], skew_) : 0;
            mine[e] = __ldg(from + columns[e]);
        }
        const float sign = __uint_as_float(0x3F800000u ^ params_.signMask);
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const uint32_t place = e * kLanes + Group::lane();
            mine[e] = place < count ? mine[e] * sign
                                    : __uint_as_float(0x7FC00000u);
            room[place] = mine[e];
        }
        __syncwarp();
        float ranks[kEach] = {};
        using Ranks = KeyRanks<kLanes, kEach>;
        static_assert(kMostPackCols <= Ranks::kMostColumns);
        Ranks::count(
                room, room_.columns[inWarp()], mine, columns, count, ranks);
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            const int rank = int(ranks[e]);
            if (mine[e] == mine[e] && rank < params_.k && writes) {
                writeResult<float>(
                        params_,
                        row_,
                        rank,
                        makeEntry(keyOf(mine[e]), columns[e]));
            }
        }
    }

    const SelectParams& params_;
    const uint32_t row_;
    Room& room_;
    uint32_t skew_;        // places before the row
    uint32_t least_;       // in the first lane: the row's least key
    float values_[kItems]; // in the order of "smallest first"
};

template <int kLanes, int kPacks, int kMinima>
__global__ void __launch_bounds__(kShortRowsThreads)
        fewOfPacksKernel(const __grid_constant__ ShortRowsParams params) {
    using Rows = FewOfPacks<kLanes, kPacks, kMinima>;
    constexpr uint32_t kRows = kShortRowsThreads / kLanes;
    __shared__ typename Rows::Room room[kShortRowsThreads / kWarpSize];
    const uint32_t at = blockIdx.x * kRows + threadIdx.x / kLanes;
    const bool isThere = at < params.rows;
    const uint32_t row = params.select.firstRow + (isThere ? at : 0);
    Rows(params.select, row, room[threadIdx.x / kWarpSize]).run(isThere);
}

} // namespace faiss_bits
