#include "kernels/common/DynamicShared.h"

#include <map>
#include <utility>

#include "kernels/common/PerDevice.h"

namespace faiss_bits {

void raiseSharedLimit(const void* kernel, int device, size_t bytes) {
    // Never destroyed: kernels may be launched while a program ends.
    static auto& limits =
            *new PerDevice<std::map<std::pair<const void*, int>, size_t>>;
    // Limits are set in the order in which they rise.
    limits.with(device, [&](auto& map) {
        size_t& limit = map[{kernel, device}];
        const size_t raised = std::max(limit, bytes);
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel,
                cudaFuncAttributeMaxDynamicSharedMemorySize,
                int(raised)));
        limit = raised;
    });
}

} // namespace faiss_bits
