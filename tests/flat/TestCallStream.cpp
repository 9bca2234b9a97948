/// CallStream on streams without a GPU: work of a call comes after what the
/// resources' stream had before and before what it gets later, in whatever
/// order a device does the rest; a capture is left alone.

#include <thread>

#include <gtest/gtest.h>

#include "faiss_bits/common/CallStream.h"
#include "faiss_bits/common/GpuStaging.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;
using fake::Schedule;

class CallStreams : public ::testing::TestWithParam<Schedule> {
   protected:
    void SetUp() override {
        fake::reset(GetParam(), 7);
        resources = std::make_shared<FakeResources>(0);
        own = resources->getDefaultStream(0);
        other = fake::makeStream();
    }

    /// Appends a letter to `log`, in the order of a stream.
    void write(cudaStream_t stream, char letter) {
        fake::enqueue(stream, [this, letter] { log += letter; });
    }

    std::string log;
    std::shared_ptr<FakeResources> resources;
    cudaStream_t own = nullptr;
    cudaStream_t other = nullptr;
};

TEST_P(CallStreams, ComesAfterAndBefore) {
    for (int round = 0; round < 200; ++round) {
        log.clear();
        write(own, 'a');
        {
            CallStream call(resources, 0, other);
            write(streamOf(*resources, 0), 'b');
        }
        write(streamOf(*resources, 0), 'c');
        {
            CallStream call(resources, 0, other);
            write(streamOf(*resources, 0), 'd');
        }
        write(own, 'e');
        fake::finishAll();
        ASSERT_EQ(log, "abcde") << "round " << round;
    }
}

TEST_P(CallStreams, IsTheStreamOfItsScope) {
    ASSERT_EQ(streamOf(*resources, 0), own);
    const auto stranger = std::make_shared<FakeResources>(0);
    const cudaStream_t third = fake::makeStream();
    {
        CallStream call(resources, 0, other);
        const GpuContext context = contextOf(*resources, 0);
        EXPECT_EQ(context.stream, other);
        EXPECT_EQ(context.memoryStream, own);
        EXPECT_EQ(streamOf(*stranger, 0), stranger->getDefaultStream(0));
        {
            CallStream inner(stranger, 0, third);
            EXPECT_EQ(streamOf(*resources, 0), other);
            EXPECT_EQ(streamOf(*stranger, 0), third);
        }
        cudaStream_t seen = nullptr;
        std::thread([&] { seen = streamOf(*resources, 0); }).join();
        EXPECT_EQ(seen, own) << "of another thread";
    }
    EXPECT_EQ(streamOf(*resources, 0), own);
    EXPECT_EQ(contextOf(*resources, 0).stream, own);
}

/// To the call that asks first: what that one calls meanwhile has arrays of its
/// own.
TEST_P(CallStreams, SaysOnceThatArraysAreOnTheDevice) {
    const auto stranger = std::make_shared<FakeResources>(0);
    EXPECT_FALSE(contextOf(*resources, 0).arraysAreOnDevice);
    {
        CallStream call(resources, 0, other, true);
        EXPECT_FALSE(contextOf(*stranger, 0).arraysAreOnDevice);
        EXPECT_TRUE(contextOf(*resources, 0).arraysAreOnDevice);
        EXPECT_FALSE(contextOf(*resources, 0).arraysAreOnDevice);
    }
    {
        CallStream call(resources, 0, own, true);
        {
            CallStream inner(resources, 0, other);
            EXPECT_FALSE(contextOf(*resources, 0).arraysAreOnDevice);
        }
        EXPECT_TRUE(contextOf(*resources, 0).arraysAreOnDevice);
    }
    EXPECT_FALSE(contextOf(*resources, 0).arraysAreOnDevice);
}

TEST_P(CallStreams, EndsWithAnException) {
    try {
        CallStream call(resources, 0, other);
        write(streamOf(*resources, 0), 'a');
        throw 1;
    } catch (int) {
    }
    EXPECT_EQ(streamOf(*resources, 0), own);
    write(own, 'b');
    fake::finishAll();
    EXPECT_EQ(log, "ab");
}

TEST_P(CallStreams, TheDefaultStreamItself) {
    CallStream call(resources, 0, own);
    write(streamOf(*resources, 0), 'a');
    write(own, 'b');
    fake::finishAll();
    EXPECT_EQ(log, "ab");
}

/// The fake refuses whatever a capture forbids.
TEST_P(CallStreams, Captured) {
    write(own, 'a');
    fake::capture(other);
    {
        CallStream call(resources, 0, other);
        EXPECT_EQ(streamOf(*resources, 0), other);
        EXPECT_EQ(contextOf(*resources, 0).memoryStream, own);
    }
    EXPECT_EQ(streamOf(*resources, 0), own);
}

INSTANTIATE_TEST_SUITE_P(
        Schedules,
        CallStreams,
        ::testing::Values(Schedule::Lazy, Schedule::Eager, Schedule::Random));

} // namespace
} // namespace faiss_bits::test
