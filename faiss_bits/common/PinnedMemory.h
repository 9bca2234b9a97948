#pragma once

#include <cstddef>

#include <faiss/gpu/GpuResources.h>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// The pinned memory of resources, which one call has at a time: resources have
/// one piece of it, and may serve several devices, each with a thread of its
/// own. FAISS's calls do not ask here.
class PinnedMemory {
   public:
    /// None yet.
    PinnedMemory() = default;
    ~PinnedMemory();
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;

    /// False if another one has it, or the resources have none.
    bool take(faiss::gpu::GpuResources& resources);

    char* data() const {
        return data_;
    }
    size_t bytes() const {
        return bytes_;
    }

   private:
    char* data_ = nullptr;
    size_t bytes_ = 0;
};

} // namespace faiss_bits::gpu::detail
