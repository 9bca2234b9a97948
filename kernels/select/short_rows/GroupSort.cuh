/// A bitonic sort of numbers in the registers of some neighbouring lanes.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Sorts the numbers of kLanes lanes, kItems each, ascending: number
/// lane * kItems + i of the result is item i of a lane. Of 64 bits, entries, or
/// of 32. All lanes of the warp call it, each group for itself.
template <int kLanes, int kItems>
struct GroupSort {
    /// Loops over few entries are short enough to be written out.
    static constexpr int kUnroll = kItems <= 4 ? kWarpSize : 1;

    template <class Number>
    __device__ __forceinline__ static void sort(Number (&numbers)[kItems]) {
        sortUnrolled<kUnroll>(numbers);
    }

    /// The same in little code, for what is seldom done.
    template <class Number>
    __device__ __forceinline__ static void sortAgain(
            Number (&numbers)[kItems]) {
        sortUnrolled<1>(numbers);
    }

   private:
    template <int kTimes, class Number>
    __device__ __forceinline__ static void sortUnrolled(
            Number (&numbers)[kItems]) {
        const int lane = threadIdx.x % kLanes;
        // Runs inside a lane, in alternating directions.
#pragma unroll
        for (int size = 2; size < kItems; size *= 2) {
#pragma unroll
            for (int stride = size / 2; stride >= 1; stride /= 2) {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    if ((i & stride) == 0) {
                        order(numbers[i], numbers[i + stride], (i & size) == 0);
                    }
                }
            }
        }
        // Runs of `lanes` lanes.
#pragma unroll kTimes
        for (int lanes = 1; lanes <= kLanes; lanes *= 2) {
            const bool ascends = (lane & lanes) == 0;
#pragma unroll kTimes
            for (int distance = lanes / 2; distance >= 1; distance /= 2) {
                const bool keepsLess = ((lane & distance) == 0) == ascends;
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    const Number other =
                            __shfl_xor_sync(kFullWarp, numbers[i], distance);
                    numbers[i] = lessOrNot(numbers[i], other, keepsLess);
                }
            }
#pragma unroll
            for (int stride = kItems / 2; stride >= 1; stride /= 2) {
#pragma unroll
                for (int i = 0; i < kItems; ++i) {
                    if ((i & stride) == 0) {
                        order(numbers[i], numbers[i + stride], ascends);
                    }
                }
            }
        }
    }

    __device__ __forceinline__ static uint64_t lessOrNot(
            uint64_t a,
            uint64_t b,
            bool isLess) {
        return (b < a) == isLess ? b : a;
    }
    __device__ __forceinline__ static uint32_t lessOrNot(
            uint32_t a,
            uint32_t b,
            bool isLess) {
        return isLess ? min(a, b) : max(a, b);
    }

    __device__ __forceinline__ static void order(
            uint64_t& a,
            uint64_t& b,
            bool ascends) {
        const bool swaps = (b < a) == ascends;
        const uint64_t first = swaps ? b : a;
        b = swaps ? a : b;
        a = first;
    }
    __device__ __forceinline__ static void order(
            uint32_t& a,
            uint32_t& b,
            bool ascends) {
        const uint32_t first = lessOrNot(a, b, ascends);
        b = lessOrNot(a, b, !ascends);
        a = first;
    }
};

} // namespace faiss_bits
