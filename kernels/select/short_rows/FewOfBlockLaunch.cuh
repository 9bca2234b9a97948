/// The launch of a few of the best of rows that a block holds; included by the
/// generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/select/short_rows/FewOfBlock.cuh"

namespace faiss_bits {

template <int kItems>
void launchFewOfBlock(const ShortRowsParams& params, cudaStream_t stream) {
    fewOfBlockKernel<kItems>
            <<<params.rows, fewOfBlockThreads(kItems), 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
