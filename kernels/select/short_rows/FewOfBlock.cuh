/// A few of the best of each row of some thousand columns: a block holds the
/// row in registers.
///
/// Each thread, or two of them, find the least of their keys. What k of these
/// are not above, k keys are not above, and in random order hardly more are: a
/// warp sorts them, and the k-th is the limit. Columns of what is within it go
/// to shared memory; their keys are read again, from L1, and ranks are counted.
///
/// Bound by: the read, and where a multiprocessor holds few blocks by the chain
/// of one row (docs/design/selection_blocks.md).
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/short_rows/FewOfBlockFinish.cuh"
#include "kernels/select/short_rows/FewOfBlockFull.cuh"
#include "kernels/select/short_rows/GroupSort.cuh"
#include "kernels/select/short_rows/LaneGroup.cuh"

namespace faiss_bits {

/// A row of floats without bias. kItems: keys of a thread.
template <int kItems>
class FewOfBlock {
    static constexpr int kThreads = fewOfBlockThreads(kItems);
    using Full = FewOfBlockFull<kThreads>;
    using Finish = FewOfBlockFinish<kThreads>;
    using Bits = FewOfBlockBits<kItems>;
    static constexpr uint32_t kRoom = kFewOfBlockRoom;
    static constexpr int kWarps = kThreads / kWarpSize;
    /// So many numbers that equal the limit say that many keys do.
    static constexpr int kManyTies = 8;
    static constexpr int kGroup = 8; // items that are loaded as one
    static constexpr uintptr_t kLines = kFewOfBlockTurns * sizeof(float);
    static_assert(kItems % kGroup == 0 && kThreads % kFewOfBlockTurns == 0);

   public:
    using Shared = FewOfBlockShared<kThreads>;
    static_assert(kItems * kWarps <= int(Shared::kMostLines));
    static_assert(mostColsOfBlock(kItems) <= int(Finish::kRankStep));

    __device__ __forceinline__
    FewOfBlock(const SelectParams& params, uint32_t row, Shared& shared)
            : params_(params), row_(row), shared_(shared) {
        const uintptr_t first =
                reinterpret_cast<uintptr_t>(Full::keysOf(params, row));
        lines_ = first / kLines * kLines;
        skew_ = uint32_t(first - lines_) / uint32_t(sizeof(float));
        end_ = skew_ + params.cols;
    }

    __device__ __forceinline__ void run() {
        load();
        if (threadIdx.x == 0) {
            shared_.count = 0;
            shared_.rankSum = 0;
        }
        findLeast();
        // kNanKey where the numbers do not say.
        const uint32_t limit = kthOf(Finish::keyOf(least_));
        uint32_t count = kRoom + 1;
        if (shared_.numTied < kManyTies) {
            keep(within(keyValue(limit)));
            __syncthreads();
            count = shared_.count;
        }
        if (count > kRoom) {
            keepTied(keyValue(limit));
            __syncthreads();
            count = shared_.count;
        }
        const Finish finish{params_, row_, shared_};
        // Fewer than k: NaN is among the best.
        if (count > kRoom || count < uint32_t(params_.k)) {
            Full::selectByEntries(shared_, params_, row_);
        } else if (count <= kThreads) {
            finish.template run<1>(count);
        } else {
            finish.template run<kRoom / kThreads>(count);
        }
    }

   private:
    __device__ __forceinline__ static uint32_t lane() {
        return threadIdx.x % kWarpSize;
    }
    __device__ __forceinline__ static uint32_t warp() {
        return threadIdx.x / kWarpSize;
    }

    /// Threads turn from item to item, lanes within a line of 32 keys and warps
    /// from line to line, so that keys of a period of a power of two do not
    /// meet in a few threads. By exclusive or, as that is the same for
    /// addresses.
    __device__ __forceinline__ static constexpr uint32_t turnOf(uint32_t i) {
        return i * 37 % kFewOfBlockTurns;
    }
    __device__ __forceinline__ static uint32_t placeOf(uint32_t i) {
        return i * kThreads + (threadIdx.x ^ turnOf(i));
    }
    __device__ __forceinline__ uint32_t columnOf(int i) const {
        return placeOf(i) - skew_;
    }

