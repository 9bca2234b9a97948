#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/Error.h"

namespace faiss_bits {

/// Scratch memory on the device, owned by the caller. It may hold anything on
/// entry, and is free again in stream order.
struct Workspace {
    void* data = nullptr; ///< on the device, aligned as by cudaMalloc
    size_t bytes = 0;     ///< those of the size query, or more
};

/// Hands out aligned slices of a workspace. With no memory behind it
/// (`data == nullptr`) it only adds up sizes, so that the size query and the
/// run of a family share one layout.
class WorkspaceSlices {
   public:
    /// Slices begin at multiples of it.
    static constexpr size_t kAlignment = 256;

    WorkspaceSlices() = default;
    /// For a run; without an argument it measures.
    explicit WorkspaceSlices(Workspace workspace)
            : workspace_(workspace), measuring_(false) {}

    /// The next `count` values; nullptr when measuring. Throws Error if the
    /// workspace is too small.
    template <class T>
    T* take(size_t count) {
        const size_t bytes = roundUp(count * sizeof(T));
        const size_t begin = used_;
        used_ += bytes;
        if (measuring_) {
            return nullptr;
        }
        BITS_THROW_IF_NOT_FMT(
                used_ <= workspace_.bytes,
                "workspace.bytes = %zu is too small, at least %zu are needed",
                workspace_.bytes,
                used_);
        BITS_THROW_IF_NOT_FMT(
                workspace_.data || bytes == 0, "workspace.data = nullptr");
        return reinterpret_cast<T*>(
                static_cast<uint8_t*>(workspace_.data) + begin);
    }

    /// Bytes of all slices so far.
    size_t used() const {
        return used_;
    }

    /// Bytes that a slice of so many takes.
    static size_t roundUp(size_t bytes) {
        return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }

   private:
    Workspace workspace_;
    size_t used_ = 0;
    bool measuring_ = true;
};

} // namespace faiss_bits
