#pragma once

#include "kernels/device/Hash.h"

namespace faiss_bits {

/// Member `sample` of a sample of n vectors: one from each of as many even
/// parts. Single ones, as neighbours in memory are often alike. The first
/// quarter of a sample is one itself: it takes every fourth part.
__device__ __forceinline__ int64_t
sampledVector(int64_t sample, int64_t samples, int64_t n) {
    const int64_t quarter = samples / 4;
    const int64_t part =
            samples % 4 == 0 ? sample % quarter * 4 + sample / quarter : sample;
    const int64_t begin = part * n / samples;
    const int64_t end = (part + 1) * n / samples;
    return begin + mixBits(uint32_t(part)) % uint32_t(end - begin);
}

} // namespace faiss_bits