    /// Before and behind the row there is NaN, which is within no limit.
    __device__ __forceinline__ void load() {
        const uintptr_t from = lines_ + threadIdx.x * sizeof(float);
        const auto at = [&](int i) {
            const uintptr_t address = from ^ (turnOf(i) * sizeof(float));
            return __ldg(
                    reinterpret_cast<const float*>(address) + i * kThreads);
        };
#pragma unroll
        for (int first = 0; first < kItems; first += kGroup) {
            const int last = first + kGroup - 1;
            if (first > 0 && end_ >= uint32_t(last + 1) * kThreads) {
#pragma unroll
                for (int i = first; i <= last; ++i) {
                    values_[i] = at(i);
                }
            } else {
#pragma unroll
                for (int i = first; i <= last; ++i) {
                    const uint32_t place = placeOf(i);
                    values_[i] = __uint_as_float(0x7FC00000u);
                    if (place < end_ && (i > 0 || place >= skew_)) {
                        values_[i] = at(i);
                    }
                }
            }
        }
        const float times = Finish::signOf(params_);
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            values_[i] *= times;
        }
    }

    /// The k-th of the numbers, in every thread, and how many equal it. Begins
    /// and ends with the block in step.
    __device__ __forceinline__ uint32_t kthOf(uint32_t mine) {
        shared_.numbers[threadIdx.x] = mine;
        __syncthreads();
        if (warp() == 0) {
            sortNumbers();
        }
        __syncthreads();
        return shared_.limit;
    }

    __device__ __forceinline__ void sortNumbers() {
        constexpr int kEach = kFewOfBlockNumbers / kWarpSize;
        uint32_t numbers[kEach];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32_t place = i * kWarpSize + lane();
            numbers[i] = shared_.numbers[place];
            if constexpr (kThreads > kFewOfBlockNumbers) {
                // Lines of the two threads lie apart.
                static_assert(kThreads == 2 * kFewOfBlockNumbers);
                numbers[i] =
                        min(numbers[i],
                            shared_.numbers[place + kFewOfBlockNumbers]);
            }
        }
        GroupSort<kWarpSize, kEach>::sort(numbers);
        const uint32_t place = uint32_t(params_.k) - 1;
        // Bit by bit, as an index would put the numbers into memory.
        uint32_t chosen[kEach];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            chosen[i] = numbers[i];
        }
