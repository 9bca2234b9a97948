#pragma once

#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndex.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/DeviceCopies.h"
#include "faiss_bits/many/ManyDevices.h"

/// The inside of GpuIndexBitsReplicas. Not part of the API.
namespace faiss_bits::gpu::detail {

struct ReplicaSet {
    ReplicaSet(const DeviceList& list, const GpuIndexBitsManyConfig& config)
            : devices(list, config, "replica"),
              copies(std::make_unique<DeviceCopies>(devices, config)) {}

    ManyDevices devices;
    std::unique_ptr<DeviceCopies> copies;
    std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> replicas;
    std::vector<GpuIndexBitsFlat*> flat; ///< the same, or none
};

} // namespace faiss_bits::gpu::detail
