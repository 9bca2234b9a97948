#include "faiss_bits/dropin/HostResults.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/dropin/HostCarrier.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/Workspace.h"

namespace faiss_bits::dropin {

namespace {

using faiss_bits::gpu::detail::makePages;
using faiss_bits::gpu::detail::wantLargePages;

constexpr size_t kPieceBytes = HostCarrier::kPieceBytes;
constexpr int kChunks = HostCarrier::kChunks;

/// Up to here one copy of both arrays takes no longer than to have pieces
/// follow each other (H200, 120 KiB).
constexpr size_t kMostAtOnce = size_t(192) << 10;
constexpr size_t kLeastChunk = size_t(256) << 10;
/// Of a thread that copies from there, besides the one that searches.
constexpr size_t kLeastOfHelper = size_t(256) << 10;
constexpr size_t kMostHelpers = 3;
constexpr size_t kCoresOfHelper = 4; // it spins for a moment
/// Of a thread, so that starting it does not count. Not tuned.
constexpr size_t kLeastOfThread = size_t(512) << 10;
constexpr size_t kMostThreads = 8; // memory's speed takes no more

/// Asked once: the system's answer takes 20 us.
size_t cores() {
    static const size_t number = std::thread::hardware_concurrency();
    return number;
}

int threadsFor(size_t bytes) {
    return int(std::clamp<size_t>(
            std::min<size_t>(cores(), bytes / kLeastOfThread),
            1,
            kMostThreads));
}

int helpersFor(size_t bytes) {
    return int(std::clamp<size_t>(
            std::min<size_t>(cores() / kCoresOfHelper, bytes / kLeastOfHelper),
            1,
            kMostHelpers));
}

/// Distances, then ids.
size_t idsAt(size_t count) {
    return WorkspaceSlices::roundUp(count * sizeof(float));
}
size_t bytesOnDevice(size_t count) {
    return idsAt(count) + count * sizeof(idx_t);
}

} // namespace

bool isPageable(const void* memory) {
    cudaPointerAttributes attributes;
    BITS_CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
    return attributes.type == cudaMemoryTypeUnregistered;
}

HostResults::HostResults(
        const Device& device,
        size_t count,
        float* distances,
        idx_t* ids,
        cudaStream_t stream)
        : count_(count),
          hostDistances_(distances),
          hostIds_(ids),
          stream_(stream),
          memory_(device.resultPool, bytesOnDevice(count), stream),
          carrier_(new HostCarrier(HostCarrier::deviceOfThread())) {
    if (bytes_() <= kMostAtOnce) {
        return;
    }
    if (bytes_() <= HostCarrier::kMostTogether) {
        const char* const landing = carrier_->landing();
        crew_.emplace(
                landing,
                std::vector<HostCrew::Array>{
                        {reinterpret_cast<char*>(distances),
                         landing,
                         count * sizeof(float)},
                        {reinterpret_cast<char*>(ids),
                         landing + idsAt(count),
                         count * sizeof(idx_t)}},
                helpersFor(bytes_()));
        outer_ = current_;
        current_ = this;
        return;
    }
    cut_(distances, this->distances(), count * sizeof(float));
    cut_(ids, this->ids(), count * sizeof(idx_t));
    pages_ = std::vector<std::atomic<Pages>>(pieces_.size());
    wantLargePages(distances, count * sizeof(float));
    wantLargePages(ids, count * sizeof(idx_t));
    const int threads = threadsFor(bytes_());
    if (threads > 1) {
        try {
            helper_ = std::async(
                    std::launch::async,
                    [this, threads, told = mayCopy_.get_future().share()] {
                        help_(1, threads, told);
                    });
        } catch (const std::system_error&) {
            // This thread copies all.
        }
    }
}

HostResults::~HostResults() {
    if (crew_) {
        current_ = outer_;
    }
    if (!helper_.valid()) {
        return;
    }
    try {
        mayCopy_.set_value(false);
    } catch (const std::future_error&) {
        // They have been told otherwise, and goHome() has thrown since.
    }
    taken_ = pieces_.size(); // no more than what is begun
    helper_.wait();
}

thread_local HostResults* HostResults::current_ = nullptr;

void HostResults::isUnderWay(const float* distances) {
    if (current_ && current_->distances() == distances) {
        current_->crew_->start();
    }
}

float* HostResults::distances() const {
    return static_cast<float*>(memory_.data());
}

idx_t* HostResults::ids() const {
    return reinterpret_cast<idx_t*>(
            static_cast<char*>(memory_.data()) + idsAt(count_));
}

size_t HostResults::bytes_() const {
    return count_ * (sizeof(float) + sizeof(idx_t));
}

void HostResults::goHome() {
    if (crew_) {
        try {
            landTogether_();
        } catch (...) {
            // Some may still be on its way to memory of another search.
            (void)cudaStreamSynchronize(stream_);
            throw;
        }
        return;
    }
    if (pieces_.empty()) {
        copyAtOnce_();
        return;
    }
    BITS_CUDA_CHECK(cudaEventRecord(carrier_->searched(), stream_));
    mayCopy_.set_value(true);
    copyPieces_(*carrier_);
    if (helper_.valid()) {
        helper_.get();
    }
}

void HostResults::copyAtOnce_() {
    static_assert(kMostAtOnce + WorkspaceSlices::kAlignment <= kPieceBytes);
    const char* pinned = carrier_->pinned(0);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            carrier_->pinned(0),
            memory_.data(),
            bytesOnDevice(count_),
            cudaMemcpyDeviceToHost,
            stream_));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::memcpy(hostDistances_, pinned, count_ * sizeof(float));
    std::memcpy(hostIds_, pinned + idsAt(count_), count_ * sizeof(idx_t));
}

