#pragma once

#include <memory>
#include <vector>

#include <faiss/gpu/GpuResources.h>

namespace faiss_bits::gpu {

/// A GPU, and the resources for work there.
struct DevicePlace {
    std::shared_ptr<faiss::gpu::GpuResources> resources; ///< not null
    int device = 0;                                      ///< its number
};

/// The GPUs of an index on several of them, in the order of its parts. A device
/// may come several times; parts on it run at the same time if each has
/// resources of its own, else one after the other.
class DeviceList {
   public:
    /// None yet.
    DeviceList() = default;

    /// devices[i] with the resources of providers[i].
    ///
    /// Errors  FaissException: different sizes, a null pointer, a device that
    ///         does not exist
    DeviceList(
            const std::vector<faiss::gpu::GpuResourcesProvider*>& providers,
            const std::vector<int>& devices);

    /// One more, behind the others. Errors as above.
    void add(faiss::gpu::GpuResourcesProvider* provider, int device);

    /// Number of entries.
    size_t size() const {
        return places_.size();
    }

    /// Entry 0 <= i < size().
    const DevicePlace& operator[](size_t i) const {
        return places_[i];
    }

   private:
    std::vector<DevicePlace> places_;
};

/// Options of GpuIndexBitsShards and GpuIndexBitsReplicas.
struct GpuIndexBitsManyConfig {
    bool useFloat16 = false;     ///< as of GpuIndexBitsFlatConfig
    bool useBFloat16 = false;    ///< likewise
    bool keepSearchImage = true; ///< likewise

    /// Copies from device to device go straight where the devices can, else
    /// through pinned memory of the host. false: always through the host.
    bool usePeerAccess = true;

    /// Parts on the same device share copies of queries and are merged in
    /// place. false: each part is treated as if it had a device of its own,
    /// with a thread and with copies from part to part; for tests.
    bool joinSameDevice = true;

    /// Shards: an addition is cut into pieces of at least so many vectors, as
    /// far as it has them.
    int leastPiece = 1024;
};

} // namespace faiss_bits::gpu
