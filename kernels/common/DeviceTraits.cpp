#include "kernels/common/DeviceTraits.h"

#include <map>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits {

namespace {

int attributeOf(cudaDeviceAttr attribute, int device) {
    int value = 0;
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

DeviceTraits askFor(int device) {
    DeviceTraits traits;
    traits.computeCapability =
            10 * attributeOf(cudaDevAttrComputeCapabilityMajor, device) +
            attributeOf(cudaDevAttrComputeCapabilityMinor, device);
    traits.multiprocessors =
            attributeOf(cudaDevAttrMultiProcessorCount, device);
    traits.sharedBytes = size_t(
            attributeOf(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    traits.blockSharedBytes = size_t(
            attributeOf(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    traits.singleToDouble =
            attributeOf(cudaDevAttrSingleToDoublePrecisionPerfRatio, device);
    return traits;
}

} // namespace

DeviceTraits deviceTraits(int device) {
    if (device == -1) {
        BITS_CUDA_CHECK(cudaGetDevice(&device));
    }
    static auto& known = *new PerDevice<std::map<int, DeviceTraits>>;
    return known.with(device, [&](auto& map) {
        return findOrMake(map, device, [&] { return askFor(device); });
    });
}

} // namespace faiss_bits
