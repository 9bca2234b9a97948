/// The launch of a few of the best of rows of packs; included by the generated
/// sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/FewOfPacks.cuh"

namespace faiss_bits {

template <int kLanes, int kPacks, int kMinima>
void launchFewOfPacks(const ShortRowsParams& params, cudaStream_t stream) {
    constexpr unsigned kRows = kShortRowsThreads / kLanes;
    fewOfPacksKernel<kLanes, kPacks, kMinima>
            <<<(params.rows + kRows - 1) / kRows,
               kShortRowsThreads,
               0,
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
