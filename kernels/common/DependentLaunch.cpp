#include "kernels/common/DependentLaunch.h"

#include <map>
#include <mutex>
#include <utility>

namespace faiss_bits {

bool canWaitForPrevious(const void* kernel) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: kernels may be launched while a program ends.
    static auto& mutex = *new std::mutex;
    static auto& known = *new std::map<std::pair<const void*, int>, bool>;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find({kernel, device});
    if (found != known.end()) {
        return found->second;
    }
    cudaFuncAttributes attributes = {};
    BITS_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    // The virtual architecture is what __CUDA_ARCH__ was.
    return known[{kernel, device}] = attributes.ptxVersion >= 90;
}

} // namespace faiss_bits
