#include "faiss_bits/many/DeviceList.h"

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"

namespace faiss_bits::gpu {

DeviceList::DeviceList(
        const std::vector<faiss::gpu::GpuResourcesProvider*>& providers,
        const std::vector<int>& devices) {
    FAISS_THROW_IF_NOT_FMT(
            providers.size() == devices.size(),
            "providers has %zu entries, and devices %zu",
            providers.size(),
            devices.size());
    for (size_t i = 0; i < devices.size(); ++i) {
        add(providers[i], devices[i]);
    }
}

void DeviceList::add(faiss::gpu::GpuResourcesProvider* provider, int device) {
    DevicePlace place;
    place.resources = detail::resourcesOf(provider);
    place.device = device;
    detail::requireDevice(device);
    places_.push_back(std::move(place));
}

} // namespace faiss_bits::gpu
