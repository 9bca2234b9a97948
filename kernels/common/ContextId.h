#pragma once

#include <cstdint>

namespace faiss_bits {

/// Number of the current device's context: another one after a program has
/// reset the device (cudaDeviceReset), which takes all memory, streams and
/// events of the context with it. 0 where the driver cannot say.
///
/// Threads  any
uint64_t contextId();

} // namespace faiss_bits
