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
    /// Where there is no room they go to the lists at once.
    template <class QueryOf>
    __device__ __forceinline__ void push(
            const FusedPairwiseParams& params,
            uint32_t passed,
            idx_t first,
            QueryOf queryOf) {
        const unsigned wanted = __popc(passed);
        unsigned place = atomicAdd(&count, wanted);
        const bool fits = place + wanted <= kRoom;
        if (!fits) {
            while (place < kRoom) {
                vectors[place++] = kNothing;
            }
        }
        for (; passed; passed &= passed - 1) {
            const int bit = __ffs(int(passed)) - 1;
            const idx_t query = queryOf(bit / 4);
            const idx_t vector = first + bit % 4;
            if (fits) {
                vectors[place] = uint32_t(vector);
                queries[place++] = uint32_t(query);
            } else {
                appendMask(params, query, 1, [=](int) { return vector; });
            }
        }
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
};

} // namespace faiss_bits
