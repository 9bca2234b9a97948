#pragma once

#include <utility>
#include <vector>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::words {

/// Memory of the current device that is kept, and grows when more is needed.
template <class T>
class DeviceMemory {
   public:
    DeviceMemory() = default;
    ~DeviceMemory() {
        (void)cudaFree(data_);
    }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// Room for so many; what was there may be lost. Waits for the device when
    /// it grows.
    void reserve(size_t count) {
        if (count <= capacity_) {
            return;
        }
        (void)cudaFree(data_);
        data_ = nullptr;
        capacity_ = 0;
        BITS_CUDA_CHECK(cudaMalloc(&data_, count * sizeof(T)));
        capacity_ = count;
    }

    /// Becomes a copy. Waits.
    void copy(const T* from, size_t count) {
        reserve(count);
        if (count > 0) {
            BITS_CUDA_CHECK(cudaMemcpy(
                    data_, from, count * sizeof(T), cudaMemcpyHostToDevice));
        }
    }
    void copy(const std::vector<T>& from) {
        copy(from.data(), from.size());
    }

    T* data() const {
        return data_;
    }
    size_t capacity() const {
        return capacity_;
    }

   private:
    T* data_ = nullptr;
    size_t capacity_ = 0;
};

} // namespace faiss_bits::words
