/// What the library knows of a GPU, and scratch memory on it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/common/DeviceTraits.h"

namespace faiss_bits::dropin {

struct Device {
    DeviceTraits traits;
    cudaMemPool_t pool = nullptr; ///< nullptr: the driver has none
    /// For what lives while FAISS's whole search runs: what `pool` keeps is of
    /// one call at a time.
    cudaMemPool_t resultPool = nullptr;
};

/// The calling thread's device, looked at once in the life of the process;
/// safe under graph capture. Throws Error where this build cannot run on it:
/// a driver that is older than the CUDA runtime inside, or no kernels for its
/// architecture.
const Device& currentDevice();

/// Lets the thread make calls that a capture on another stream would forbid.
class RelaxedCapture {
   public:
    RelaxedCapture();
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Scratch for one call, from a memory pool of a Device: FAISS's allocator
/// cannot be reached from the functions that we replace.
///
/// Stream   taken and given back in the order of `stream`; nothing waits, also
///          on the default stream; nodes of the graph under capture
/// Memory   a pool keeps at most kKeptBytes a device for later calls; once a
///          call took more, as much as that, but no more than kMostKeptBytes,
///          as to take it from the driver anew would cost more than a search
/// Errors   throws Error when there is not enough, or no pool; the caller then
///          lets FAISS's own function run, which needs none
class Scratch {
   public:
    static constexpr size_t kKeptBytes = size_t(256) << 20;
    static constexpr size_t kMostKeptBytes = size_t(1) << 30;

    /// pool: nullptr if the driver has none.
    Scratch(cudaMemPool_t pool, size_t bytes, cudaStream_t stream);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /// nullptr for no bytes.
    void* data() const {
        return data_;
    }

   private:
    void* data_ = nullptr;
    cudaStream_t stream_;
};

} // namespace faiss_bits::dropin
