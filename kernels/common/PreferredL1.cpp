#include "kernels/common/PreferredL1.h"

#include <algorithm>
#include <map>

#include "kernels/common/ContextId.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits {

void preferL1(const void* kernel, size_t bytes) {
    // Of which context the kernel has been told, and the key names the device.
    // Never destroyed: kernels may be launched while a program ends.
    static auto& told =
            *new PerDevice<std::map<std::pair<const void*, int>, uint64_t>>;
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    const uint64_t context = contextId();
    told.with(device, [&](auto& map) {
        uint64_t& its = map[{kernel, device}];
        if (context != 0 && its == context) {
            return;
        }
        int all = 0;
        BITS_CUDA_CHECK(cudaDeviceGetAttribute(
                &all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
        const size_t percent = (100 * bytes + size_t(all) - 1) / size_t(all);
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel,
                cudaFuncAttributePreferredSharedMemoryCarveout,
                int(std::min<size_t>(percent, 100))));
        its = context;
    });
}

} // namespace faiss_bits
