/// Bitonic sort and merge of one array that a whole block holds in registers,
/// a few consecutive items a thread (Hanak 2023, 4.1.1 to 4.1.4).
///
/// Strides inside a thread cost nothing but compares, strides inside a warp
/// are shuffles, and only the few larger ones go through shared memory, two
/// items of every thread at a time, so that the scratch is 2 items a thread
/// whatever the array's length (4.1.2). Where the thesis reverses every second
/// run before it merges, runs here are sorted in alternating directions: the
/// same network without the reversals.
#pragma once

#include <cstdint>

namespace faiss_bits {

constexpr int kWarpSize = 32;
constexpr unsigned kFullWarp = 0xFFFFFFFFu;

/// Array item of (thread, i) is number thread * Items + i.
/// `Less` is a strict total order on uint64_t.
template <int Threads, int Items>
struct BlockBitonic {
    static constexpr int kSize = Threads * Items;
    static constexpr int kRows = Items < 2 ? Items : 2;
    static_assert((Threads & (Threads - 1)) == 0 && Threads >= kWarpSize);
    static_assert((Items & (Items - 1)) == 0 && Items >= 1);

    struct SharedStorage {
        uint64_t rows[kRows * Threads];
    };

    SharedStorage& shared;

    /// Sorts the array. Every thread of the block takes part; the storage is
    /// free for reuse by the same threads' own slots on return.
    template <class Less>
    __device__ __forceinline__ void sort(
            uint64_t (&items)[Items],
            bool ascending,
            Less less) {
#pragma unroll
        for (int size = 2; size <= kSize; size *= 2) {
            mergeRuns(items, size, ascending, less);
        }
    }

    /// Sorts a bitonic array.
    template <class Less>
    __device__ __forceinline__ void sortBitonic(
            uint64_t (&items)[Items],
            bool ascending,
            Less less) {
        mergeRuns(items, kSize, ascending, less);
    }

   private:
    /// Turns bitonic runs of `size` items into sorted runs, ascending and
    /// descending in turn, the last size as asked.
    template <class Less>
    __device__ __forceinline__ void mergeRuns(
            uint64_t (&items)[Items],
            int size,
            bool ascending,
            Less less) {
        if (size > Items * kWarpSize) {
            mergeThroughShared(items, size, ascending, less);
        }
#pragma unroll
        for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
            if (lanes * Items < size) {
                exchangeLanes(items, size, lanes, ascending, less);
            }
        }
#pragma unroll
        for (int stride = Items / 2; stride >= 1; stride /= 2) {
            if (stride < size) {
                exchangeLocal(items, size, stride, ascending, less);
            }
        }
    }

    /// Direction of the run that item `index` is in.
    __device__ __forceinline__ static bool up(
            int index,
            int size,
            bool ascending) {
        return ((index & size & (kSize - 1)) == 0) == ascending;
    }

    template <class Less>
    __device__ __forceinline__ void mergeThroughShared(
            uint64_t (&items)[Items],
            int size,
            bool ascending,
            Less less) {
        const int thread = threadIdx.x;
#pragma unroll
        for (int i = 0; i < Items; i += kRows) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                shared.rows[r * Threads + thread] = items[i + r];
            }
            __syncthreads();
            for (int stride = size / 2 / Items; stride >= kWarpSize;
                 stride /= 2) {
                // The thread is the number of a compare-and-swap: insert a
                // zero at the stride's bit to get its first operand.
                if (kRows == 2 || thread < Threads / 2) {
                    const int left = ((thread & ~(stride - 1)) << 1) |
                            (thread & (stride - 1));
                    const int right = left + stride;
                    const uint64_t a = shared.rows[left];
                    const uint64_t b = shared.rows[right];
                    const int index = (left & (Threads - 1)) * Items;
                    if (less(b, a) == up(index, size, ascending)) {
                        shared.rows[left] = b;
                        shared.rows[right] = a;
                    }
                }
                __syncthreads();
            }
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                items[i + r] = shared.rows[r * Threads + thread];
            }
        }
    }

    template <class Less>
    __device__ __forceinline__ void exchangeLanes(
            uint64_t (&items)[Items],
            int size,
            int lanes,
            bool ascending,
            Less less) {
        const int thread = threadIdx.x;
        const bool first = (thread & lanes) == 0;
        const bool wantsLess = first == up(thread * Items, size, ascending);
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const uint64_t other = __shfl_xor_sync(kFullWarp, items[i], lanes);
            if (less(other, items[i]) == wantsLess) {
                items[i] = other;
            }
        }
    }

    template <class Less>
    __device__ __forceinline__ void exchangeLocal(
            uint64_t (&items)[Items],
            int size,
            int stride,
            bool ascending,
            Less less) {
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if ((i & stride) == 0) {
                const bool isUp = up(threadIdx.x * Items + i, size, ascending);
                const uint64_t a = items[i];
                const uint64_t b = items[i + stride];
                const bool swap = less(b, a) == isUp;
                items[i] = swap ? b : a;
                items[i + stride] = swap ? a : b;
            }
        }
    }
};

} // namespace faiss_bits
