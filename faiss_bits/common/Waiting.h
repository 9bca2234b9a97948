#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "faiss_bits/common/Interrupt.h"

/// What waits for the GPU, and how. Not part of the API.
namespace faiss_bits::gpu::detail {

void waitFor(cudaStream_t stream);

/// True if nothing is left to do on the stream.
bool isIdle(cudaStream_t stream);

/// True while work on the stream goes into a graph and is not run. Nothing may
/// wait for the stream then, and no memory can be taken.
bool isCaptured(cudaStream_t stream);

/// Throws FaissException then, in the name of a call that has to wait.
void requireNoCapture(cudaStream_t stream, const char* call);

using faiss_bits::detail::throwIfInterrupted;

/// Waits until isDone() says so. Asks faiss::InterruptCallback once, and again
/// every 20 ms; throws what throwIfInterrupted does. Spins for a millisecond,
/// then sleeps between questions.
void waitInterruptibly(const std::function<bool()>& isDone);

/// An event of the current device, without a time.
class CudaEvent {
   public:
    CudaEvent();
    ~CudaEvent();
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;

    void record(cudaStream_t stream);
    /// The stream goes on when what was recorded is done.
    void holdUp(cudaStream_t stream) const;
    bool isDone() const;
    void wait() const;

   private:
    cudaEvent_t event_ = nullptr;
};

/// Says when work on one stream is done, to calls on others and in any thread.
class WorkMark {
   public:
    /// The work is what is on the stream now; the current device is the
    /// stream's.
    void set(cudaStream_t stream);

    /// The stream goes on when the work is done. A stream that is being
    /// captured is left alone: what a graph reads is complete when it is
    /// launched. Once the work is known to be done this makes no call of CUDA.
    void holdUp(cudaStream_t stream);

   private:
    std::mutex mutex_;
    bool isDone_ = true; // known to be
    std::unique_ptr<CudaEvent> event_;
};

/// Sets the mark when it goes, also where something throws.
class ScopedMark {
   public:
    ScopedMark(WorkMark& mark, cudaStream_t stream)
            : mark_(mark), stream_(stream) {}
    ~ScopedMark();
    ScopedMark(const ScopedMark&) = delete;
    ScopedMark& operator=(const ScopedMark&) = delete;

   private:
    WorkMark& mark_;
    cudaStream_t stream_;
};

/// Waits for its streams when it goes, unless it was dismissed: copies to and
/// from the caller's memory end before an exception reaches the caller.
class ScopedWait {
   public:
    explicit ScopedWait(std::vector<cudaStream_t> streams);
    ~ScopedWait();
    ScopedWait(const ScopedWait&) = delete;
    ScopedWait& operator=(const ScopedWait&) = delete;

    void dismiss() {
        streams_.clear();
    }

   private:
    std::vector<cudaStream_t> streams_;
};

} // namespace faiss_bits::gpu::detail
