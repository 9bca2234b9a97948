#include "faiss_bits/common/CallStream.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace faiss_bits::gpu::detail {

namespace {

thread_local CallStream* current = nullptr;

/// Events of past calls, so that a call makes none. An event may be recorded
/// anew while a stream still waits for what it recorded before.
class EventPool {
   public:
    std::unique_ptr<CudaEvent> take(int device) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            auto& events = events_[device];
            if (!events.empty()) {
                auto event = std::move(events.back());
                events.pop_back();
                return event;
            }
        }
        return std::make_unique<CudaEvent>();
    }

    void giveBack(int device, std::unique_ptr<CudaEvent> event) {
        const std::lock_guard<std::mutex> lock(mutex_);
        events_[device].push_back(std::move(event));
    }

    static EventPool& instance() {
        // Never destroyed: the CUDA driver may be gone by then.
        static auto& pool = *new EventPool;
        return pool;
    }

   private:
    std::mutex mutex_;
    std::map<int, std::vector<std::unique_ptr<CudaEvent>>> events_;
};

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
        event_ = EventPool::instance().take(device_);
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
        EventPool::instance().giveBack(device_, std::move(event_));
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
