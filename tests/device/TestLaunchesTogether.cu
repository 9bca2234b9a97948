/// Kernels that go to the device as one: they do what they would one after
/// another, whatever changes from one time to the next.

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/common/LaunchesTogether.h"
#include "tests/common/CapturedGraph.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

struct Step {
    const uint32_t* from;
    uint32_t* to;
    uint32_t number;
};

/// Every block has a word. Each kernel reads what all blocks of the one before
/// wrote, which is late.
template <int kFactor>
__global__ void stepKernel(const __grid_constant__ Step p) {
    allowNext();
    const long long begin = clock64();
    while (clock64() - begin < 20'000) {
    }
    waitForPrevious();
    uint32_t sum = 0;
    for (uint32_t i = 0; i < gridDim.x; ++i) {
        sum += static_cast<const volatile uint32_t*>(p.from)[i];
    }
    if (threadIdx.x == 0) {
        p.to[blockIdx.x] = sum * kFactor + p.number + blockIdx.x;
    }
}

uint32_t stepOf(
        const std::vector<uint32_t>& from,
        uint32_t factor,
        uint32_t number,
        std::vector<uint32_t>& to) {
    uint32_t sum = 0;
    for (const uint32_t x : from) {
        sum += x;
    }
    for (size_t i = 0; i < to.size(); ++i) {
        to[i] = sum * factor + number + uint32_t(i);
    }
    return sum;
}

class LaunchesTogetherTest : public GpuTest {
   protected:
    /// Four rows of words, each of which a kernel makes of the one before.
    struct Rows {
        explicit Rows(uint32_t blocks, uint32_t seed)
                : numBlocks(blocks), values(blocks) {
            for (uint32_t i = 0; i < blocks; ++i) {
                values[i] = seed * 2654435761u + i * i;
            }
            for (auto& row : rows) {
                row = std::make_unique<DeviceBuffer<uint32_t>>(values);
            }
        }
        uint32_t numBlocks;
        std::vector<uint32_t> values;
        std::unique_ptr<DeviceBuffer<uint32_t>> rows[4];
    };

    /// otherKernels: in another order. Returns what is expected, and in asGraph
    /// whether the device got a graph.
    static std::vector<uint32_t> enqueue(
            const Rows& rows,
            uint32_t number,
            bool otherKernels,
            cudaStream_t stream,
            bool* asGraph = nullptr,
            size_t sharedBytes = 0) {
        LaunchesTogether together(stream);
        void (*const kernels[])(Step) = {
                otherKernels ? stepKernel<7> : stepKernel<3>,
                stepKernel<5>,
                otherKernels ? stepKernel<3> : stepKernel<7>};
        const uint32_t factors[] = {
                otherKernels ? 7u : 3u, 5u, otherKernels ? 3u : 7u};
        std::vector<uint32_t> expected = rows.values;
        for (uint32_t i = 0; i < 3; ++i) {
            launchTogether(
                    kernels[i],
                    dim3(rows.numBlocks),
                    32 * (i + 1),
                    sharedBytes,
                    stream,
                    Step{rows.rows[i]->data(),
                         rows.rows[i + 1]->data(),
                         number * (i + 1)});
            std::vector<uint32_t> next(expected.size());
            stepOf(expected, factors[i], number * (i + 1), next);
            expected = next;
        }
        const bool isGraph = together.enqueue();
        if (asGraph) {
            *asGraph = isGraph;
        }
        return expected;
    }
};

TEST_F(LaunchesTogetherTest, SmallTheSameWhateverChanges) {
    const TestStream stream;
    for (const uint32_t blocks : {1u, 40u, 7u}) {
        for (uint32_t seed = 0; seed < 4; ++seed) {
            const Rows rows(blocks, seed);
            for (const uint32_t number : {1u, 1u, 9u}) {
                bool asGraph = false;
                const auto expected =
                        enqueue(rows, number, seed % 2 == 1, stream, &asGraph);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                EXPECT_EQ(rows.rows[3]->download(), expected)
                        << blocks << " blocks, seed " << seed;
                EXPECT_TRUE(asGraph);
            }
        }
    }
}

/// A call does not wait for the one before, whose arguments it replaces.
TEST_F(LaunchesTogetherTest, ManyUnderWay) {
    const TestStream stream;
    std::vector<std::unique_ptr<Rows>> all;
    std::vector<std::vector<uint32_t>> expected;
    for (uint32_t i = 0; i < 50; ++i) {
        all.push_back(std::make_unique<Rows>(10 + i % 3, i));
    }
    for (uint32_t i = 0; i < 50; ++i) {
        expected.push_back(enqueue(*all[i], i, i % 5 == 0, stream));
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i]->rows[3]->download(), expected[i]) << i;
    }
}

