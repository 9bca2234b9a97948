#include "kernels/common/SharedCarveout.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

void preferSharedBytes(const void* kernel, size_t bytes) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: kernels may be launched while a program ends.
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::set<std::pair<const void*, int>>;
    const std::lock_guard<std::mutex> lock(mutex);
    if (known.count({kernel, device})) {
        return;
    }
    int most = 0;
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    // In percent, rounded up.
    const size_t part = (100 * bytes + size_t(most) - 1) / size_t(most);
    BITS_CUDA_CHECK(cudaFuncSetAttribute(
            kernel,
            cudaFuncAttributePreferredSharedMemoryCarveout,
            int(std::min<size_t>(part, 100))));
    known.insert({kernel, device});
}

} // namespace faiss_bits
