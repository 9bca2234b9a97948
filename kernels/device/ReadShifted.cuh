#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace faiss_bits {

/// Elements before and behind those of readShifted() that it may read too.
template <class T>
constexpr int kReadAround = 16 / sizeof(T);

/// Elements that begin anywhere, by loads of 16 bytes, which are aligned. One by
/// one, lanes with some elements each have a load of many lines for every one.
template <class T, int kCount>
__device__ __forceinline__ void readShifted(const T* x, T (&out)[kCount]) {
    static_assert(kCount * sizeof(T) % 16 == 0);
    static_assert(sizeof(T) == 2 || sizeof(T) == 4);
    constexpr int kWords = kCount * sizeof(T) / sizeof(uint32_t);
    constexpr int kLoads = kWords / 4 + 1;
    const uintptr_t address = reinterpret_cast<uintptr_t>(x);
    const uint4* from = reinterpret_cast<const uint4*>(address & ~uintptr_t(15));
    alignas(16) uint32_t words[4 * kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        reinterpret_cast<uint4*>(words)[i] = from[i];
    }
    // By one and two words, and half a word.
#pragma unroll
    for (int i = 0; i + 1 < 4 * kLoads; ++i) {
        words[i] = address & 4 ? words[i + 1] : words[i];
    }
#pragma unroll
    for (int i = 0; i + 2 < 4 * kLoads; ++i) {
        words[i] = address & 8 ? words[i + 2] : words[i];
    }
    if (sizeof(T) < sizeof(uint32_t)) {
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
            words[i] = __funnelshift_r(
                    words[i], words[i + 1], address & 2 ? 16 : 0);
        }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
        out[i] = reinterpret_cast<const T*>(words)[i];
    }
}

} // namespace faiss_bits
