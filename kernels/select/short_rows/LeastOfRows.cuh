/// k = 1 in short rows: a few lanes read a row, and no key is put in order but
/// the least of each lane.
///
/// Bound by: the read of the keys; few rows by the latency of one row's.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/select/short_rows/LeastOfRowsLaunch.h"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// kLanes threads side by side have a row, a part of a warp or all threads of
/// the block, and kItems keys each at a time.
template <class T, bool kHasBias, int kLanes, int kItems>
struct LeastOfRow {
    static constexpr uint32_t kColumns = kLanes * kItems;
    static_assert(kLanes <= kWarpSize || kLanes == kShortRowsThreads);

    const SelectParams& params;
    uint32_t row;
    float values[kItems]; // in the order of "smallest first"; NaN behind the
                          // end

    /// Columns of a lane ascend, so the first of equal keys counts.
    __device__ __forceinline__ uint64_t ofLane() {
        const uint32_t lane = threadIdx.x % kLanes;
        float best = __uint_as_float(0x7FFFFFFFu);
        uint32_t column = lane; // if all are NaN
        for (uint32_t base = 0; base < params.cols; base += kColumns) {
            load(base + lane, base + kColumns <= params.cols);
            float least = values[0];
#pragma unroll
            for (int i = 1; i < kItems; ++i) {
                least = fminf(least, values[i]);
            }
            // The first number, too, is better than NaN.
            if (least == least && !(best <= least)) {
                best = least;
#pragma unroll
                for (int i = kItems - 1; i >= 0; --i) {
                    column = values[i] == least ? base + lane + i * kLanes
                                                : column;
                }
            }
        }
        return makeEntry(orderedKey(best), column);
    }

   private:
    /// All loads in flight before the first use, as KeyTile::loadPart has them
    /// and says why. isWhole: the row has all columns that the lanes look at;
    /// it is the same in all of them, as lanes of a warp that go different ways
    /// cost 5% of rows of 500 columns (measured, H200).
    __device__ __forceinline__ void load(uint32_t first, bool isWhole) {
        const T* from = static_cast<const T*>(params.keys) +
                params.rowStride * row + first;
        const int left = int(params.cols) - int(first);
        T loaded[kItems];
        if (isWhole) {
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                loaded[i] = from[i * kLanes];
            }
        } else {
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                loaded[i] = T(__uint_as_float(0x7FC00000u));
                if (i * kLanes < left) {
                    loaded[i] = from[i * kLanes];
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            // No bias is there behind the row's end.
            values[i] = !kHasBias || i * kLanes < left
                    ? valueOf(loaded[i], first + i * kLanes)
                    : toFloat(loaded[i]);
        }
    }

    __device__ __forceinline__ float valueOf(T key, uint32_t column) const {
        if constexpr (kHasBias) {
            const float rowBias = params.rowBias ? params.rowBias[row] : 0.0f;
            const float value =
                    (toFloat(key) + params.colBias[column]) + rowBias;
            return value < params.floor ? params.floor : value;
        }
        return __uint_as_float(__float_as_uint(toFloat(key)) ^ params.signMask);
    }
};

/// The least of the entries of kLanes threads, in the first of them: a part of
/// a warp, or all threads of a block.
template <int kLanes>
__device__ __forceinline__ uint64_t leastOfLanes(uint64_t entry) {
    if constexpr (kLanes < kWarpSize) {
#pragma unroll
        for (int distance = kLanes / 2; distance >= 1; distance /= 2) {
            const uint64_t other = __shfl_xor_sync(kFullWarp, entry, distance);
            entry = other < entry ? other : entry;
        }
        return entry;
    }
    entry = leastOfWarp(entry);
    if constexpr (kLanes > kWarpSize) {
        constexpr int kWarps = kLanes / kWarpSize;
        __shared__ uint64_t least[kWarps];
        if (threadIdx.x % kWarpSize == 0) {
            least[threadIdx.x / kWarpSize] = entry;
        }
        __syncthreads();
        entry = leastOfWarp(ofWarps<kWarps>(least, kNoEntry));
    }
    return entry;
}

template <class T, bool kHasBias, int kLanes, int kItems>
__global__ void __launch_bounds__(kShortRowsThreads)
        leastOfRowsKernel(const __grid_constant__ ShortRowsParams params) {
    constexpr uint32_t kRows = kShortRowsThreads / kLanes;
    const uint32_t at = blockIdx.x * kRows + threadIdx.x / kLanes;
    const bool isThere = at < params.rows;
    const uint32_t row = params.select.firstRow + (isThere ? at : 0);
    LeastOfRow<T, kHasBias, kLanes, kItems> least{params.select, row};
    const uint64_t entry = leastOfLanes<kLanes>(least.ofLane());
    if (threadIdx.x % kLanes == 0 && isThere) {
        writeResult<T>(params.select, row, 0, entry);
    }
}

} // namespace faiss_bits
