/// The launch; included by the generated sources only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/select/large_k/MultiPassLaunch.cuh"
#include "kernels/select/large_k/RowSort.cuh"

namespace faiss_bits {

template <class Keys, int Threads, int Items>
void launchRowSort(
        const SelectParams& params,
        unsigned rows,
        size_t sharedBytes,
        cudaStream_t stream) {
    const auto kernel = rowSortKernel<typename Keys::Row, Threads, Items>;
    allowSharedBytes(kernel, sharedBytes);
    kernel<<<rows, Threads, sharedBytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
