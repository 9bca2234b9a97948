#pragma once

#include "kernels/common/DependentLaunch.h"

namespace faiss_bits {

/// launchAfterPrevious with blocks in two dimensions.
template <class Params>
void launchGridAfterPrevious(
        void (*kernel)(Params),
        dim3 blocks,
        unsigned threads,
        cudaStream_t stream,
        const Params& params) {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    const void* function = reinterpret_cast<const void*>(kernel);
    config.numAttrs = canWaitForPrevious(function) ? 1 : 0;
    void* arguments[] = {const_cast<Params*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

} // namespace faiss_bits
