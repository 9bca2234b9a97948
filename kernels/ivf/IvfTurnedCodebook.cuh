/// A codebook of product codes with its rows side by side, and the greatest
/// square of each part's rows, for scans by tables (IvfTables.cuh).
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

/// A block a part.
struct IvfTurnedCodebook {
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kMostRows = 256;
    static constexpr int kAtATime = 16; // components
    static_assert(kThreads >= kMostRows);

    struct SharedStorage {
        float values[kMostRows][kAtATime + 1]; // no two rows in one bank
        uint32_t longest;
    };

    SharedStorage& shared;
    const IvfDirectParams& params;

    __device__ __forceinline__ void run(int part) const {
        const ListDecoding& decoding = params.search.lists.decoding;
        const int rows = 1 << decoding.partBits;
        const int dims = params.search.d / decoding.numParts;
        const int64_t first = int64_t(part) * rows * dims;
        const float* from = decoding.codebook + first;
        float* to = params.turnedCodebook + first;
        const int row = int(threadIdx.x);
        if (row == 0) {
            shared.longest = 0;
        }
        float square = 0;
        for (int begin = 0; begin < dims; begin += kAtATime) {
            const int count = min(kAtATime, dims - begin);
            __syncthreads(); // the components before are read
            for (int i = row; i < rows * kAtATime; i += kThreads) {
                const int c = i % kAtATime;
                if (c < count) {
                    shared.values[i / kAtATime][c] =
                            from[i / kAtATime * dims + begin + c];
                }
            }
            __syncthreads();
            for (int c = 0; c < count && row < rows; ++c) {
                const float x = shared.values[row][c];
                square = __fmaf_rn(x, x, square);
                to[(begin + c) * rows + row] = x;
            }
        }
        // None is negative; what is no number is greater than all.
        const uint32_t most = __reduce_max_sync(
                kFullWarp, __float_as_uint(square) & 0x7fffffff);
        if (row % kWarpSize == 0) {
            atomicMax(&shared.longest, most);
        }
        __syncthreads();
        if (row == 0) {
            params.turnedSquares[part] = __uint_as_float(shared.longest);
        }
    }
};

} // namespace faiss_bits
