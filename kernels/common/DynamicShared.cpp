#include "kernels/common/DynamicShared.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/common/ContextId.h"

namespace faiss_bits {

namespace {

struct SharedLimit {
    size_t bytes = 0;
    uint64_t context = 0; // that it was set in last; 0: not known
};

} // namespace

void raiseSharedLimit(const void* kernel, int device, size_t bytes) {
    static std::mutex mutex;
    static std::map<std::pair<const void*, int>, SharedLimit> limits;
    const uint64_t context = currentContextId();
    // Limits are set in the order in which they rise.
    const std::lock_guard<std::mutex> lock(mutex);
    SharedLimit& limit = limits[{kernel, device}];
    // To set it takes a microsecond, as long as some selections wait for it.
    static const bool always = std::getenv("BITS_ALWAYS") != nullptr;
    if (!always && context != 0 && limit.context == context && limit.bytes >= bytes) {
        return;
    }
    const size_t raised = std::max(limit.bytes, bytes);
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(raised)));
    // Where there was no context before, there is one now.
    limit = {raised, context != 0 ? context : currentContextId()};
}

} // namespace faiss_bits
