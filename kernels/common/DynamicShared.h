#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

/// Raises a kernel's limit of dynamic shared memory on the current device,
/// which is one for all host threads, to at least `bytes`. It is never lowered:
/// another thread may be about to launch the same kernel with more.
void raiseSharedLimit(const void* kernel, int device, size_t bytes);

/// Raises the kernel's limit of dynamic shared memory to `wanted`, or to the
/// device's most, and returns which. The kernel's static memory, at most 8 KiB
/// of it, comes on top. Cheap, and its effect is lost where a program resets a
/// device, so the call is never left out.
///
/// Threads  any number, also for one kernel on one device
template <class Kernel>
size_t allowSharedBytes(Kernel kernel, size_t wanted) {
    // Every kernel may have 48 KiB, of which 8 are left to its static memory.
    constexpr size_t kAlways = (48 - 8) * 1024;
    if (wanted <= kAlways) {
        return wanted;
    }
    int device = 0;
    int most = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    const size_t bytes = std::min(wanted, size_t(most));
    raiseSharedLimit(reinterpret_cast<const void*>(kernel), device, bytes);
    return bytes;
}

} // namespace faiss_bits
