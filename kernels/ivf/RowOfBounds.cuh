/// A row of bounds in the registers of a block: a key that k of them are no
/// greater than, and what is up to a key.
///
/// Bound by: the read of the bounds, once.
#pragma once

#include "kernels/device/LaneSums.cuh"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfScratch.h"

namespace faiss_bits {

// Of such a block.
constexpr int kBoundThreads = 128;
constexpr int kBoundWarps = kBoundThreads / kWarpSize;
/// Of keys that are collected. No more are where they are distinct; else the
/// k-th is not looked for among them.
constexpr int kBoundRoom = 512;
/// Parts of a row, each with a least key.
constexpr int kBoundParts = 2 * kBoundThreads;
static_assert(
        kIvfMostChoiceK <= kBoundParts / 2 && kIvfMostChosen <= kBoundRoom);
/// The greatest key of a bound; NaN comes after it.
constexpr uint32_t kMostBoundKey = 0xFF800000u;  // of infinity
constexpr uint32_t kLeastBoundKey = 0x007FFFFFu; // of minus infinity

/// A key that k of the lanes' are no greater than, and k + spare at most where
/// that can be; kMostBoundKey if there are fewer than k. All lanes of the warp
/// call it; what is not there is greater than kMostBoundKey.
template <int kCount>
__device__ __forceinline__ uint32_t
keyOfRank(const uint32_t (&keys)[kCount], uint32_t k, uint32_t spare) {
    const auto numUpTo = [&](uint32_t key) {
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            count += keys[i] <= key ? 1 : 0;
        }
        return __reduce_add_sync(kFullWarp, count);
    };
    uint32_t least = ~0u;
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        least = min(least, keys[i]);
        most = max(most, keys[i] <= kMostBoundKey ? keys[i] : 0);
    }
    uint32_t low = __reduce_min_sync(kFullWarp, least);
    uint32_t high = __reduce_max_sync(kFullWarp, most);
    if (numUpTo(kMostBoundKey) < k) {
        return kMostBoundKey;
    }
    // k are no greater than `high`.
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint32_t count = numUpTo(middle);
        if (count < k) {
            low = middle + 1;
            continue;
        }
        high = middle;
        if (count <= k + spare) {
            break;
        }
    }
    return high;
}

/// In shared memory.
struct BoundStorage {
    uint32_t keys[kBoundRoom];
    int32_t columns[kBoundRoom];
    uint32_t least[kBoundParts];
    uint32_t sums[kBoundWarps];
    uint32_t limit;
    uint32_t count;
};

/// A block's row: kValues of its bounds a thread.
template <int kValues>
struct RowOfBounds {
    static constexpr int kMasks = (kValues + 31) / 32;

    BoundStorage& shared;
    const float* row;
    uint32_t columns;
    float bounds[kValues];

    __device__ __forceinline__
    RowOfBounds(BoundStorage& storage, const float* of, uint32_t count)
            : shared(storage), row(of), columns(count) {
        static_assert(kIvfRowStep % 4 == 0); // rows begin on sixteen bytes
#pragma unroll
        for (int i = 0; i < kValues; i += 4) {
            const uint32_t column = columnOf(i);
            float4 four = {NAN, NAN, NAN, NAN};
            if (column < columns) {
                four = *reinterpret_cast<const float4*>(row + column);
            }
            bounds[i] = four.x;
            bounds[i + 1] = four.y;
            bounds[i + 2] = four.z;
            bounds[i + 3] = four.w;
        }
        if (columns % 4 != 0) { // what is behind the last may be anything
#pragma unroll
            for (int i = 0; i < kValues; ++i) {
                bounds[i] = columnOf(i) < columns ? bounds[i] : NAN;
            }
        }
    }

    /// Of bound i of this thread.
    __device__ __forceinline__ static uint32_t columnOf(int i) {
        return i / 4 * (4 * kBoundThreads) + 4 * threadIdx.x + i % 4;
    }

