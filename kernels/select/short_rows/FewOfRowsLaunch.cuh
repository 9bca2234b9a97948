/// The launch of a few of the best of rows; included by the generated sources
/// only.
#pragma once

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfRows.cuh"

namespace faiss_bits {

template <class T, int kLanes, int kMinima>
void launchFewOfRows(
        const FewOfRowsParams& params,
        unsigned blocks,
        size_t sharedBytes,
        cudaStream_t stream) {
    const auto kernel = fewOfRowsKernel<T, kLanes, kMinima>;
    const size_t allowed = allowSharedBytes(kernel, sharedBytes);
    BITS_THROW_IF_NOT_FMT(
            allowed == sharedBytes,
            "the device has %zu bytes of shared memory a block, and the plan "
            "was made for one with %zu",
            allowed,
            sharedBytes);
    kernel<<<blocks, kShortRowsThreads, sharedBytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
