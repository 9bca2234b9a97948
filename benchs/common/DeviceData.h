#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Types.h"

namespace faiss_bits::bench {

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
        (void)cudaFree(data_);
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

/// Order of the keys along every row.
enum class Order { Random, Ascending, Descending, Equal };

std::string nameOf(Order order);
std::string nameOf(DataType type);

/// Fills rows of `cols` keys of Float32 or Float16, and waits. Random keys are
/// uniform in (0, 1] (cuRAND's Philox). Half keys have few values: ordered
/// rows of them have many ties.
void fillKeys(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        Order order,
        uint64_t seed);

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
