#pragma once

/// What a device can do with another one's memory. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Whether `device` can read and write memory of `other` that cudaMalloc has
/// made, from now on: switches peer access on, and it stays on.
bool enablePeerAccess(int device, int other);

/// Whether kernels of the current device can read and write this memory of any
/// device. Memory of a stream-ordered pool, and what is mapped by hand, they
/// cannot in spite of peer access, unless their owner has said so; copies can.
bool canUse(const void* memory);

} // namespace faiss_bits::gpu::detail
