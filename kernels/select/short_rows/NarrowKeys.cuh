/// Keys of 16 bits that are compared two at a time, as numbers of their type,
/// and their order as integers.
#pragma once

#include "kernels/select/short_rows/NarrowPair.cuh"

namespace faiss_bits {

template <class T>
struct NarrowKeys {
    using Pair = NarrowPair<T>;
    using Two = typename Pair::Type;
    static constexpr uint32_t kNan = 0xFFFFu; // its key, and infinity's
    static constexpr uint32_t kInfinity =
            Pair::kType == DataType::Float16 ? 0xFC00u : 0xFF80u;

    __device__ __forceinline__ static Two asTwo(uint32_t bits) {
        return reinterpret_cast<const Two&>(bits);
    }
    __device__ __forceinline__ static uint32_t bitsOf(Two two) {
        return reinterpret_cast<const uint32_t&>(two);
    }

    /// As the caller has them, to "smallest first": +0 for -0.
    __device__ __forceinline__ static Two inOrder(uint32_t bits, Two sign) {
        return __hfma2(asTwo(bits), sign, Pair::both(0.0f));
    }

    /// The key, an integer, of the lower half.
    __device__ __forceinline__ static uint32_t keyOf(uint32_t bits) {
        bits &= 0xFFFFu;
        return bits & 0x8000u ? bits ^ 0xFFFFu : bits | 0x8000u;
    }
    /// Of one key as the caller has it.
    __device__ __forceinline__ static uint32_t numberOf(
            uint32_t bits,
            Two sign) {
        return (Pair::inOrder(sign, bits) ^ 0x8000u) & 0xFFFFu;
    }
    /// A value of both halves from its key. No key is that of -0, which is
    /// equal to 0: what is below 0 takes its place.
    __device__ __forceinline__ static Two both(uint32_t key) {
        const uint32_t bits =
                key & 0x8000u ? key ^ 0x8000u : min(key, 0x7FFEu) ^ 0xFFFFu;
        return asTwo(bits << 16 | bits);
    }
    __device__ __forceinline__ static float valueOf(uint32_t key) {
        return __low2float(both(key));
    }
    /// The key of the nearest value.
    __device__ __forceinline__ static uint32_t keyNear(float value) {
        return keyOf(bitsOf(Pair::both(value)));
    }

    /// A number is a key and, in its lower half, a column.
    __device__ __forceinline__ static uint32_t firstNumber(uint32_t key) {
        return key << 16;
    }
    __device__ __forceinline__ static uint32_t lastNumber(uint32_t key) {
        return key << 16 | 0xFFFFu;
    }
    /// The values of two numbers; of all ones NaN.
    __device__ __forceinline__ static Two ofNumbers(uint32_t a, uint32_t b) {
        const uint32_t signedKeys = __byte_perm(a, b, 0x7632) ^ 0x80008000u;
        uint32_t signs; // each in all bits of its half
        asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(signs) : "r"(signedKeys));
        return asTwo(signedKeys ^ (signs & kNarrowNan));
    }

    /// How many of this lane's keys are not above one.
    template <int kCount, int kKept>
    __device__ __forceinline__ static uint32_t countUpTo(
            const Two (&values)[kCount],
            const Two (&kept)[kKept],
            Two most) {
        static_assert(kCount + kKept <= 128); // sums are exact in 8 bits
        constexpr int kChains = 4;
        Two sums[kChains];
#pragma unroll
        for (int i = 0; i < kCount + kKept; ++i) {
            const Two one =
                    __hle2(i < kCount ? values[i % kCount]
                                      : kept[(i - kCount) % kKept],
                           most);
            Two& sum = sums[i % kChains];
            sum = i < kChains ? one : __hadd2(sum, one);
        }
        const Two sum =
                __hadd2(__hadd2(sums[0], sums[1]), __hadd2(sums[2], sums[3]));
        // In the mantissa of 2^23, as a conversion takes four times as long.
        const float all = __low2float(sum) + __high2float(sum);
        return __float_as_uint(all + 0x1p23f) & 0xFFFFu;
    }
};

} // namespace faiss_bits
