/// What a block of FewOfBlock.cuh shares, and what it does where a limit lets
/// too many keys through, or NaN is among the best.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/device/Narrow.cuh"
#include "kernels/select/short_rows/FewOfBlockLaunch.h"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

template <int kThreads>
struct FewOfBlockShared {
    using Narrow = BlockNarrow<kThreads>;
    /// Survivors that there is room for.
    static constexpr uint32_t kRoom = kFewOfBlockRoom;
    /// Of 32 keys, in a row of the most items.
    static constexpr uint32_t kMostLines = 320;

    union {
        uint32_t numbers[kThreads]; // the threads' least keys
        uint32_t lines[kMostLines]; // threads whose first key is there
        Narrow::SharedStorage narrow;
    };
    union {
        struct {
            alignas(16) float keys[kRoom];
            alignas(16) uint32_t columns[kRoom];
        };
        uint64_t entries[kRoom];
    };
    uint32_t limit;
    uint32_t numTied; // numbers that equal the limit
    uint32_t count;
    uint32_t rankSum;
};

/// A bit for each of a thread's keys.
template <int kItems>
struct FewOfBlockBits {
    uint32_t words[(kItems + 31) / 32] = {};

    __device__ __forceinline__ uint32_t count() const {
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t word : words) {
            sum += __popc(word);
        }
        return sum;
    }
    /// The number of the first; there is one.
    __device__ __forceinline__ uint32_t first() const {
        uint32_t place = 0;
#pragma unroll
        for (int w = (kItems + 31) / 32 - 1; w >= 0; --w) {
            place = words[w] != 0 ? w * 32 + __ffs(words[w]) - 1 : place;
        }
        return place;
    }
    /// Of the first so many keys.
    __device__ __forceinline__ FewOfBlockBits upTo(uint32_t keys) const {
        FewOfBlockBits some;
#pragma unroll
        for (int w = 0; w < (kItems + 31) / 32; ++w) {
            const int here = min(max(int(keys) - w * 32, 0), 32);
            some.words[w] = words[w] & uint32_t((uint64_t(1) << here) - 1);
        }
        return some;
    }
    __device__ __forceinline__ FewOfBlockBits
    with(const FewOfBlockBits& other) const {
        FewOfBlockBits both;
#pragma unroll
        for (int w = 0; w < (kItems + 31) / 32; ++w) {
            both.words[w] = words[w] | other.words[w];
        }
        return both;
    }
};

template <int kThreads>
struct FewOfBlockFull {
    using Shared = FewOfBlockShared<kThreads>;
    static constexpr uint32_t kRoom = Shared::kRoom;
    using Narrow = typename Shared::Narrow;

    __device__ __forceinline__ static const float* keysOf(
            const SelectParams& params,
            uint32_t row) {
        return static_cast<const float*>(params.keys) +
                params.rowStride * int64_t(row);
    }

    /// Where a limit lets too many through, or NaN is among the best: keys are
    /// read again, by their entries. Out of line and static, so that it costs
    /// the others no registers.
    __device__ static __noinline__ void selectByEntries(
            Shared& shared,
            const SelectParams& params,
            uint32_t row) {
        const float* keys = keysOf(params, row);
        const auto entryOf = [&](uint32_t c) {
            const uint32_t bits = __float_as_uint(__ldg(keys + c));
            return makeEntry(
                    orderedKey(__uint_as_float(bits ^ params.signMask)), c);
        };
        __syncthreads();
        const uint64_t limit = Narrow{shared.narrow}.limit(
                [&](auto take) {
#pragma unroll 4
                    for (uint32_t c = threadIdx.x; c < params.cols;
                         c += kThreads) {
                        take(entryOf(c));
                    }
                },
                uint32_t(params.k),
                kRoom);
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        for (uint32_t c = threadIdx.x; c < params.cols; c += kThreads) {
            const uint64_t e = entryOf(c);
            if (e <= limit) {
                shared.entries[atomicAdd(&shared.count, 1)] = e;
            }
        }
        __syncthreads();
        const uint32_t count = shared.count;
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const uint64_t mine = shared.entries[i];
            int rank = 0;
            for (uint32_t j = 0; j < count; ++j) {
                rank += shared.entries[j] < mine ? 1 : 0;
            }
            if (rank < params.k) {
                writeResult<float>(params, row, rank, mine);
            }
        }
    }
};

} // namespace faiss_bits
