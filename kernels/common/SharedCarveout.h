#pragma once

#include <cstddef>

namespace faiss_bits {

/// Asks for so many bytes of shared memory a multiprocessor while the kernel
/// runs there, at least those of a block; the first-level cache has the rest.
/// Once for a kernel and device: where a program resets a device, it costs no
/// more than time that this is lost.
///
/// Threads  any number, also for one kernel on one device
void preferSharedBytes(const void* kernel, size_t bytes);

template <class Kernel>
void preferSharedBytes(Kernel kernel, size_t bytes) {
    preferSharedBytes(reinterpret_cast<const void*>(kernel), bytes);
}

} // namespace faiss_bits
