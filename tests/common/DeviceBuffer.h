#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::test {

/// Device memory of a test, with guard bytes on both sides that must be what
/// they were when the buffer goes: a stray write fails the test.
///
/// The memory starts as `fill` bytes: 0xFF by default, which is NaN as a float
/// and -1 as an id. `shift` moves the first element that many elements off the
/// 256-byte alignment. All calls wait for the device, also for work on
/// non-blocking streams.
template <class T>
class DeviceBuffer {
   public:
    static constexpr size_t kGuardBytes = 512;

    DeviceBuffer() = default;

    explicit DeviceBuffer(size_t count, int fill = 0xFF, size_t shift = 0)
            : count_(count),
              fill_(fill),
              lead_(kGuardBytes + shift * sizeof(T)),
              capacity_(bytesWithGuards()) {
        BITS_CUDA_CHECK(cudaMalloc(&memory_, capacity_));
        fillWithGuards();
    }

    DeviceBuffer(
            const std::vector<T>& values,
            int fill = 0xFF,
            size_t shift = 0)
            : DeviceBuffer(values.size(), fill, shift) {
        upload(values);
    }

    /// Becomes `count` elements of `fill` bytes between new guards, in the same
    /// memory where that is large enough: allocating takes longer than most
    /// runs. The elements keep their alignment; the old guards are not checked.
    void reset(size_t count, int fill) {
        count_ = count;
        fill_ = fill;
        if (!memory_ || bytesWithGuards() > capacity_) {
            const size_t shift =
                    memory_ ? (lead_ - kGuardBytes) / sizeof(T) : 0;
            (void)cudaFree(memory_);
            memory_ = nullptr;
            *this = DeviceBuffer(count, fill, shift);
            return;
        }
        fillWithGuards();
    }

    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;

    DeviceBuffer(DeviceBuffer&& other) noexcept {
        swap(other);
    }

    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        swap(other);
        return *this;
    }

    ~DeviceBuffer() {
        if (memory_) {
            expectGuardsIntact();
            (void)cudaFree(memory_);
        }
    }

    T* data() const {
        return reinterpret_cast<T*>(memory_ + lead_);
    }

    size_t size() const {
        return count_;
    }

    void upload(const std::vector<T>& values) {
        BITS_CUDA_CHECK(cudaMemcpy(
                data(),
                values.data(),
                values.size() * sizeof(T),
                cudaMemcpyHostToDevice));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    std::vector<T> download() const {
        std::vector<T> values(count_);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        BITS_CUDA_CHECK(cudaMemcpy(
                values.data(),
                data(),
                count_ * sizeof(T),
                cudaMemcpyDeviceToHost));
        return values;
    }

    /// Overwrites the elements, not the guards.
    void fillBytes(int value) {
        BITS_CUDA_CHECK(cudaMemset(data(), value, count_ * sizeof(T)));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    void expectGuardsIntact() const {
        std::vector<uint8_t> front(lead_);
        std::vector<uint8_t> back(kGuardBytes);
        const uint8_t* end = memory_ + lead_ + count_ * sizeof(T);
        cudaError_t status = cudaDeviceSynchronize();
        if (status == cudaSuccess) {
            status = cudaMemcpy(
                    front.data(), memory_, lead_, cudaMemcpyDeviceToHost);
        }
        if (status == cudaSuccess) {
            status = cudaMemcpy(
                    back.data(), end, kGuardBytes, cudaMemcpyDeviceToHost);
        }
        if (status != cudaSuccess) {
            ADD_FAILURE() << "the device failed: "
                          << cudaGetErrorString(status);
            return;
        }
        EXPECT_EQ(firstChange(front), -1)
                << "a byte before the buffer was written";
        EXPECT_EQ(firstChange(back), -1)
                << "a byte behind the buffer was written";
    }

   private:
    size_t bytesWithGuards() const {
        return lead_ + count_ * sizeof(T) + kGuardBytes;
    }

    void fillWithGuards() {
        BITS_CUDA_CHECK(cudaMemset(memory_, fill_, bytesWithGuards()));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    long firstChange(const std::vector<uint8_t>& guard) const {
        for (size_t i = 0; i < guard.size(); ++i) {
            if (guard[i] != uint8_t(fill_)) {
                return long(i);
            }
        }
        return -1;
    }

    void swap(DeviceBuffer& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(count_, other.count_);
        std::swap(fill_, other.fill_);
        std::swap(lead_, other.lead_);
        std::swap(capacity_, other.capacity_);
    }

    uint8_t* memory_ = nullptr;
    size_t count_ = 0;
    int fill_ = 0xFF;
    size_t lead_ = 0;
    size_t capacity_ = 0; // bytes
};

} // namespace faiss_bits::test
