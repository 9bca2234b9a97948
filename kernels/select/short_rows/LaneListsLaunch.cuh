/// The launch of lists of lanes; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/LaneLists.cuh"

namespace faiss_bits {

template <class T, int kLanes, int kItems, int kBest>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    laneListsKernel<T, kLanes, kItems, kBest>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, int kLanes, int kItems>
void launchLists(const ShortRowsParams& params, cudaStream_t stream) {
    if (params.select.k <= 2) {
        launchLists<T, kLanes, kItems, 2>(params, stream);
    } else if (params.select.k <= 4) {
        launchLists<T, kLanes, kItems, 4>(params, stream);
    } else {
        launchLists<T, kLanes, kItems, kMostLaneListsK>(params, stream);
    }
}

template <class T>
void launchLaneLists(
        const ShortRowsParams& params,
        bool isFew,
        cudaStream_t stream) {
    const uint32_t cols = params.select.cols;
    if (cols > 384) {
        launchLists<T, 32, 16>(params, stream);
    } else if (cols > 256) {
        launchLists<T, 32, 12>(params, stream);
    } else if (isFew && cols > 128) {
        launchLists<T, 32, 8>(params, stream);
    } else if (isFew && cols > 32) {
        launchLists<T, 32, 4>(params, stream);
    } else if (cols > 192) {
        launchLists<T, 16, 16>(params, stream);
    } else if (cols > 128) {
        launchLists<T, 16, 12>(params, stream);
    } else if (cols > 96) {
        launchLists<T, 8, 16>(params, stream);
    } else if (cols > 64) {
        launchLists<T, 8, 12>(params, stream);
    } else if (cols > 32) {
        launchLists<T, 8, 8>(params, stream);
    } else {
        launchLists<T, 8, 4>(params, stream);
    }
}

} // namespace faiss_bits
