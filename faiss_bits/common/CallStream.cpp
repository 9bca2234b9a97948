#include "faiss_bits/common/CallStream.h"

#include <utility>

namespace faiss_bits::gpu::detail {

namespace {

thread_local CallStream* current = nullptr;

} // namespace

CallStream::CallStream(
        std::shared_ptr<faiss::gpu::GpuResources> resources,
        int device,
        cudaStream_t stream,
        bool arraysAreOnDevice)
        : resources_(std::move(resources)),
          device_(device),
          stream_(stream),
          arraysAreOnDevice_(arraysAreOnDevice),
          defaultStream_(resources_->getDefaultStream(device)),
          outer_(current) {
    if (stream_ != defaultStream_ && !isCaptured(stream_)) {
        event_ = takeEvent();
        // Not asked first whether there is anything to wait for: it has what
        // the last call left, and to be told so takes as long.
        event_->record(defaultStream_);
        event_->holdUp(stream_);
    }
    current = this;
}

CallStream::~CallStream() {
    current = outer_;
    if (!event_) {
        return;
    }
    try {
        event_->record(stream_);
        event_->holdUp(defaultStream_);
    } catch (...) {
        // A device that has failed says so at the next call.
    }
}

CallStream* CallStream::find(
        const faiss::gpu::GpuResources& resources,
        int device) {
    CallStream* call = current;
    while (call &&
           (call->resources_.get() != &resources || call->device_ != device)) {
        call = call->outer_;
    }
    return call;
}

cudaStream_t streamOf(faiss::gpu::GpuResources& resources, int device) {
    const CallStream* call = CallStream::find(resources, device);
    return call ? call->stream() : resources.getDefaultStream(device);
}

} // namespace faiss_bits::gpu::detail
