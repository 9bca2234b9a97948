#pragma once

#include <atomic>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

/// Lets a kernel be launched in clusters of 16 blocks in the current context;
/// every device that has clusters takes 8. Asks the runtime only where the
/// context is another one than the last time, as that takes a microsecond.
template <auto Kernel>
void allowLargeClusters() {
    static std::atomic<uint64_t> last{0};
    const uint64_t context = currentContextId();
    if (context != 0 && last == context) {
        return;
    }
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            reinterpret_cast<const void*>(Kernel),
            cudaFuncAttributeNonPortableClusterSizeAllowed,
            1));
    last = context;
}

} // namespace faiss_bits
