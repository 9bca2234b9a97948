#pragma once

#include <cstdint>

namespace faiss_bits {

constexpr uint32_t kInfinityBits = 0x7f800000u;

/// What is below infinity, as bits; 0 for the rest.
__device__ __forceinline__ uint32_t finiteSize(float x) {
    const uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    return bits < kInfinityBits ? bits : 0;
}

} // namespace faiss_bits
