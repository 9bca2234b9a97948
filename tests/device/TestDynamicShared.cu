/// The limit of dynamic shared memory that host threads share.

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/DynamicShared.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr size_t kSome = 56 * 1024;
constexpr size_t kMore = 96 * 1024; // every device of 8.0 and up has it

/// Writes and reads the last word that it was given.
__global__ void lastWordKernel(size_t bytes, uint32_t* out) {
    extern __shared__ uint32_t words[];
    uint32_t& last = words[bytes / 4 - 1];
    last = uint32_t(bytes);
    *out = last;
}

void launch(size_t bytes, uint32_t* out, cudaStream_t stream) {
    ASSERT_EQ(allowSharedBytes(lastWordKernel, bytes), bytes);
    lastWordKernel<<<1, 1, bytes, stream>>>(bytes, out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

class DynamicShared : public GpuTest {};

TEST_F(DynamicShared, SmallLimitIsNeverLowered) {
    DeviceBuffer<uint32_t> out(1);
    launch(kMore, out.data(), nullptr);
    launch(kSome, out.data(), nullptr);
    // As by another thread that had asked before.
    lastWordKernel<<<1, 1, kMore>>>(kMore, out.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(out.download()[0], kMore);
    EXPECT_EQ(allowSharedBytes(lastWordKernel, 100), 100u);
    int device = 0;
    int most = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    EXPECT_EQ(allowSharedBytes(lastWordKernel, size_t(1) << 30), size_t(most));
}

TEST_F(DynamicShared, SmallThreadsDoNotTakeItFromEachOther) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (size_t bytes : {kSome, kMore, kSome + 4096, kMore - 4096}) {
        threads.emplace_back([&failed, bytes, device] {
            try {
                BITS_CUDA_CHECK(cudaSetDevice(device));
                cudaStream_t stream;
                BITS_CUDA_CHECK(cudaStreamCreate(&stream));
                DeviceBuffer<uint32_t> out(1);
                for (int i = 0; i < 2000; ++i) {
                    launch(bytes, out.data(), stream);
                }
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                BITS_CUDA_CHECK(cudaStreamDestroy(stream));
                failed += out.download()[0] != bytes;
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
                ++failed;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(failed, 0);
}

} // namespace
} // namespace faiss_bits::test
