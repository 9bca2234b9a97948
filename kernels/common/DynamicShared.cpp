#include "kernels/common/DynamicShared.h"

#include <map>
#include <utility>

#include "kernels/common/ContextId.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits {

namespace {

/// What a kernel has, and in which context: a reset takes the limit away. CUDA
/// takes about a microsecond to set it again, and more where threads of several
/// devices launch at once.
struct SharedLimit {
    size_t bytes = 0;
    uint64_t context = 0; // contextId()
};

} // namespace

void raiseSharedLimit(const void* kernel, int device, size_t bytes) {
    // Never destroyed: kernels may be launched while a program ends.
    static auto& limits =
            *new PerDevice<std::map<std::pair<const void*, int>, SharedLimit>>;
    const uint64_t context = contextId();
    // Limits are set in the order in which they rise.
    limits.with(device, [&](auto& map) {
        SharedLimit& limit = map[{kernel, device}];
        const bool isThere = context != 0 && limit.context == context &&
                limit.bytes >= bytes;
        if (isThere) {
            return;
        }
        const size_t raised = std::max(limit.bytes, bytes);
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel,
                cudaFuncAttributeMaxDynamicSharedMemorySize,
                int(raised)));
        limit = {raised, context};
    });
}

} // namespace faiss_bits
