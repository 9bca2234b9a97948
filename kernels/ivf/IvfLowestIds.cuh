/// The lowest of many ids, by their digits.
#pragma once

#include <cstdint>

#include "kernels/common/Types.h"
#include "kernels/device/WarpReduce.cuh"

namespace faiss_bits {

/// Unsigned order is that of the ids.
__device__ __forceinline__ uint64_t orderedId(int64_t id) {
    return uint64_t(id) ^ uint64_t(1) << 63;
}
__device__ __forceinline__ int64_t idOfOrder(uint64_t ordered) {
    return int64_t(ordered ^ uint64_t(1) << 63);
}

template <int kThreads>
struct IvfLowestIds {
    static constexpr int kDigitBits = 8;
    static constexpr int kDigits = 1 << kDigitBits;
    static constexpr int kIdBits = 64;

    struct SharedStorage {
        uint32_t histogram[kDigits];
        unsigned long long least; // of all ids
        unsigned long long most;
        uint64_t prefix;
        uint32_t wanted;
        uint32_t numKept;
    };

    SharedStorage& shared;

    /// Calls put(i, id), i = 0, ..., count - 1, with the lowest ids in any
    /// order; forEach(take) calls take(orderedId(id)) for those of this thread,
    /// `count` or more of all together, and ids may be there more than once.
    /// The block calls it, and ends in step.
    template <class ForEach, class Put>
    __device__ __forceinline__ void find(
            ForEach forEach,
            uint32_t count,
            Put put) {
        // Digits that all have in common need no look.
        const int digits = findBounds(forEach);
        if (threadIdx.x == 0) {
            shared.prefix = digits * kDigitBits < kIdBits
                    ? shared.least >> digits * kDigitBits << digits * kDigitBits
                    : 0;
            shared.wanted = count;
            shared.numKept = 0;
        }
        __syncthreads();
        for (int shift = (digits - 1) * kDigitBits; shift >= 0;
             shift -= kDigitBits) {
            for (int i = threadIdx.x; i < kDigits; i += kThreads) {
                shared.histogram[i] = 0;
            }
            __syncthreads();
            const uint64_t above = shift + kDigitBits == kIdBits
                    ? 0
                    : ~uint64_t(0) << (shift + kDigitBits);
            forEach([&](uint64_t id) {
                if ((id & above) == shared.prefix) {
                    atomicAdd(
                            &shared.histogram[id >> shift & (kDigits - 1)], 1u);
                }
            });
            __syncthreads();
            if (threadIdx.x == 0) {
                uint32_t digit = 0;
                while (shared.histogram[digit] < shared.wanted) {
                    shared.wanted -= shared.histogram[digit];
                    ++digit;
                }
                shared.prefix |= uint64_t(digit) << shift;
            }
            __syncthreads();
        }
        // All below the last one, and of that as many as are wanted.
        const uint64_t last = shared.prefix;
        const uint32_t ofLast = shared.wanted;
        forEach([&](uint64_t id) {
            if (id < last) {
                put(atomicAdd(&shared.numKept, 1u), idOfOrder(id));
            }
        });
        for (uint32_t i = threadIdx.x; i < ofLast; i += kThreads) {
            put(count - 1 - i, idOfOrder(last));
        }
        __syncthreads();
    }

   private:
    /// The least and the greatest id; returns in how many of the low digits
    /// they differ.
    template <class ForEach>
    __device__ __forceinline__ int findBounds(ForEach forEach) {
        if (threadIdx.x == 0) {
            shared.least = ~0ull;
            shared.most = 0;
        }
        uint64_t least = ~uint64_t(0);
        uint64_t most = 0;
        forEach([&](uint64_t id) {
            least = min(least, id);
            most = max(most, id);
        });
#pragma unroll
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
            least = min(least, __shfl_xor_sync(kFullWarp, least, distance));
            most = max(most, __shfl_xor_sync(kFullWarp, most, distance));
        }
        __syncthreads();
        if (threadIdx.x % kWarpSize == 0) {
            atomicMin(&shared.least, least);
            atomicMax(&shared.most, most);
        }
        __syncthreads();
        const uint64_t other = shared.least ^ shared.most;
        return other == 0
                ? 0
                : (kIdBits - __clzll(int64_t(other)) + kDigitBits - 1) /
                        kDigitBits;
    }
};

} // namespace faiss_bits
