#include "kernels/common/DynamicShared.h"

#include <map>
#include <mutex>
#include <utility>

namespace faiss_bits {

void raiseSharedLimit(const void* kernel, int device, size_t bytes) {
    static std::mutex mutex;
    static std::map<std::pair<const void*, int>, size_t> limits;
    // Limits are set in the order in which they rise.
    const std::lock_guard<std::mutex> lock(mutex);
    size_t& limit = limits[{kernel, device}];
    const size_t raised = std::max(limit, bytes);
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(raised)));
    limit = raised;
}

} // namespace faiss_bits
