/// Sorts a row by one block that holds all of it: a radix sort, least digit
/// first, of keys and their columns, from registers through shared memory and
/// back, eight bits a pass.
///
/// Bound by: instructions, about 60 an item and pass, most of them the votes
/// that tell a lane which others of its warp have its digit; random access to
/// shared memory comes close. Memory sees the keys once and the results.
/// Any order of keys takes the same time, or less: bits that all keys share
/// are passed over.
///
/// Source: Merrill and Grimshaw 2011 (ranks by counting), Adinets and Merrill
/// 2022 (ranks by matching digits in a warp; "Onesweep").
#pragma once

#include "kernels/device/BlockScan.cuh"
#include "kernels/device/LaneSums.cuh"
#include "kernels/select/large_k/Composite.cuh"
#include "kernels/select/large_k/RowSortLaunch.h"
#include "kernels/select/large_k/RowTile.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// A thread's keys of 16 bits, each above its column in one word.
template <int Items>
struct WordItems {
    static constexpr uint32_t kLastKey = 0xFFFFu;

    uint32_t words[Items];

    /// Items of the block in shared memory.
    struct Room {
        uint32_t* words;

        __device__ Room(uint32_t* memory, uint32_t) : words(memory) {}

        __device__ __forceinline__ uint32_t key(uint32_t place) const {
            return words[place] >> 16;
        }
        __device__ __forceinline__ uint32_t column(uint32_t place) const {
            return words[place] & 0xFFFFu;
        }
    };

    __device__ __forceinline__ void set(int i, uint32_t key, uint32_t column) {
        words[i] = key << 16 | column;
    }
    __device__ __forceinline__ uint32_t key(int i) const {
        return words[i] >> 16;
    }
    __device__ __forceinline__ void store(
            const Room& room,
            uint32_t place,
            int i) const {
        room.words[place] = words[i];
    }
    __device__ __forceinline__ void load(
            const Room& room,
            uint32_t place,
            int i) {
        words[i] = room.words[place];
    }
};

/// Keys of 32 bits, and columns of 16 in pairs.
template <int Items>
struct WideItems {
    static constexpr uint32_t kLastKey = 0xFFFFFFFFu;

    uint32_t keys[Items];
    uint32_t columns[Items / 2];

    struct Room {
        uint32_t* keys;
        uint16_t* columns;

        __device__ Room(uint32_t* memory, uint32_t size)
                : keys(memory),
                  columns(reinterpret_cast<uint16_t*>(memory + size)) {}

        __device__ __forceinline__ uint32_t key(uint32_t place) const {
            return keys[place];
        }
        __device__ __forceinline__ uint32_t column(uint32_t place) const {
            return columns[place];
        }
    };

    __device__ __forceinline__ void set(int i, uint32_t key, uint32_t column) {
        keys[i] = key;
        if (i % 2 == 0) {
            columns[i / 2] = column;
        } else {
            columns[i / 2] |= column << 16;
        }
    }
    __device__ __forceinline__ uint32_t key(int i) const {
        return keys[i];
    }
    __device__ __forceinline__ void store(
            const Room& room,
            uint32_t place,
            int i) const {
        room.keys[place] = keys[i];
        room.columns[place] = uint16_t(columns[i / 2] >> 16 * (i % 2));
    }
    __device__ __forceinline__ void load(
            const Room& room,
            uint32_t place,
            int i) {
        set(i, room.keys[place], room.columns[place]);
    }
};

/// The lanes of the warp that have the same digit as this one.
__device__ __forceinline__ uint32_t lanesOfDigit(uint32_t digit) {
    uint32_t lanes = kFullWarp;
#pragma unroll
    for (int bit = 0; bit < kRowSortBits; ++bit) {
        const bool isSet = (digit >> bit & 1) != 0;
        const uint32_t set = __ballot_sync(kFullWarp, isSet);
        lanes &= isSet ? set : ~set;
    }
    return lanes;
}

/// One row. Its places are dealt out so that a warp has consecutive ones, 32 at
/// a time: a thread's item i is behind its item i - 1, and those of a warp are
/// before those of the next.
template <class Keys, int Threads, int Items>
class RowSort {
    using T = typename Keys::Type;
    static constexpr bool kIsNarrow = sizeof(T) == 2;
    static constexpr DataType kType = std::is_same_v<T, float>
            ? DataType::Float32
            : std::is_same_v<T, __half> ? DataType::Float16
                                        : DataType::BFloat16;
    using Held =
            std::conditional_t<kIsNarrow, WordItems<Items>, WideItems<Items>>;
    using Room = typename Held::Room;
    static constexpr int kWarps = Threads / kWarpSize;
    static_assert(Threads % kRowSortPairs == 0);
    /// Threads that share a pair of digits, each for four warps.
    static constexpr int kParts = Threads / kRowSortPairs;
    static constexpr int kPartWarps = kWarps / kParts;

