#pragma once

#include <cstdint>
#include <memory>

#include "faiss_bits/common/Waiting.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Gives an event back to those of its device's context, which are gone with it
/// where a program resets the device.
struct GiveEventBack {
    void operator()(CudaEvent* event) const;
    int device = 0;
    uint64_t context = 0; ///< contextId()
};

using PooledEvent = std::unique_ptr<CudaEvent, GiveEventBack>;

/// An event of the current device, one of a past call where there is one, so
/// that a call makes none. It may be recorded, and given back, while a stream
/// still waits for what it recorded before.
///
/// Threads  any
PooledEvent takeEvent();

} // namespace faiss_bits::gpu::detail
