#pragma once

#include <string>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::test {

/// A stream that does not wait for the default stream.
class TestStream {
   public:
    TestStream() {
        BITS_CUDA_CHECK(
                cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    TestStream(const TestStream&) = delete;
    TestStream& operator=(const TestStream&) = delete;
    ~TestStream() {
        (void)cudaStreamDestroy(stream_);
    }
    operator cudaStream_t() const {
        return stream_;
    }

   private:
    cudaStream_t stream_ = nullptr;
};

inline bool hasCudaDevice() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
        return false;
    }
    // Any other error is a failure, not a machine without a GPU.
    BITS_CUDA_CHECK(status);
    return count > 0;
}

/// Multiprocessors of the current device.
inline int multiprocessorCount() {
    int device = 0;
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

/// True if the device can give `bytes` and keep some to spare.
inline bool hasFreeMemory(size_t bytes) {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free > bytes + (size_t(1) << 30);
}

/// True in tests of the subset that compute-sanitizer runs.
inline bool isSmallTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return test &&
            (std::string(test->test_suite_name()) + test->name())
                    .find("Small") != std::string::npos;
}

/// Fixture of every test that needs a device: skips, by name, where there is
/// none or it lacks what the tests need, and fails a test that leaves a CUDA
/// error behind.
class GpuTest : public ::testing::Test {
   protected:
    /// Why the device is not one for these tests; empty: it is. Asked only
    /// where there is one.
    virtual std::string lack() const {
        return "";
    }

    /// Before a test that is not skipped.
    virtual void prepare() {}

    /// Final, so that no fixture asks a device that is not there.
    void SetUp() final {
        if (!hasCudaDevice()) {
            GTEST_SKIP() << "no CUDA device";
        }
        (void)cudaGetLastError();
        if (const std::string reason = lack(); !reason.empty()) {
            GTEST_SKIP() << reason;
        }
        prepare();
    }

    void TearDown() override {
        if (IsSkipped() || !hasCudaDevice()) {
            return;
        }
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess)
                << "the test left a CUDA error behind";
    }
};

} // namespace faiss_bits::test