void HostResults::landTogether_() {
    const size_t bytes = bytesOnDevice(count_);
    const size_t chunk = WorkspaceSlices::roundUp(
            std::max((bytes + kChunks - 1) / kChunks, kLeastChunk));
    char* const landing = carrier_->landing();
    int chunks = 0;
    for (size_t at = 0; at < bytes; at += chunk, ++chunks) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                landing + at,
                static_cast<const char*>(memory_.data()) + at,
                std::min(chunk, bytes - at),
                cudaMemcpyDeviceToHost,
                stream_));
        BITS_CUDA_CHECK(cudaEventRecord(carrier_->landed(chunks), stream_));
    }
    crew_->start();
    for (int i = 0; i < chunks; ++i) {
        BITS_CUDA_CHECK(cudaEventSynchronize(carrier_->landed(i)));
        crew_->arrived(std::min(size_t(i + 1) * chunk, bytes));
    }
    crew_->finish();
}

void HostResults::cut_(void* to, const void* from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kPieceBytes) {
        pieces_.push_back(
                {static_cast<char*>(to) + at,
                 static_cast<const char*>(from) + at,
                 std::min(kPieceBytes, bytes - at)});
    }
}

/// The first one starts the others: the thread that searches has other work.
void HostResults::help_(
        int number,
        int threads,
        std::shared_future<bool> mayCopy) {
    std::vector<std::future<void>> others; // wait where they go
    for (int other = 2; number == 1 && other < threads; ++other) {
        try {
            others.push_back(std::async(
                    std::launch::async, [this, other, threads, mayCopy] {
                        help_(other, threads, mayCopy);
                    }));
        } catch (const std::system_error&) {
            break; // those that there are copy all
        }
    }
    makePages_(number, threads);
    if (mayCopy.get()) {
        BITS_CUDA_CHECK(cudaSetDevice(carrier_->device()));
        copyPieces_(HostCarrier(carrier_->device()));
    }
    for (auto& other : others) {
        other.get();
    }
}

/// Those that help share the pieces out: thread 0 is in the search.
void HostResults::makePages_(int number, int threads) {
    const size_t share = size_t(number - 1);
    const size_t shares = size_t(threads - 1);
    for (size_t i = pieces_.size() * share / shares;
         i < pieces_.size() * (share + 1) / shares;
         ++i) {
        Pages state = Pages::Unknown;
        if (pages_[i].compare_exchange_strong(state, Pages::BeingMade)) {
            makePages(pieces_[i].to, pieces_[i].bytes);
            pages_[i] = Pages::Done;
        }
    }
}

/// Whoever is about to write to a piece: if its pages were not begun, that
/// makes them, too.
void HostResults::waitForPages_(const Piece& piece) {
    std::atomic<Pages>& pages = pages_[size_t(&piece - pieces_.data())];
    Pages state = Pages::Unknown;
    if (!pages.compare_exchange_strong(state, Pages::Done)) {
        while (pages != Pages::Done) {
            std::this_thread::yield();
        }
    }
}

const HostResults::Piece* HostResults::takePiece_() {
    const size_t number = taken_.fetch_add(1);
    return number < pieces_.size() ? &pieces_[number] : nullptr;
}

void HostResults::copyPieces_(const HostCarrier& carrier) {
    try {
        tryToCopyPieces_(carrier);
    } catch (...) {
        // One may still be on its way to memory that goes to another search.
        (void)cudaStreamSynchronize(carrier.stream());
        throw;
    }
}

void HostResults::tryToCopyPieces_(const HostCarrier& carrier) {
    const auto start = [&](const Piece* piece, int slot) {
        if (piece) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    carrier.pinned(slot),
                    piece->from,
                    piece->bytes,
                    cudaMemcpyDeviceToHost,
                    carrier.stream()));
            BITS_CUDA_CHECK(
                    cudaEventRecord(carrier.copied(slot), carrier.stream()));
        }
        return piece;
    };
    BITS_CUDA_CHECK(
            cudaStreamWaitEvent(carrier.stream(), carrier_->searched(), 0));
    const Piece* piece = start(takePiece_(), 0);
    for (int slot = 0; piece; slot = 1 - slot) {
        const Piece* next = start(takePiece_(), 1 - slot);
        BITS_CUDA_CHECK(cudaEventSynchronize(carrier.copied(slot)));
        waitForPages_(*piece);
        std::memcpy(piece->to, carrier.pinned(slot), piece->bytes);
        piece = next;
    }
}

} // namespace faiss_bits::dropin
