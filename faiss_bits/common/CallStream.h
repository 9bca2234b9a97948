#pragma once

#include <memory>
#include <utility>

#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/EventPool.h"

/// On which stream a call goes. Not part of the API.
namespace faiss_bits::gpu::detail {

/// While it lives, calls of ours that this thread makes on these resources and
/// this device, which is the current one, are ordered on a stream of the
/// caller's in place of the resources' default stream.
///
/// Order    they come after what is on the default stream now, and what comes
///          onto that later comes after them, as if the default stream had been
///          set and set back; temporary memory counts as used on the default
///          stream
/// Capture  where the stream is being captured there is no such order: what the
///          graph reads must be complete when it is launched, and nothing else
///          may run on these resources meanwhile
/// Cost     five calls of CUDA; one in a capture, and none where the stream is
///          the default stream. To set the default stream and set it back takes
///          eight
class CallStream {
   public:
    /// arraysAreOnDevice: those that the first call is given, so that nobody
    /// has to ask CUDA where they lie.
    CallStream(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int device,
            cudaStream_t stream,
            bool arraysAreOnDevice = false);
    ~CallStream();
    CallStream(const CallStream&) = delete;
    CallStream& operator=(const CallStream&) = delete;

    /// The innermost of this thread on these resources and this device, or
    /// null.
    static CallStream* find(
            const faiss::gpu::GpuResources& resources,
            int device);

    cudaStream_t stream() const {
        return stream_;
    }
    /// What is known of the arrays of the call that asks first; false for
    /// others, such as one that a selector makes while the first one asks it.
    bool takeArraysAreOnDevice() {
        return std::exchange(arraysAreOnDevice_, false);
    }

   private:
    std::shared_ptr<faiss::gpu::GpuResources> resources_;
    int device_;
    cudaStream_t stream_;
    bool arraysAreOnDevice_;
    cudaStream_t defaultStream_;
    PooledEvent event_; // where order is wanted
    CallStream* outer_;
};

/// The stream for calls of this thread: CallStream's, or the default stream.
cudaStream_t streamOf(faiss::gpu::GpuResources& resources, int device);

} // namespace faiss_bits::gpu::detail
