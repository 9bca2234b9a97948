/// The launch of k = 1 in short rows; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/LeastOfPacks.cuh"
#include "kernels/select/short_rows/LeastOfRows.cuh"

namespace faiss_bits {

template <class T, bool kHasBias, int kLanes, int kItems>
void launchLeast(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    leastOfRowsKernel<T, kHasBias, kLanes, kItems>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, int kThreads, int kItems = 16>
void launchLeastPacks(const ShortRowsParams& params, cudaStream_t stream) {
    leastOfPacksKernel<T, kThreads, kItems>
            <<<params.rows, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Few long rows have a large block each, as what counts is how long one takes.
constexpr uint32_t kLeastLargePacksCols = 4096;
constexpr uint32_t kMostLargePacksRows = 132;

/// Floats: a block each only where a warp each would leave most of the device
/// without work, or where what is in flight of a warp is not enough (measured,
/// H200; so are the others).
constexpr uint32_t kMostRowsOfBlocks = 528;
constexpr uint32_t kManyRows = 8192; // whose keys L2 does not hold

/// Keys without bias of rows that have a block each. Of a lane, a second step
/// that is half empty costs more than it brings. False where they have none.
template <class T>
bool launchLeastOfBlocks(const ShortRowsParams& params, cudaStream_t stream) {
    const uint32_t cols = params.select.cols;
    const uint32_t rows = params.rows;
    if (cols > kLeastLargePacksCols && rows <= kMostLargePacksRows) {
        launchLeastPacks<T, 512>(params, stream);
        return true;
    }
    if (sizeof(T) == 4 && cols > 2048 && cols <= 3072) {
        if (cols > 2560) {
            launchLeastPacks<T, kShortRowsThreads, 24>(params, stream);
            return true;
        }
        if (rows > kManyRows) {
            launchLeastPacks<T, kShortRowsThreads, sizeof(T) == 4 ? 20 : 24>(
                    params, stream);
            return true;
        }
        return false;
    }
    const bool hasBlock = cols > 3072 ||
            (cols > 1024 && cols <= 2048 &&
             (sizeof(T) == 2 || rows <= kMostRowsOfBlocks));
    if (hasBlock) {
        launchLeastPacks<T, kShortRowsThreads>(params, stream);
    }
    return hasBlock;
}

/// Rows of more than 512 floats that have a warp each: in as few steps as
/// registers allow, as full as they can be.
inline void launchLeastOfFloats(
        const ShortRowsParams& params,
        cudaStream_t stream) {
    const uint32_t cols = params.select.cols;
    if (cols > 1536 && cols <= 2048) {
        launchLeast<float, false, 32, 32>(params, stream);
    } else if (cols > 1024) {
        launchLeast<float, false, 32, 24>(params, stream);
    } else if (cols > 768) {
        launchLeast<float, false, 32, 32>(params, stream);
    } else if (cols > 640) {
        launchLeast<float, false, 32, 24>(params, stream);
    } else {
        launchLeast<float, false, 32, 20>(params, stream);
    }
}

/// Up to 48 columns: most of what a warp does is the same for any number of
/// rows, so where these are many it has eight. So many rows are 32 warps of
/// each multiprocessor.
constexpr uint32_t kMostRowsOfEightLanes = 132 * 256;
constexpr uint32_t kMostColsOfFourLeast = 48;

template <class T, bool kHasBias>
void launchLeastOfFourLanes(
        const ShortRowsParams& params,
        cudaStream_t stream) {
    if (params.select.cols > 32) {
        launchLeast<T, kHasBias, 4, 16>(params, stream);
    } else if (params.select.cols > 16) {
        launchLeast<T, kHasBias, 4, 8>(params, stream);
    } else {
        launchLeast<T, kHasBias, 4, 4>(params, stream);
    }
}

template <class T, bool kHasBias>
void launchLeastOfRows(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream) {
    const uint32_t cols = params.select.cols;
    constexpr bool kIsFloat = sizeof(T) == 4 && !kHasBias;
    if constexpr (!kHasBias) {
        if (launchLeastOfBlocks<T>(params, stream)) {
            return;
        }
    }
    const bool hasBlock = kIsFloat ? params.rows <= kMostRowsOfBlocks : isFew;
    if (hasBlock && cols > 256) {
        launchLeast<T, kHasBias, kShortRowsThreads, 16>(params, stream);
        return;
    }
    if constexpr (kIsFloat) {
        if (cols > 512) {
            launchLeastOfFloats(params, stream);
            return;
        }
    }
    if (isFew && cols > 32 && cols <= 256) {
        launchLeast<T, kHasBias, 32, 8>(params, stream);
    } else if (cols > 384) {
        launchLeast<T, kHasBias, 32, 16>(params, stream);
    } else if (cols > 256) {
        launchLeast<T, kHasBias, 32, 12>(params, stream);
    } else if (cols > 192) {
        launchLeast<T, kHasBias, 16, 16>(params, stream);
    } else if (cols > 128) {
        launchLeast<T, kHasBias, 16, 12>(params, stream);
    } else if (cols > 64) {
        launchLeast<T, kHasBias, 8, 16>(params, stream);
    } else if (
            params.rows > kMostRowsOfEightLanes &&
            cols <= kMostColsOfFourLeast) {
        launchLeastOfFourLanes<T, kHasBias>(params, stream);
    } else if (cols > 32) {
        launchLeast<T, kHasBias, 8, 8>(params, stream);
    } else {
        launchLeast<T, kHasBias, 8, 4>(params, stream);
    }
}

} // namespace faiss_bits
