#include "kernels/common/PreferredL1.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits {

namespace {

/// What a kernel has been asked for, and in which context.
struct Asked {
    size_t bytes = 0;
    uint64_t context = 0; // contextId()
};

} // namespace

void preferL1(const void* kernel, size_t bytes) {
    // Never destroyed: kernels may be launched while a program ends.
    static auto& kernels =
            *new PerDevice<std::map<std::pair<const void*, int>, Asked>>;
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    const uint64_t context = contextId();
    kernels.with(device, [&](auto& map) {
        Asked& asked = map[{kernel, device}];
        if (context != 0 && asked.context == context && asked.bytes == bytes) {
            return;
        }
        int percent = cudaSharedmemCarveoutDefault;
        if (bytes != kAnySharedMemory) {
            int all = 0;
            BITS_CUDA_CHECK(cudaDeviceGetAttribute(
                    &all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
            const size_t share = (100 * bytes + size_t(all) - 1) / size_t(all);
            percent = int(std::min<size_t>(share, 100));
        }
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel,
                cudaFuncAttributePreferredSharedMemoryCarveout,
                percent));
        asked = {bytes, context};
    });
}

} // namespace faiss_bits
