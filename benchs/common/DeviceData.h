#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_runtime_api.h>

#include "benchs/common/Keys.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

/// Remembers that so much device memory was freed.
void noteFreed(size_t bytes);

/// Sleeps a little if much was freed since the last call. Without it the first
/// method after a cell with large results lost a tenth of its bandwidth (H200,
/// 4096 x 2^18, k = 1, in two runs); the cause is likely the driver, which
/// clears freed memory.
void waitForFreedMemory();

/// Device memory that goes with its owner.
template <class T>
class DeviceArray {
   public:
    DeviceArray() = default;
    explicit DeviceArray(size_t count) : size_(count) {
        BITS_CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T) + 1));
    }
    DeviceArray(DeviceArray&& other) noexcept {
        *this = std::move(other);
    }
    DeviceArray& operator=(DeviceArray&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~DeviceArray() {
        if (data_) {
            (void)cudaFree(data_);
            noteFreed(size_ * sizeof(T));
        }
    }
    T* data() const {
        return data_;
    }
    size_t size() const {
        return size_;
    }

   private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

/// GB/s of 16-byte loads of 4 GiB (a quarter of the free memory, where that is
/// less): the best of several passes.
double measureReadBandwidth();

/// Displaces what the L2 holds. Enqueues on the default stream.
class CacheFlush {
   public:
    CacheFlush();
    void enqueue();

   private:
    DeviceArray<uint8_t> buffer_;
};

} // namespace faiss_bits::bench
