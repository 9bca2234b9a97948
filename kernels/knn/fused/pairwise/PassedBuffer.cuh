/// What passed, collected by a block in shared memory: the atomics of the lists
/// in global memory take long, and a warp that waits for one of them computes
/// nothing. The block hands on many at a time.
#pragma once

#include "kernels/knn/fused/pairwise/AppendPassed.cuh"

namespace faiss_bits {

template <int Threads>
struct PassedBuffer {
    static constexpr unsigned kRoom = 512;
    static constexpr uint32_t kNothing = ~uint32_t(0);

    unsigned count;
    uint32_t vectors[kRoom];
    uint32_t queries[kRoom];

    /// By all threads, and a barrier before the first push.
    __device__ __forceinline__ void clear() {
        if (threadIdx.x == 0) {
            count = 0;
        }
    }

    /// queryOf(i) with vector first + j, for every bit 4 i + j of `passed`.
    /// Where there is no room they go to the lists at once, those of a query
    /// together. Returns the bits of queries whose lists are found to have
    /// more than they have room for: they are searched again all the same.
    template <class QueryOf>
    __device__ __forceinline__ uint32_t
    push(const FusedPairwiseParams& params,
         uint32_t passed,
         idx_t first,
         QueryOf queryOf) {
        constexpr uint32_t kOfQuery = 0xF;
        const unsigned wanted = __popc(passed);
        unsigned place = atomicAdd(&count, wanted);
        if (place + wanted <= kRoom) {
            for (; passed; passed &= passed - 1) {
                const int bit = __ffs(int(passed)) - 1;
                vectors[place] = uint32_t(first + bit % 4);
                queries[place++] = uint32_t(queryOf(bit / 4));
            }
            return 0;
        }
        while (place < kRoom) {
            vectors[place++] = kNothing;
        }
        uint32_t full = 0;
        while (passed) {
            const int bits = (__ffs(int(passed)) - 1) / 4 * 4;
            if (append(params,
                       queryOf(bits / 4),
                       passed >> bits & kOfQuery,
                       first)) {
                full |= kOfQuery << bits;
            }
            passed &= ~(kOfQuery << bits);
        }
        return full;
    }

    /// By all threads, with barriers before and behind it; the buffer is empty
    /// then.
    __device__ __forceinline__ void handOn(const FusedPairwiseParams& params) {
        const unsigned filled = count < kRoom ? count : kRoom;
        for (unsigned i = threadIdx.x; i < filled; i += Threads) {
            const idx_t vector = vectors[i];
            if (vectors[i] != kNothing) {
                appendMask(params, queries[i], 1, [=](int) { return vector; });
            }
        }
        __syncthreads();
        clear();
    }

   private:
    /// As appendMask(), of the vectors first + j. Returns whether the list is
    /// known to have no room for more.
    __device__ __forceinline__ static bool append(
            const FusedPairwiseParams& params,
            idx_t query,
            uint32_t mask,
            idx_t first) {
        const auto vectorOf = [=](int j) { return first + j; };
        if (params.passed.bits) {
            appendMask(params, query, mask, vectorOf);
            return false;
        }
        if (query >= params.pairs.queries.count) {
            return true;
        }
        for (uint32_t left = mask; left; left &= left - 1) {
            const int j = __ffs(int(left)) - 1;
            mask &= isAllowed(params, vectorOf(j)) ? ~0u : ~(1u << j);
        }
        if (!mask) {
            return false;
        }
        const int count = __popc(mask);
        uint32_t place = takeRoom(params, query, count);
        const bool isFull = place + count > params.passed.capacity;
        for (; mask; mask &= mask - 1) {
            storePassed(params, query, place++, vectorOf(__ffs(int(mask)) - 1));
        }
        return isFull;
    }
};

} // namespace faiss_bits
