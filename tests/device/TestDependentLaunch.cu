/// A launch that may begin while the kernel before it runs, by code that can
/// wait and by code that cannot.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/DependentLaunch.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/device/LateWord.h"

namespace faiss_bits::test {
namespace {

constexpr uint32_t kWritten = 0x5EED;

/// Lets the next kernel begin, and writes the word some 20 ms later.
__global__ void slowWriterKernel(const __grid_constant__ LateWord p) {
    allowNext();
    const long long begin = clock64();
    while (clock64() - begin < 40'000'000) {
    }
    *p.word = kWritten;
}

__global__ void readerKernel(const __grid_constant__ LateWord p) {
    waitForPrevious();
    *p.read = *static_cast<volatile uint32_t*>(p.word);
}

/// Whether waitForPrevious() is anything in this code.
__global__ void hasWaitKernel(const __grid_constant__ LateWord p) {
#if __CUDA_ARCH__ >= 900
    *p.read = 1;
#else
    *p.read = 0;
#endif
}

class DependentLaunch : public GpuTest {
   protected:
    /// What a reader finds behind the slow writer, a few times.
    template <class Launch>
    void expectReadsWhatWasWritten(Launch launchReader) {
        const TestStream stream;
        for (int i = 0; i < 3; ++i) {
            const DeviceBuffer<uint32_t> word(std::vector<uint32_t>{0});
            const DeviceBuffer<uint32_t> read(std::vector<uint32_t>{1});
            const LateWord params{word.data(), read.data()};
            // Both kernels are loaded before the first one runs.
            launchReader(params, stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            slowWriterKernel<<<1, 1, 0, stream>>>(params);
            BITS_CUDA_CHECK(cudaGetLastError());
            launchReader(params, stream);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            EXPECT_EQ(read.download(), std::vector<uint32_t>{kWritten});
        }
    }
};

TEST_F(DependentLaunch, OfThisBuildsOwnCode) {
    expectReadsWhatWasWritten([](const LateWord& params, cudaStream_t stream) {
        launchAfterPrevious(readerKernel, 1, 1, 0, stream, params);
    });
}

/// Has no wait in it, though the device knows one.
TEST_F(DependentLaunch, OfOlderPtx) {
    expectReadsWhatWasWritten(launchOldReader);
}

TEST_F(DependentLaunch, TheKernelsCodeDecides) {
    EXPECT_FALSE(oldReaderCanWait());
    const DeviceBuffer<uint32_t> word(1);
    const DeviceBuffer<uint32_t> has(1);
    hasWaitKernel<<<1, 1>>>({word.data(), has.data()});
    BITS_CUDA_CHECK(cudaGetLastError());
    const void* kernel = reinterpret_cast<const void*>(hasWaitKernel);
    EXPECT_EQ(canWaitForPrevious(kernel), has.download()[0] == 1);
}

} // namespace
} // namespace faiss_bits::test