#pragma unroll
        for (int step = 1; step < kEach; step *= 2) {
#pragma unroll
            for (int i = 0; i < kEach; i += 2 * step) {
                chosen[i] = (place & step) != 0 ? chosen[i + step] : chosen[i];
            }
        }
        const uint32_t kth = __shfl_sync(kFullWarp, chosen[0], place / kEach);
        uint32_t numTied = 0;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            numTied += numbers[i] == kth ? 1 : 0;
        }
        numTied = __reduce_add_sync(kFullWarp, numTied);
        if (lane() == 0) {
            shared_.limit = kth;
            shared_.numTied = numTied;
        }
    }

    __device__ __forceinline__ void findLeast() {
        // Two chains.
        const float nan = __uint_as_float(0x7FFFFFFFu);
        float least[2] = {nan, nan};
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            least[i / 2 % 2] = fminf(least[i / 2 % 2], values_[i]);
        }
        least_ = fminf(least[0], least[1]);
    }

    /// A sum of floats is issued in half the time of one of integers: bits of
    /// 16 keys are summed in the mantissa of 2^23.
    template <class Is>
    __device__ __forceinline__ static Bits bitsOf(const Is& is) {
        Bits bits;
#pragma unroll
        for (int from = 0; from < kItems; from += 16) {
            float sum = 0x1p23f;
#pragma unroll
            for (int i = from; i < min(from + 16, kItems); ++i) {
                sum = __fmaf_rn(
                        is(i) ? 1.0f : 0.0f, float(1 << (i - from)), sum);
            }
            bits.words[from / 32] |= (__float_as_uint(sum) & 0xFFFFu)
                    << from % 32;
        }
        return bits;
    }

    __device__ __forceinline__ Bits within(float most) const {
        return bitsOf([&](int i) { return values_[i] <= most; });
    }

    /// Where many keys equal the limit: those below it, and of equal ones the
    /// first lines. So many are taken that k threads have a key among them: k
    /// keys or more, and hardly more.
    __device__ __forceinline__ void keepTied(float most) {
        const Bits less = bitsOf([&](int i) { return values_[i] < most; });
        const Bits equal = bitsOf([&](int i) { return values_[i] == most; });
        for (int i = threadIdx.x; i < kItems * kWarps; i += kThreads) {
            shared_.lines[i] = 0;
        }
        // Nobody asks any more how many were kept.
        __syncthreads();
        if (threadIdx.x == 0) {
            shared_.count = 0;
        }
        if (less.count() > 0) {
            atomicAdd(&shared_.lines[0], 1);
        } else if (equal.count() > 0) {
            atomicAdd(&shared_.lines[placeOf(equal.first()) / kWarpSize], 1);
        }
        __syncthreads();
        const uint32_t last = lastLine();
        // Items of the warp's in lines up to the last one.
        const uint32_t items = last / kWarps;
        const bool hasOneMore = placeOf(items) / kWarpSize <= last;
        keep(less.with(equal.upTo(items + (hasOneMore ? 1 : 0))));
    }

    /// The line up to which k threads were counted, or the last one.
    __device__ __forceinline__ uint32_t lastLine() const {
        constexpr uint32_t kEach = kItems * kWarps / kWarpSize;
        uint32_t upTo[kEach];
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < kEach; ++i) {
            sum += shared_.lines[lane() * kEach + i];
            upTo[i] = sum;
        }
        const uint32_t before = LaneGroup<kWarpSize>::sumBefore(sum);
        uint32_t fewer = 0; // lines up to which there are not enough
#pragma unroll
        for (uint32_t i = 0; i < kEach; ++i) {
            fewer += before + upTo[i] < uint32_t(params_.k) ? 1 : 0;
        }
        return min(__reduce_add_sync(kFullWarp, fewer), kItems * kWarps - 1u);
    }

    __device__ __forceinline__ void keep(const Bits& bits) {
        const uint32_t mine = bits.count();
        if (mine == 0) {
            return;
        }
        uint32_t slot = atomicAdd(&shared_.count, mine);
#pragma unroll
        for (int w = 0; w < (kItems + 31) / 32; ++w) {
            uint32_t word = bits.words[w];
            for (; word != 0 && slot < kRoom; ++slot) {
                const int i = w * 32 + __ffs(word) - 1;
                word &= word - 1;
                shared_.columns[slot] = columnOf(i);
            }
        }
    }

    const SelectParams& params_;
    const uint32_t row_;
    Shared& shared_;
    // The row's columns are the places from skew_ to end_, of lines of 32 keys.
    uintptr_t lines_;
    uint32_t skew_;
    uint32_t end_;
    float least_;          // of its keys
    float values_[kItems]; // in the order of "smallest first"
};

/// Blocks of a multiprocessor that there are registers for.
template <int kItems>
constexpr int kFewOfBlockBlocks = fewOfBlockThreads(kItems) == 256 ? 4
        : kItems <= 32                                             ? 8
        : kItems <= 48                                             ? 6
                                                                   : 5;

/// A block a row.
template <int kItems>
__global__ void __launch_bounds__(
        fewOfBlockThreads(kItems),
        kFewOfBlockBlocks<kItems>)
        fewOfBlockKernel(const __grid_constant__ ShortRowsParams params) {
    using Row = FewOfBlock<kItems>;
    __shared__ typename Row::Shared shared;
    Row(params.select, params.select.firstRow + blockIdx.x, shared).run();
}

} // namespace faiss_bits
