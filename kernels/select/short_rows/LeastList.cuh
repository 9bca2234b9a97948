/// The few least numbers of a lane, and of some lanes together, in order: lists
/// in registers that networks of minima and maxima sort and merge.
#pragma once

#include <climits>

#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// kBest numbers of a list, a power of two.
template <int kBest>
struct LeastList {
    static_assert((kBest & (kBest - 1)) == 0);
    /// Behind every number. What is compared with it costs nothing, as the
    /// compiler knows the result.
    static constexpr int32_t kNone = INT_MAX;

    /// Ascending; kNone where there are fewer. By lists that are merged: of 16
    /// numbers the 8 least take 108 minima and maxima so, and 184 where each
    /// number is put into the list.
    template <int kCount>
    __device__ __forceinline__ static void ofLane(
            const int32_t (&numbers)[kCount],
            int32_t (&best)[kBest]) {
#pragma unroll
        for (int from = 0; from < kCount; from += kBest) {
            int32_t some[kBest];
#pragma unroll
            for (int j = 0; j < kBest; ++j) {
                const int i = from + j;
                some[j] = i < kCount ? numbers[i < kCount ? i : 0] : kNone;
            }
            sort(some);
            if (from > 0) {
                merge(best, some);
                continue;
            }
#pragma unroll
            for (int j = 0; j < kBest; ++j) {
                best[j] = some[j];
            }
        }
    }

    /// Of the lists of kLanes lanes side by side, in each of them. All lanes of
    /// the warp call it.
    template <int kLanes>
    __device__ __forceinline__ static void ofLanes(int32_t (&best)[kBest]) {
#pragma unroll
        for (int distance = 1; distance < kLanes; distance *= 2) {
            int32_t other[kBest];
#pragma unroll
            for (int j = 0; j < kBest; ++j) {
                other[j] = __shfl_xor_sync(kFullWarp, best[j], distance);
            }
            merge(best, other);
        }
    }

    /// One more number.
    __device__ __forceinline__ static void add(
            int32_t (&best)[kBest],
            int32_t number) {
#pragma unroll
        for (int j = kBest - 1; j > 0; --j) {
            best[j] = min(best[j], max(best[j - 1], number));
        }
        best[0] = min(best[0], number);
    }

    /// The least of two lists, in a bitonic order, which is then sorted.
    __device__ __forceinline__ static void merge(
            int32_t (&best)[kBest],
            const int32_t (&other)[kBest]) {
#pragma unroll
        for (int j = 0; j < kBest; ++j) {
            best[j] = min(best[j], other[kBest - 1 - j]);
        }
#pragma unroll
        for (int stride = kBest / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (int j = 0; j < kBest; ++j) {
                if ((j & stride) == 0) {
                    order(best[j], best[j + stride]);
                }
            }
        }
    }

   private:
    __device__ __forceinline__ static void order(int32_t& a, int32_t& b) {
        const int32_t least = min(a, b);
        b = max(a, b);
        a = least;
    }

    /// Batcher's merge sort (1968) of odd and even places.
    __device__ __forceinline__ static void sort(int32_t (&numbers)[kBest]) {
#pragma unroll
        for (int run = 1; run < kBest; run *= 2) {
#pragma unroll
            for (int step = run; step >= 1; step /= 2) {
#pragma unroll
                for (int i = 0; i < kBest; ++i) {
                    const int first = step < run ? step : 0;
                    if (i >= first && (i - first) / step % 2 == 0 &&
                        i + step < kBest &&
                        i / (2 * run) == (i + step) / (2 * run)) {
                        order(numbers[i], numbers[i + step]);
                    }
                }
            }
        }
    }
};

} // namespace faiss_bits
