#include "benchs/common/DeviceData.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace faiss_bits::bench {

namespace {

/// Every thread has several loads in flight; the sum keeps them alive.
__global__ void readKernel(const float4* data, int64_t count, float* sink) {
    constexpr int kUnroll = 8;
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    float sum = 0;
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    for (; i + (kUnroll - 1) * threads < count; i += kUnroll * threads) {
        float4 part[kUnroll];
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) {
            part[j] = __ldcs(data + i + j * threads);
        }
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) {
            sum += part[j].x + part[j].y + part[j].z + part[j].w;
        }
    }
    for (; i < count; i += threads) {
        const float4 part = __ldcs(data + i);
        sum += part.x + part.y + part.z + part.w;
    }
    if (sum == 12345.678f) {
        *sink = sum;
    }
}

size_t freedBytes = 0;

} // namespace

void noteFreed(size_t bytes) {
    freedBytes += bytes;
}

void waitForFreedMemory() {
    constexpr size_t kMuch = size_t(256) << 20;
    constexpr auto kLongEnough = std::chrono::milliseconds(80);
    if (freedBytes > kMuch) {
        std::this_thread::sleep_for(kLongEnough);
        freedBytes = 0;
    }
}

double measureReadBandwidth() {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const size_t bytes = std::min(size_t(1) << 32, free / 4 / 4096 * 4096);
    DeviceArray<uint8_t> data(bytes);
    DeviceArray<float> sink(1);
    BITS_CUDA_CHECK(cudaMemset(data.data(), 0, bytes));
    int device = 0;
    int multiprocessors = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &multiprocessors, cudaDevAttrMultiProcessorCount, device));

    cudaEvent_t begin;
    cudaEvent_t end;
    BITS_CUDA_CHECK(cudaEventCreate(&begin));
    BITS_CUDA_CHECK(cudaEventCreate(&end));
    float best = 1e30f;
    // The grid that reads best differs between GPUs.
    for (int blocks : {2, 4, 8, 16}) {
        for (int i = 0; i < 5; ++i) {
            BITS_CUDA_CHECK(cudaEventRecord(begin));
            readKernel<<<multiprocessors * blocks, 256>>>(
                    reinterpret_cast<const float4*>(data.data()),
                    int64_t(bytes / sizeof(float4)),
                    sink.data());
            BITS_CUDA_CHECK(cudaGetLastError());
            BITS_CUDA_CHECK(cudaEventRecord(end));
            BITS_CUDA_CHECK(cudaEventSynchronize(end));
            float ms = 0;
            BITS_CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
            best = std::min(best, ms);
        }
    }
    BITS_CUDA_CHECK(cudaEventDestroy(begin));
    BITS_CUDA_CHECK(cudaEventDestroy(end));
    return double(bytes) / (best * 1e6);
}

CacheFlush::CacheFlush() {
    int device = 0;
    int bytes = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(
            cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device));
    buffer_ = DeviceArray<uint8_t>(3 * size_t(bytes));
}

void CacheFlush::enqueue() {
    BITS_CUDA_CHECK(cudaMemsetAsync(buffer_.data(), 0, buffer_.size()));
}

} // namespace faiss_bits::bench
