/// The lowest of many ids, by their digits.
#pragma once

#include <cstdint>

#include "kernels/common/Types.h"

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
        if (threadIdx.x == 0) {
            shared.prefix = 0;
            shared.wanted = count;
            shared.numKept = 0;
        }
        for (int shift = kIdBits - kDigitBits; shift >= 0;
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
};

} // namespace faiss_bits
