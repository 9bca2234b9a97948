#include "kernels/common/DependentLaunch.h"

#include <map>
#include <utility>

#include "kernels/common/PerDevice.h"

namespace faiss_bits {

bool canWaitForPrevious(const void* kernel) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: kernels may be launched while a program ends.
    static auto& known =
            *new PerDevice<std::map<std::pair<const void*, int>, bool>>;
    return known.with(device, [&](auto& map) {
        return findOrMake(map, {kernel, device}, [&] {
            cudaFuncAttributes attributes = {};
            BITS_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
            // The virtual architecture is what __CUDA_ARCH__ was.
            return attributes.ptxVersion >= 90;
        });
    });
}

} // namespace faiss_bits
