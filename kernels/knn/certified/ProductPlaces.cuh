/// Which pairs of a tile of products a lane has.
#pragma once

#include "kernels/device/Bitonic.cuh"

namespace faiss_bits {

/// Tiles of 64 queries and 32 x Across vectors; Across is even. A lane has
/// sums[kDown][kAcross][4].
template <int Across>
struct ProductPlaces {
    static constexpr int kThreads = 256;
    static constexpr int kQueries = 64;
    static constexpr int kVectors = 32 * Across;
    // Of a warp: two products of 16 queries by Across of 8 vectors. Of a block:
    // 2 x 4 warps. With as many sums as registers hold shared memory is read
    // the least.
    static constexpr int kDown = 2;
    static constexpr int kAcross = Across;
    static constexpr int kWarpVectors = 8 * kAcross;
    static constexpr int kWarpQueries = 16 * kDown;
    static constexpr int kSums = 4 * kDown * kAcross;
    static_assert(kSums <= 64); // a bit each
    static_assert(kWarpQueries * 2 == kQueries && kWarpVectors * 4 == kVectors);

    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    /// Of sums[a][b][r].
    __device__ __forceinline__ static constexpr int bitOf(int a, int b, int r) {
        return (a * kAcross + b) * 4 + r;
    }
    __device__ __forceinline__ static int query(int a, int r) {
        return threadIdx.x / kWarpSize % 2 * kWarpQueries + a * 16 + r / 2 * 8 +
                lane() / 4;
    }
    /// Column c of product b. Two products share sixteen vectors, of which a
    /// lane has four side by side.
    __device__ __forceinline__ static int vectorOf(int b, int c) {
        return threadIdx.x / kWarpSize / 2 * kWarpVectors + b / 2 * 16 +
                c / 2 * 4 + b % 2 * 2 + c % 2;
    }
    __device__ __forceinline__ static int vector(int b, int r) {
        return vectorOf(b, lane() % 4 * 2 + r % 2);
    }
};

} // namespace faiss_bits
