#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define BITS_HASH __host__ __device__ __forceinline__
#else
#define BITS_HASH inline
#endif

namespace faiss_bits {

/// Mixes all bits of a number: what draws samples that are the same every run.
BITS_HASH uint32_t mixBits(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}

/// Of a mixed number, in [0, 1).
BITS_HASH float fractionOf(uint32_t mixed) {
    return float(mixed >> 8) * (1.0f / 16777216.0f);
}

} // namespace faiss_bits

#undef BITS_HASH
