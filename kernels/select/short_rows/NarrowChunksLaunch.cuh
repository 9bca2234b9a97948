/// The launch of rows of 16-bit keys in pairs; included by the generated
/// sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/NarrowChunks.cuh"
#include "kernels/select/short_rows/NarrowChunksLaunch.h"

namespace faiss_bits {

template <class T, int kSorted>
void launchNarrowChunks(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kWarpSize;
    narrowChunksKernel<T, kSorted>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
