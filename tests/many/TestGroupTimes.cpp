/// What GroupTimes learns of searches that wait, and of others.

#include <chrono>
#include <thread>

#include "faiss_bits/many/GroupSpeeds.h"
#include "kernels/common/CudaCheck.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::GroupTimes;

class GroupTimesTest : public GpuTest {};

/// A call in which each of two groups searches 4,096 queries for 20 ms, and
/// group 1 begins when group 0 has ended.
void callOf(GroupTimes& times, double late) {
    times.newCall();
    for (int group = 0; group < 2; ++group) {
        times.begin(group, nullptr, 4096, group == 1 ? late : 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        times.end(group, nullptr);
    }
}

/// Nothing is on the stream when a search ends: the host's time from the call
/// on counts, not the search's own.
TEST_F(GroupTimesTest, SmallSearchesThatWait) {
    GroupTimes times(2);
    for (int call = 0; call < 8; ++call) {
        callOf(times, 0);
    }
    const auto speeds = times.newCall();
    EXPECT_GT(speeds[0], speeds[1] + 0.08);

    // What it is known to begin later is no slowness.
    GroupTimes fair(2);
    for (int call = 0; call < 8; ++call) {
        callOf(fair, 20e-3);
    }
    const auto even = fair.newCall();
    EXPECT_NEAR(even[0], even[1], 0.07);
}

/// The host is ahead of the device: it says nothing of how long a search takes,
/// and the stream's events do.
TEST_F(GroupTimesTest, SmallSearchesThatDoNotWait) {
    constexpr size_t kBytes = size_t(64) << 20;
    DeviceBuffer<uint8_t> memory(kBytes);
    GroupTimes times(2);
    for (int call = 0; call < 5; ++call) {
        times.newCall();
        for (int group = 0; group < 2; ++group) {
            times.begin(group, nullptr, 4096, 0);
            for (int i = 0; i < (group == 0 ? 100 : 200); ++i) {
                BITS_CUDA_CHECK(
                        cudaMemsetAsync(memory.data(), i, kBytes, nullptr));
            }
            times.end(group, nullptr);
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
    }
    const auto speeds = times.newCall();
    EXPECT_GT(speeds[0], speeds[1] + 0.03);
}

} // namespace
} // namespace faiss_bits::test