   public:
    /// `memory`: rowSortSharedBytes.
    __device__ RowSort(const SelectParams& params, uint32_t* memory)
            : params_(params),
              count_(params.cols),
              size_((params.cols + Threads - 1) / Threads * Threads),
              counts_(memory),
              sums_(counts_ + kWarps * kRowSortStride),
              room_(sums_ + kRowSortSums, size_) {}

    __device__ __forceinline__ void run(uint32_t row) {
        uint32_t differ = loadKeys(row);
        differ = orOfBlock(differ);
        const int high = kWarpSize - __clz(int(differ));
        int low = differ == 0 ? 0 : __ffs(int(differ)) - 1;
        const bool isPart = uint64_t(params_.k) * kRowSortPart <= count_;
        if (low >= high) {
            storeInPlace();
        } else if (isPart && high - low > kRowSortBits) {
            pass<true>(high - kRowSortBits);
            loadItems();
        }
        for (; low < high; low += kRowSortBits) {
            pass<false>(low);
            if (low + kRowSortBits < high) {
                loadItems();
            }
        }
        write(row);
    }

   private:
    /// Items of each thread.
    __device__ __forceinline__ int used() const {
        return int((count_ + Threads - 1) / Threads);
    }
    __device__ __forceinline__ uint32_t place(int i) const {
        return (threadIdx.x / kWarpSize * used() + i) * kWarpSize +
                threadIdx.x % kWarpSize;
    }
    __device__ __forceinline__ uint16_t* countsOfWarp() const {
        return reinterpret_cast<uint16_t*>(
                counts_ + threadIdx.x / kWarpSize * kRowSortStride);
    }

    /// Bits that not all of the thread's keys have as the first key of the row
    /// has them.
    __device__ __forceinline__ uint32_t loadKeys(uint32_t row) {
        const Keys keys(params_, row);
        const int numUsed = used();
        const uint32_t first = narrow(keys.entryAt(0));
        uint32_t differ = 0;
        constexpr int kTogether = Items < 16 ? Items : 16;
        static_assert(Items % kTogether == 0);
#pragma unroll
        for (int base = 0; base < Items; base += kTogether) {
            uint32_t ordered[kTogether];
            keys.keysAt(
                    ordered,
                    [&](int i) { return place(base + i); },
                    [&](int i) {
                        return base + i < numUsed && place(base + i) < count_;
                    });
#pragma unroll
            for (int i = base; i < base + kTogether; ++i) {
                if (i < numUsed) {
                    // Equal to the last NaN, and behind it: the sort is stable.
                    uint32_t key = Held::kLastKey;
                    const uint32_t column = place(i);
                    if (column < count_) {
                        key = narrowKey(kType, ordered[i - base]);
                        differ |= key ^ first;
                    }
                    held_.set(i, key, column);
                }
            }
        }
        return differ;
    }

    __device__ __forceinline__ static uint32_t narrow(uint64_t entry) {
        return narrowKey(kType, entryKey(entry));
    }

    __device__ __forceinline__ uint32_t orOfBlock(uint32_t value) {
        value = __reduce_or_sync(kFullWarp, value);
        if (threadIdx.x % kWarpSize == 0) {
            sums_[threadIdx.x / kWarpSize] = value;
        }
        __syncthreads();
        const int lane = threadIdx.x % kWarpSize;
        return __reduce_or_sync(kFullWarp, lane < kWarps ? sums_[lane] : 0);
    }

