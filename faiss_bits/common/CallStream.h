#pragma once

#include <memory>

#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/Waiting.h"

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
/// Cost     four calls of CUDA; six, and one that clears an error, where the
///          default stream has work; one in a capture, and none where the
///          stream is the default stream. To set the default stream and set it
///          back takes eight
class CallStream {
   public:
    CallStream(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int device,
            cudaStream_t stream);
    ~CallStream();
    CallStream(const CallStream&) = delete;
    CallStream& operator=(const CallStream&) = delete;

   private:
    std::shared_ptr<faiss::gpu::GpuResources> resources_;
    int device_;
    cudaStream_t stream_;
    cudaStream_t defaultStream_;
    std::unique_ptr<CudaEvent> event_; // where order is wanted
    const CallStream* outer_;

    friend cudaStream_t streamOf(faiss::gpu::GpuResources&, int);
};

/// The stream for calls of this thread: CallStream's, or the default stream.
cudaStream_t streamOf(faiss::gpu::GpuResources& resources, int device);

} // namespace faiss_bits::gpu::detail
