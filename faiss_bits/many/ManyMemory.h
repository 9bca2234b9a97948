#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "faiss_bits/common/EventPool.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/Waiting.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Temporary memory of one group: FAISS's allocator is a stack, so that it is
/// let go of in the reverse order.
class MemoryStack {
   public:
    MemoryStack() = default;
    MemoryStack(const MemoryStack&) = delete;
    MemoryStack& operator=(const MemoryStack&) = delete;
    ~MemoryStack() {
        letGo();
    }
    void letGo() {
        while (!taken_.empty()) {
            taken_.pop_back();
        }
    }

    void* take(const GpuContext& context, size_t bytes) {
        taken_.push_back(allocTemporary(context, bytes));
        return taken_.back().get();
    }

   private:
    std::vector<TemporaryMemory> taken_;
};

/// What is on a stream at some time.
struct StreamMark {
    /// The current device is the stream's.
    void record(cudaStream_t on) {
        stream = on;
        event = takeEvent();
        event->record(on);
    }
    /// The same, or nothing where all of it is done by now: then nobody has to
    /// wait, and no thread of another device has to ask this one, which is busy
    /// with the launches of its own.
    void recordUnlessIdle(cudaStream_t on) {
        if (!isIdle(on)) {
            record(on);
        }
    }
    void holdUp(cudaStream_t other) const {
        if (event && other != stream) {
            event->holdUp(other);
        }
    }
    /// The same, and nothing where it is done by now: to ask takes less than to
    /// make one device wait for another.
    void holdUpUnlessDone(cudaStream_t other) const {
        if (event && other != stream && !event->isDone()) {
            event->holdUp(other);
        }
    }
    /// Whatever comes of it: for who has an error of its own to report.
    void wait() const {
        try {
            if (event) {
                event->wait();
            }
        } catch (const std::exception&) {
            (void)cudaGetLastError();
        }
    }
    cudaStream_t stream = nullptr;
    PooledEvent event;
};

} // namespace faiss_bits::gpu::detail