    /// A key that k of the row's are no greater than, and about 1.3 k at most
    /// where they are distinct and in any order.
    __device__ __forceinline__ uint32_t firstLimit(uint32_t k) const {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            float least = bounds[part];
#pragma unroll
            for (int i = 2 + part; i < kValues; i += 2) {
                least = fminf(least, bounds[i]); // NaN is no bound
            }
            shared.least[part * kBoundThreads + threadIdx.x] =
                    orderedKey(least);
        }
        __syncthreads();
        if (threadIdx.x < kWarpSize) {
            uint32_t some[kBoundParts / kWarpSize];
#pragma unroll
            for (int i = 0; i < kBoundParts / kWarpSize; ++i) {
                some[i] = shared.least[i * kWarpSize + threadIdx.x];
            }
            const uint32_t limit = keyOfRank(some, k, k / 16 + 2);
            if (threadIdx.x == 0) {
                shared.limit = limit;
            }
        }
        __syncthreads();
        return shared.limit;
    }

    /// Collects what is no greater than `limit`, in any order, as far as there
    /// is room. Returns how many they are. All threads call it, and none reads
    /// what was collected before.
    __device__ __forceinline__ uint32_t collect(uint32_t limit) const {
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        const float most = keyValue(limit);
        uint32_t masks[kMasks] = {};
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            masks[i / 32] |= bounds[i] <= most ? 1u << i % 32 : 0;
        }
        uint32_t count = 0;
#pragma unroll
        for (int m = 0; m < kMasks; ++m) {
            count += __popc(masks[m]);
        }
        const int lane = threadIdx.x % kWarpSize;
        const uint32_t until = sumUpToLane(count);
        uint32_t first = 0;
        if (lane == kWarpSize - 1 && until > 0) {
            first = atomicAdd(&shared.count, until);
        }
        uint32_t at =
                __shfl_sync(kFullWarp, first, kWarpSize - 1) + until - count;
#pragma unroll
        for (int m = 0; m < kMasks; ++m) {
            for (uint32_t mask = masks[m]; mask && at < kBoundRoom;
                 mask &= mask - 1) {
                const uint32_t column = columnOf(m * 32 + __ffs(mask) - 1);
                shared.keys[at] = orderedKey(row[column]);
                shared.columns[at] = int32_t(column);
                ++at;
            }
        }
        __syncthreads();
        count = shared.count;
        __syncthreads();
        return count;
    }

    /// Of `count` keys that were collected up to `limit`: a key that k of the
    /// row's are no greater than, and hardly more.
    __device__ __forceinline__ uint32_t
    nextLimit(uint32_t limit, uint32_t count, uint32_t k) const {
        if (count > kBoundRoom) {
            return limit;
        }
        if (threadIdx.x < kWarpSize) {
            const uint32_t next = count <= kBoundRoom / 2
                    ? keyOfCollected<kBoundRoom / 2>(count, k)
                    : keyOfCollected<kBoundRoom>(count, k);
            if (threadIdx.x == 0) {
                shared.limit = next;
            }
        }
        __syncthreads();
        return shared.limit;
    }

    template <int kMost>
    __device__ __forceinline__ uint32_t
    keyOfCollected(uint32_t count, uint32_t k) const {
        uint32_t some[kMost / kWarpSize];
#pragma unroll
        for (int i = 0; i < kMost / kWarpSize; ++i) {
            const uint32_t at = i * kWarpSize + threadIdx.x;
            some[i] = at < count ? shared.keys[at] : ~0u;
        }
        return keyOfRank(some, k, k / 32 + 1);
    }

    /// Of the row's, how many are no greater. All threads call it.
    __device__ __forceinline__ uint32_t numUpTo(uint32_t key) const {
        const float most = keyValue(key);
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            count += bounds[i] <= most ? 1 : 0;
        }
        count = __reduce_add_sync(kFullWarp, count);
        if (threadIdx.x % kWarpSize == 0) {
            shared.sums[threadIdx.x / kWarpSize] = count;
        }
        __syncthreads();
        const uint32_t sum = __reduce_add_sync(
                kFullWarp, ofWarps<kBoundWarps>(shared.sums, 0u));
        __syncthreads();
        return sum;
    }

    /// The greatest key that no more than `most` of the row's are up to, and
    /// the least one behind it, which is there: more than `most` are up to
    /// kMostBoundKey. All threads call it.
    __device__ __forceinline__ uint32_t
    cutAt(uint32_t most, uint32_t& behind) const {
        // More than `most` are up to `high`, and fewer keys than `low` are not.
        uint32_t low = kLeastBoundKey;
        uint32_t high = kMostBoundKey;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (numUpTo(middle) > most) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        behind = high;
        return high - 1;
    }
};

} // namespace faiss_bits
