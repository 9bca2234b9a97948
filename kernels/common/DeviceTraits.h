#pragma once

#include <cstddef>

namespace faiss_bits {

/// What plans know of a device. Plans are made without a CUDA call, so the
/// caller asks for the traits once (deviceTraits) and hands them on. They
/// decide speed and scratch, never a result.
struct DeviceTraits {
    int computeCapability = 90; ///< 90 = 9.0
    int multiprocessors = 132;  ///< of the whole device
    /// Shared memory of a multiprocessor that blocks may use.
    size_t sharedBytes = 228 * 1024;
    /// The most of it that one block may ask for.
    size_t blockSharedBytes = 227 * 1024;
    /// Operations in float32 for one in float64: 2, or 32 and 64 where float64
    /// is only there to be complete.
    int singleToDouble = 2;
};

/// The traits of a device, -1 being the current one. Asks the driver the first
/// time and remembers; safe from several threads. Throws Error for a device
/// that does not exist.
DeviceTraits deviceTraits(int device = -1);

} // namespace faiss_bits
