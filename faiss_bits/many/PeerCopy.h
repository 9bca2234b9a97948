#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Whether copyByKernel copies these: 16 bytes at a time.
bool canCopyByKernel(const void* target, const void* source, size_t bytes);

/// Copies by a kernel of the current device, which can use both (canUse()): a
/// launch takes the host half as long as cudaMemcpyPeerAsync.
void copyByKernel(
        void* target,
        const void* source,
        size_t bytes,
        cudaStream_t stream);

} // namespace faiss_bits::gpu::detail
