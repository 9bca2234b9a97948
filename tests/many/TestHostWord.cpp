/// A word that a kernel brings to the host.

#include <thread>
#include <vector>

#include "kernels/common/HostWord.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class HostWord : public GpuTest {};

TEST_F(HostWord, SmallIsWhatTheStreamHasWritten) {
    const DeviceBuffer<uint32_t> words(
            std::vector<uint32_t>{0, 1, 4294967295u, 77});
    for (int i = 0; i < 4; ++i) {
        const auto want = words.download()[i];
        EXPECT_EQ(waitForWord(words.data() + i, nullptr), want);
    }
}

/// Of work that takes a while, and as often as the stream has new work.
TEST_F(HostWord, SmallComesAfterWhatIsOnTheStream) {
    DeviceBuffer<uint32_t> words(size_t(1) << 24);
    cudaStream_t stream = nullptr;
    BITS_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int byte = 1; byte < 20; ++byte) {
        for (int i = 0; i < 5; ++i) {
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    words.data(), byte, sizeof(uint32_t) << 24, stream));
        }
        EXPECT_EQ(
                waitForWord(words.data() + (1 << 24) - 1, stream),
                0x01010101u * uint32_t(byte));
    }
    BITS_CUDA_CHECK(cudaStreamDestroy(stream));
}

/// Threads have a word each, which goes when they end.
TEST_F(HostWord, SmallThreadsAtOnce) {
    std::vector<uint32_t> values;
    for (uint32_t i = 0; i < 64; ++i) {
        values.push_back(i * 1000003u);
    }
    const DeviceBuffer<uint32_t> words(values);
    for (int run = 0; run < 3; ++run) {
        std::vector<std::thread> threads;
        std::vector<int> wrong(8);
        for (int t = 0; t < 8; ++t) {
            threads.emplace_back([&, t] {
                cudaStream_t stream = nullptr;
                BITS_CUDA_CHECK(cudaStreamCreateWithFlags(
                        &stream, cudaStreamNonBlocking));
                for (int i = 0; i < 200; ++i) {
                    const int at = (t * 8 + i) % 64;
                    wrong[t] += waitForWord(words.data() + at, stream) !=
                            values[at];
                }
                BITS_CUDA_CHECK(cudaStreamDestroy(stream));
            });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        for (int t = 0; t < 8; ++t) {
            EXPECT_EQ(wrong[t], 0) << "thread " << t;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
