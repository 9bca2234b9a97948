/// Arrays in registers.
#pragma once

namespace faiss_bits {

/// values[i]; kCount is a power of two.
template <class T, int kCount>
__device__ __forceinline__ T selected(const T (&values)[kCount], int i) {
    if constexpr (kCount == 1) {
        return values[0];
    } else {
        T half[kCount / 2];
#pragma unroll
        for (int j = 0; j < kCount / 2; ++j) {
            half[j] = i & 1 ? values[2 * j + 1] : values[2 * j];
        }
        return selected(half, i >> 1);
    }
}

} // namespace faiss_bits
