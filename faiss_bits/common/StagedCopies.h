#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime_api.h>

/// Copies between pageable memory of the host and a device by way of pinned
/// memory. Several threads copy where it is much, and the device copies what is
/// there meanwhile. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Copies bytes from `from` to `pinned` before it returns, and from there to
/// `to` on the device in the order of its stream.
void copyToDevice(
        int device,
        char* to,
        char* pinned,
        const char* from,
        size_t bytes,
        cudaStream_t stream);

/// One copy of several from a device.
struct CopyFromDevice {
    char* to = nullptr; ///< pageable
    char* pinned = nullptr;
    const char* from = nullptr;
    size_t bytes = 0;
};

/// Copies what is there in the order of the stream, which is of the current
/// device. Waits.
void copyFromDevice(
        const std::vector<CopyFromDevice>& copies,
        cudaStream_t stream);

} // namespace faiss_bits::gpu::detail