/// More shared memory than a kernel has without asking: first, later, and less
/// of it again.
TEST_F(LaunchesTogetherTest, SmallSharedMemoryBeyondTheFirstLimit) {
    constexpr size_t kKiB = 1024;
    for (const bool startsWithMuch : {true, false}) {
        const TestStream stream;
        uint32_t number = 1;
        for (const size_t bytes :
             {startsWithMuch ? 60 * kKiB : 0, 90 * kKiB, 8 * kKiB}) {
            const Rows rows(6, number);
            bool asGraph = false;
            const auto expected = enqueue(
                    rows, number++, startsWithMuch, stream, &asGraph, bytes);
            EXPECT_TRUE(asGraph) << bytes;
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            EXPECT_EQ(rows.rows[3]->download(), expected) << bytes;
        }
    }
    // And with no graph: one kernel after another.
    const Rows rows(6, 9);
    const Step step{rows.rows[0]->data(), rows.rows[1]->data(), 2};
    launchTogether(stepKernel<11>, dim3(6), 32, 60 * kKiB, nullptr, step);
    BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
    std::vector<uint32_t> expected(6);
    stepOf(rows.values, 11, 2, expected);
    EXPECT_EQ(rows.rows[1]->download(), expected);
}

TEST_F(LaunchesTogetherTest, MoreStreamsThanGraphs) {
    std::vector<std::unique_ptr<TestStream>> streams;
    bool asGraph = true;
    for (uint32_t i = 0; i < 40; ++i) {
        streams.push_back(std::make_unique<TestStream>());
        const Rows rows(5, i);
        const auto expected =
                enqueue(rows, i, false, *streams.back(), &asGraph);
        BITS_CUDA_CHECK(cudaStreamSynchronize(*streams.back()));
        EXPECT_EQ(rows.rows[3]->download(), expected) << i;
    }
    EXPECT_FALSE(asGraph); // the last of 40
    const Rows rows(5, 1);
    const auto expected = enqueue(rows, 3, false, nullptr);
    BITS_CUDA_CHECK(cudaStreamSynchronize(nullptr));
    EXPECT_EQ(rows.rows[3]->download(), expected);
}

/// They are part of the graph that the caller captures.
TEST_F(LaunchesTogetherTest, CapturedByTheCaller) {
    const TestStream stream;
    const Rows rows(12, 3);
    bool asGraph = true;
    std::vector<uint32_t> expected;
    CapturedGraph graph(
            stream,
            [&] { expected = enqueue(rows, 4, false, stream, &asGraph); },
            cudaStreamCaptureModeGlobal);
    EXPECT_FALSE(asGraph);
    graph.launch(3);
    EXPECT_EQ(rows.rows[3]->download(), expected);
}

TEST_F(LaunchesTogetherTest, ThreadsOfOneStream) {
    const TestStream stream;
    constexpr int kThreads = 4;
    constexpr uint32_t kTimes = 20;
    std::vector<std::vector<std::unique_ptr<Rows>>> all(kThreads);
    std::vector<std::vector<std::vector<uint32_t>>> expected(kThreads);
    for (int t = 0; t < kThreads; ++t) {
        for (uint32_t i = 0; i < kTimes; ++i) {
            all[t].push_back(std::make_unique<Rows>(8, 100 * t + i));
        }
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (uint32_t i = 0; i < kTimes; ++i) {
                expected[t].push_back(
                        enqueue(*all[t][i], i, t % 2 == 1, stream));
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (int t = 0; t < kThreads; ++t) {
        for (uint32_t i = 0; i < kTimes; ++i) {
            EXPECT_EQ(all[t][i]->rows[3]->download(), expected[t][i]);
        }
    }
}

/// Fewer than a graph has are an error, and nothing is left behind.
TEST_F(LaunchesTogetherTest, FewerThanThree) {
    const TestStream stream;
    const Rows rows(3, 5);
    const Step step{rows.rows[0]->data(), rows.rows[1]->data(), 2};
    {
        LaunchesTogether together(stream);
        launchTogether(stepKernel<3>, dim3(3), 32, 0, stream, step);
    }
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(rows.rows[1]->download(), rows.values);
    {
        LaunchesTogether together(stream);
        EXPECT_THROW(LaunchesTogether{stream}, Error);
        launchTogether(stepKernel<3>, dim3(3), 32, 0, stream, step);
        EXPECT_THROW(together.enqueue(), Error);
    }
    const auto expected = enqueue(rows, 2, false, stream);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(rows.rows[3]->download(), expected);
}

} // namespace
} // namespace faiss_bits::test
