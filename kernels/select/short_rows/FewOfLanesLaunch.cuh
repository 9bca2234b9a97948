/// The launch of a few of the best of rows in registers; included by the
/// generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/FewOfLanes.cuh"
#include "kernels/select/short_rows/FewOfLanesLaunch.h"

namespace faiss_bits {

template <class T, int kItems, int kMinima>
void launchFewOfLanes(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kWarpSize;
    fewOfLanesKernel<T, kItems, kMinima>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
