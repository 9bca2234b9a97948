/// Keys of 16 bits, two at a time.
#pragma once

#include "kernels/select/SelectParams.h"
#include "kernels/select/large_k/Composite.cuh"

namespace faiss_bits {

/// Two keys of 16 bits in a word, the first one in the lower half.
template <class T>
struct NarrowType;

template <>
struct NarrowType<__half> {
    using Type = __half2;
    static constexpr DataType kType = DataType::Float16;
    __device__ __forceinline__ static Type both(float value) {
        return __float2half2_rn(value);
    }
};

template <>
struct NarrowType<__nv_bfloat16> {
    using Type = __nv_bfloat162;
    static constexpr DataType kType = DataType::BFloat16;
    __device__ __forceinline__ static Type both(float value) {
        return __float2bfloat162_rn(value);
    }
};

/// Two NaN of either type, as they are and in order.
constexpr uint32_t kNarrowNan = 0x7FFF7FFFu;

template <class T>
struct NarrowPair : NarrowType<T> {
    using typename NarrowType<T>::Type;

    /// What inOrder() multiplies by.
    __device__ __forceinline__ static Type signOf(const SelectParams& params) {
        return NarrowType<T>::both(params.signMask ? -1.0f : 1.0f);
    }

    /// Both keys in the order of the contract, as signed numbers, NaN last.
    __device__ __forceinline__ static uint32_t inOrder(
            Type sign,
            uint32_t pair) {
        // The product is exact. The sum makes +0 of -0, and of every NaN the
        // same one, positive.
        const Type both =
                __hfma2(reinterpret_cast<const Type&>(pair),
                        sign,
                        NarrowType<T>::both(0.0f));
        const uint32_t bits = reinterpret_cast<const uint32_t&>(both);
        uint32_t signs; // each in all bits of its half
        asm("prmt.b32 %0, %1, 0, 0xBB99;" : "=r"(signs) : "r"(bits));
        return bits ^ (signs & kNarrowNan);
    }
};

} // namespace faiss_bits
