#pragma once

#include "kernels/device/Hash.cuh"

namespace faiss_bits {

/// Member `sample` of a sample of n vectors: one from each of as many even
/// parts. Single ones, as neighbours in memory are often alike.
__device__ __forceinline__ int64_t
sampledVector(int64_t sample, int64_t samples, int64_t n) {
    const int64_t begin = sample * n / samples;
    const int64_t end = (sample + 1) * n / samples;
    return begin + mixBits(uint32_t(sample)) % uint32_t(end - begin);
}

} // namespace faiss_bits
