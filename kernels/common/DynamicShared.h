#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

/// Raises the kernel's limit of dynamic shared memory to the device's. Cheap,
/// and its effect is lost where a program resets a device, so never cached.
template <class Kernel>
size_t allowSharedBytes(Kernel kernel, size_t wanted) {
    constexpr size_t kAlways = 48 * 1024;
    if (wanted <= kAlways) {
        return wanted;
    }
    int device = 0;
    int most = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const size_t bytes = std::min(wanted, size_t(most));
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
    return bytes;
}

} // namespace faiss_bits