    __device__ __forceinline__ void storeInPlace() {
        const int numUsed = used();
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i < numUsed) {
                held_.store(room_, place(i), i);
            }
        }
        __syncthreads();
    }

    /// What the pass before left, `count_` items.
    __device__ __forceinline__ void loadItems() {
        const int numUsed = used();
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i < numUsed) {
                const uint32_t from = place(i);
                if (from < count_) {
                    held_.load(room_, from, i);
                } else {
                    held_.set(i, Held::kLastKey, 0);
                }
            }
        }
    }

    /// Puts the items in the order of a digit, those of the same one in the
    /// order that they have. Drops: only the digits that the k least items have
    /// remain. Ends with the block in step.
    template <bool Drops>
    __device__ __forceinline__ void pass(int shift) {
        constexpr uint32_t kMask = (1u << kRowSortBits) - 1;
        const int numUsed = used();
        uint16_t* counts = countsOfWarp();
        for (int i = threadIdx.x % kWarpSize; i < kRowSortPairs;
             i += kWarpSize) {
            reinterpret_cast<uint32_t*>(counts)[i] = 0;
        }
        __syncwarp();
        uint32_t ranks[Items / 2]; // among those of the warp, in pairs
        const uint32_t before = (1u << threadIdx.x % kWarpSize) - 1;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i < numUsed) {
                const uint32_t digit = held_.key(i) >> shift & kMask;
                const uint32_t lanes = lanesOfDigit(digit);
                const uint32_t count = counts[digit];
                const uint32_t below = __popc(lanes & before);
                __syncwarp();
                if (below == 0) {
                    counts[digit] = uint16_t(count + __popc(lanes));
                }
                __syncwarp();
                const uint32_t rank = count + below;
                ranks[i / 2] = i % 2 == 0 ? rank : ranks[i / 2] | rank << 16;
            }
        }
        __syncthreads();
        startDigits<Drops>();
        __syncthreads();
        const uint32_t lastDigit = Drops ? sums_[kRowSortLast] : kMask;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i < numUsed) {
                const uint32_t digit = held_.key(i) >> shift & kMask;
                if (!Drops || digit <= lastDigit) {
                    const uint32_t to = counts[digit] +
                            (ranks[i / 2] >> 16 * (i % 2) & 0xFFFFu);
                    held_.store(room_, to, i);
                }
            }
        }
        if (Drops) {
            count_ = min(count_, sums_[kRowSortKept]);
        }
        __syncthreads();
    }

    /// Counts of digits, by warp, to the places where these begin. Both digits
    /// of a pair at once: no sum has more than 16 bits.
    template <bool Drops>
    __device__ __forceinline__ void startDigits() {
        const uint32_t pair = threadIdx.x / kParts;
        const uint32_t part = threadIdx.x % kParts;
        uint32_t* mine = counts_ + part * kPartWarps * kRowSortStride + pair;
        uint32_t sum = 0;
#pragma unroll
        for (int w = 0; w < kPartWarps; ++w) {
            sum += mine[w * kRowSortStride];
        }
        const uint32_t upTo = sumUpToLane<kParts>(sum);
        const uint32_t total = __shfl_sync(kFullWarp, upTo, kParts - 1, kParts);
        const uint32_t low = total & 0xFFFFu;
        const uint32_t both = low + (total >> 16);
        uint32_t first =
                sumOfThreadsBefore<Threads>(part == 0 ? both : 0, sums_);
        first -= part == 0 ? 0 : both;
        if (Drops && part == 0) {
            const uint32_t last = uint32_t(params_.k) - 1;
            if (first <= last && last < first + both) {
                const bool isLow = last < first + low;
                sums_[kRowSortLast] = 2 * pair + (isLow ? 0 : 1);
                sums_[kRowSortKept] = first + (isLow ? low : both);
            }
        }
        uint32_t next = (first | (first + low) << 16) + (upTo - sum);
#pragma unroll
        for (int w = 0; w < kPartWarps; ++w) {
            const uint32_t count = mine[w * kRowSortStride];
            mine[w * kRowSortStride] = next;
            next += count;
        }
    }

    __device__ __forceinline__ void write(uint32_t row) {
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < uint32_t(params_.k); i += Threads) {
            uint64_t entry = kNoEntry;
            if (i < count_) {
                entry = makeEntry(
                        widenKey(kType, room_.key(i)), room_.column(i));
            }
            writeResult<T>(params_, row, int(i), entry);
        }
    }

    const SelectParams& params_;
    uint32_t count_;      // items that are left; k of the row's at least
    const uint32_t size_; // room for them
    uint32_t* counts_;    // [warps, kRowSortStride] of pairs of 16 bits
    uint32_t* sums_;      // [kRowSortSums]
    Room room_;
    Held held_;
};

/// One block a row, from params.firstRow on.
template <class Keys, int Threads, int Items>
__global__ void __launch_bounds__(Threads, rowSortBlocks(Threads, Items))
        rowSortKernel(const __grid_constant__ SelectParams params) {
    extern __shared__ __align__(16) uint32_t rowSortMemory[];
    RowSort<Keys, Threads, Items>(params, rowSortMemory)
            .run(params.firstRow + blockIdx.x);
}

} // namespace faiss_bits
