#include "faiss_bits/common/Waiting.h"

#include <chrono>
#include <thread>
#include <utility>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSpin = std::chrono::milliseconds(1);
constexpr auto kSleep = std::chrono::microseconds(50);
constexpr auto kAsk = std::chrono::milliseconds(20);

/// cudaErrorNotReady is an answer, but stays behind as the last error.
bool isReady(cudaError_t status) {
    if (status == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return false;
    }
    BITS_CUDA_CHECK(status);
    return true;
}

} // namespace

void waitFor(cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

bool isIdle(cudaStream_t stream) {
    return isReady(cudaStreamQuery(stream));
}

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    BITS_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

void requireNoCapture(cudaStream_t stream, const char* call) {
    FAISS_THROW_IF_NOT_FMT(
            !isCaptured(stream),
            "%s waits for the device, which a capture of its stream forbids",
            call);
}

void waitInterruptibly(const std::function<bool()>& isDone) {
    const auto start = Clock::now();
    auto asked = start;
    throwIfInterrupted();
    while (!isDone()) {
        const auto now = Clock::now();
        if (now - asked >= kAsk) {
            throwIfInterrupted();
            asked = now;
        }
        if (now - start >= kSpin) {
            std::this_thread::sleep_for(kSleep);
        }
    }
}

CudaEvent::CudaEvent() {
    BITS_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}

CudaEvent::~CudaEvent() {
    (void)cudaEventDestroy(event_);
}

void CudaEvent::record(cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaEventRecord(event_, stream));
}

void CudaEvent::holdUp(cudaStream_t stream) const {
    BITS_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
}

bool CudaEvent::isDone() const {
    return isReady(cudaEventQuery(event_));
}

void CudaEvent::wait() const {
    BITS_CUDA_CHECK(cudaEventSynchronize(event_));
}

void WorkMark::set(cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!event_) {
        event_ = std::make_unique<CudaEvent>();
    }
    event_->record(stream);
    isDone_ = false;
}

void WorkMark::holdUp(cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (isDone_ || isCaptured(stream)) {
        return;
    }
    isDone_ = event_->isDone();
    if (!isDone_) {
        event_->holdUp(stream);
    }
}

ScopedMark::~ScopedMark() {
    try {
        mark_.set(stream_);
    } catch (...) {
        // A device that has failed says so at the next call.
    }
}

ScopedWait::ScopedWait(std::vector<cudaStream_t> streams)
        : streams_(std::move(streams)) {}

ScopedWait::~ScopedWait() {
    for (cudaStream_t stream : streams_) {
        (void)cudaStreamSynchronize(stream);
    }
}

} // namespace faiss_bits::gpu::detail
