#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <cuda_fp16.h>

#include "kernels/common/CudaCheck.h"
#include "tests/common/Oracle.h"

/// Keys that are too many for the host, made on the device so that the best
/// ones of every row are known in closed form.
namespace faiss_bits::test {

/// Column c of row r has a rank below 2^32, another one for every column, by
/// a mixing function that can be turned around. The kSpecial << shift least
/// ranks, at least 128 of them in a row on average, have negative keys, a few
/// neighbouring ranks the same one; all others have keys >= 0. So the best
/// columns of a row are known, and they lie anywhere in it. Keys are integers
/// up to 2048, exact in float and in half.
struct KnownKeys {
    static constexpr uint32_t kSpecial = 4096;

    __host__ __device__ static uint32_t mask(int64_t row) {
        return uint32_t(row) * 0x9E3779B1u + 0x7F4A7C15u;
    }

    /// MurmurHash3's 32-bit finaliser.
    __host__ __device__ static uint32_t mix(uint32_t x) {
        x ^= x >> 16;
        x *= 0x85EBCA6Bu;
        x ^= x >> 13;
        x *= 0xC2B2AE35u;
        return x ^ (x >> 16);
    }

    /// The other way around.
    static uint32_t unmix(uint32_t x) {
        x ^= x >> 16;
        x *= inverse(0xC2B2AE35u);
        x ^= (x >> 13) ^ (x >> 26);
        x *= inverse(0x85EBCA6Bu);
        return x ^ (x >> 16);
    }

    /// Of an odd number mod 2^32, by Newton's iteration.
    static uint32_t inverse(uint32_t odd) {
        uint32_t result = odd;
        for (int i = 0; i < 5; ++i) {
            result *= 2 - odd * result;
        }
        return result;
    }

    __host__ __device__ static int shift(int64_t cols) {
        int s = 0;
        while (((int64_t(kSpecial) << s) * cols) >> 32 < 128) {
            ++s;
        }
        return s;
    }

    __host__ __device__ static float key(
            int64_t row,
            int64_t column,
            int shift) {
        const uint32_t rank = mix(uint32_t(column) ^ mask(row));
        return rank < kSpecial << shift
                ? float(int(rank >> (shift + 1)) - int(kSpecial / 2))
                : float(rank >> 21);
    }

    /// The min(k, special ones) best columns of a row, as the oracle ranks.
    static std::vector<Ranked> best(int64_t row, int64_t cols, int64_t k) {
        const int s = shift(cols);
        std::vector<Ranked> candidates;
        for (uint32_t rank = 0; rank < kSpecial << s; ++rank) {
            const int64_t column = unmix(rank) ^ mask(row);
            if (column < cols) {
                candidates.push_back({key(row, column, s), column});
            }
        }
        return topK(std::move(candidates), k, false);
    }
};

template <class T>
__global__ void fillKnownKeysKernel(T* keys, int64_t rows, int64_t cols) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    const int shift = KnownKeys::shift(cols);
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        for (int64_t c = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
             c < cols;
             c += step) {
            keys[row * cols + c] = T(KnownKeys::key(row, c, shift));
        }
    }
}

/// Fills keys [rows, cols] and waits.
template <class T>
void fillKnownKeys(T* keys, int64_t rows, int64_t cols) {
    const unsigned down = unsigned(std::min<int64_t>(rows, 65535));
    const unsigned across = std::max(1u, 8192u / down);
    fillKnownKeysKernel<<<dim3(across, down), 256>>>(keys, rows, cols);
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

} // namespace faiss_bits::test
