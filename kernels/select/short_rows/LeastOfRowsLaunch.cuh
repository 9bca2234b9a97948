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

template <class T, int kThreads>
void launchLeastPacks(const ShortRowsParams& params, cudaStream_t stream) {
    leastOfPacksKernel<T, kThreads, 16>
            <<<params.rows, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// Rows of more columns have a block each, save those whose second step would
/// be half empty, and few long ones a large block: what counts then is how long
/// one takes (measured, H200).
inline bool hasBlockForRow(uint32_t cols) {
    return cols > 1024 && (cols <= 2048 || cols > 3072);
}
constexpr uint32_t kLeastLargePacksCols = 4096;
constexpr uint32_t kMostLargePacksRows = 132;

template <class T, bool kHasBias>
void launchLeastOfRows(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream) {
    const uint32_t cols = params.select.cols;
    if constexpr (!kHasBias) {
        if (cols > kLeastLargePacksCols && params.rows <= kMostLargePacksRows) {
            launchLeastPacks<T, 512>(params, stream);
            return;
        }
        if (hasBlockForRow(cols)) {
            launchLeastPacks<T, kShortRowsThreads>(params, stream);
            return;
        }
    }
    if (isFew && cols > 256) {
        launchLeast<T, kHasBias, kShortRowsThreads, 16>(params, stream);
    } else if (isFew && cols > 32) {
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
    } else if (cols > 32) {
        launchLeast<T, kHasBias, 8, 8>(params, stream);
    } else {
        launchLeast<T, kHasBias, 8, 4>(params, stream);
    }
}

} // namespace faiss_bits
