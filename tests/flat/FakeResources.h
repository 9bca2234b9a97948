#pragma once

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/FaissCompat.h"
#include "tests/flat/FakeCuda.h"

namespace faiss_bits::test {

/// Memory that is overwritten, in the order of its stream, when it is released.
class FakeResources : public faiss::gpu::GpuResources {
   public:
    explicit FakeResources(size_t pinnedBytes) : pinned_(pinnedBytes) {
        stream_ = fake::makeStream();
        copyStream_ = fake::makeStream();
        fake::markPinned(pinned_.data(), pinnedBytes);
    }

    void initializeForDevice(int) override {}
    cublasHandle_t getBlasHandle(int) override {
        return nullptr;
    }
    cudaStream_t getDefaultStream(int) override {
        return stream_;
    }
    void setDefaultStream(int, cudaStream_t) override {}
    std::vector<cudaStream_t> getAlternateStreams(int) override {
        return {};
    }
    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        // Whoever had it before may still be at work, in stream order.
        memory_.emplace_back(request.size);
        auto& bytes = memory_.back();
        fake::markDevice(bytes.data(), bytes.size());
        overwrite(bytes.data(), bytes.size());
        return bytes.data();
    }
    void deallocMemory(int, void* data) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto& bytes : memory_) {
            if (bytes.data() == data) {
                overwrite(bytes.data(), bytes.size());
            }
        }
    }
    size_t getTempMemoryAvailable(int) const override {
        return size_t(1) << 30;
    }
    std::pair<void*, size_t> getPinnedMemory() override {
        return {pinned_.empty() ? nullptr : pinned_.data(), pinned_.size()};
    }
    cudaStream_t getAsyncCopyStream(int) override {
        return copyStream_;
    }
#if FAISS_BITS_FAISS_VERSION >= 10900
    bool supportsBFloat16(int) override {
        return true;
    }
#endif

   private:
    void overwrite(char* data, size_t bytes) {
        fake::enqueue(stream_, [=] { std::memset(data, 0xEE, bytes); });
    }

    std::mutex mutex_; // threads of a test may share them
    std::vector<char> pinned_;
    std::vector<std::vector<char>> memory_;
    cudaStream_t stream_ = nullptr;
    cudaStream_t copyStream_ = nullptr;
};

} // namespace faiss_bits::test
