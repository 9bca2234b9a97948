#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/CudaCheck.h"

/// Launches that may begin while the kernel before them in the stream still
/// runs (programmatic dependent launch), which hides the time between two
/// short kernels. The kernel calls waitForPrevious() before it reads what
/// others wrote, and the one before it may call allowNext().
namespace faiss_bits {

/// Whether the code of the kernel that runs on the current device has the wait
/// of waitForPrevious() in it: it was compiled for compute capability 9.0 or
/// later. PTX of an earlier one has not, whatever device it was translated for.
/// Asks the runtime once for each kernel and device; safe from several threads.
bool canWaitForPrevious(const void* kernel);

/// An ordinary launch, where the kernel cannot wait, or may not start early.
template <class Params>
void launchAfterPrevious(
        void (*kernel)(Params),
        dim3 blocks,
        unsigned threads,
        size_t sharedBytes,
        cudaStream_t stream,
        const Params& params,
        bool mayStartEarly = true) {
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = sharedBytes;
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    const void* function = reinterpret_cast<const void*>(kernel);
    config.numAttrs = mayStartEarly && canWaitForPrevious(function) ? 1 : 0;
    void* arguments[] = {const_cast<Params*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

#ifdef __CUDACC__
/// Until the kernel before has ended and its writes can be read.
__device__ __forceinline__ void waitForPrevious() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// The next kernel may start as soon as there is room for its blocks.
__device__ __forceinline__ void allowNext() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif

} // namespace faiss_bits
