/// How runSelect behaves on streams, in graphs and with refused arguments.

#include <thread>

#include "tests/common/CapturedGraph.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

/// A problem with its outputs and scratch, ready to be enqueued many times.
struct Enqueued {
    Enqueued(const SelectCase& c, int k)
            : k(k),
              data(c),
              outKeys(c.rows * k, kOutputByte),
              outIds(c.rows * k, kOutputByte) {
        problem = data.problem(k);
        problem.outKeys = outKeys.data();
        problem.outIds = outIds.data();
        scratch = DeviceBuffer<uint8_t>(selectWorkspaceBytes(problem));
        data.rank(k);
    }

    void enqueue(cudaStream_t stream) {
        runSelect(problem, {scratch.data(), scratch.size()}, stream);
    }

    SelectResult result() const {
        SelectResult r;
        const auto keys = outKeys.download();
        const auto ids = outIds.download();
        r.keyBytes.resize(keys.size() * sizeof(float));
        r.idBytes.resize(ids.size() * sizeof(int64_t));
        std::memcpy(r.keyBytes.data(), keys.data(), r.keyBytes.size());
        std::memcpy(r.idBytes.data(), ids.data(), r.idBytes.size());
        return r;
    }

    void clearOutputs() {
        outKeys.fillBytes(kOutputByte);
        outIds.fillBytes(kOutputByte);
    }

    int k;
    SelectData data;
    SelectProblem problem;
    DeviceBuffer<float> outKeys;
    DeviceBuffer<int64_t> outIds;
    DeviceBuffer<uint8_t> scratch;
};

/// Several blocks share a row, by lists in scratch: more rows than clusters
/// take, which need none.
SelectCase splitCase(uint32_t seed) {
    SelectCase c;
    c.rows = 40;
    c.cols = 60000;
    c.values = Values::FewDistinct;
    c.seed = seed;
    return c;
}

class SelectStreams : public GpuTest {};

TEST_F(SelectStreams, NonDefaultStream) {
    TestStream stream;
    expectSelects(splitCase(1), {1, 100, 2048}, stream);
    SelectCase c;
    c.rows = 300;
    c.cols = 3000;
    expectSelects(c, {1, 100, 2048}, stream);
}

TEST_F(SelectStreams, WorkIsOrderedOnTheStream) {
    // The keys arrive on the stream just before, the result is copied on it
    // just after, and nothing waits in between.
    TestStream stream;
    Enqueued task(splitCase(3), 100);
    const SelectProblem& p = task.problem;
    const size_t bytes = p.rows * p.cols * sizeof(float);
    DeviceBuffer<uint8_t> keys(bytes, 0x00);
    const void* source = p.keys;
    task.problem.keys = keys.data();
    DeviceBuffer<float> copiedKeys(task.outKeys.size());
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            keys.data(), source, bytes, cudaMemcpyDeviceToDevice, stream));
    task.enqueue(stream);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            copiedKeys.data(),
            task.outKeys.data(),
            copiedKeys.size() * sizeof(float),
            cudaMemcpyDeviceToDevice,
            stream));
    BITS_CUDA_CHECK(cudaMemsetAsync(keys.data(), 0, bytes, stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    EXPECT_TRUE(task.data.check(100, task.result()));
    EXPECT_EQ(copiedKeys.download(), task.outKeys.download());
}

TEST_F(SelectStreams, TwoAtOnce) {
    TestStream first;
    TestStream second;
    Enqueued a(splitCase(1), 2048);
    Enqueued b(splitCase(2), 100);
    for (int i = 0; i < 20; ++i) {
        a.clearOutputs();
        b.clearOutputs();
        a.enqueue(first);
        b.enqueue(second);
        a.enqueue(first);
        b.enqueue(second);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        ASSERT_TRUE(a.data.check(a.k, a.result())) << "round " << i;
        ASSERT_TRUE(b.data.check(b.k, b.result())) << "round " << i;
    }
}

TEST_F(SelectStreams, TwoThreadsAtOnce) {
    Enqueued a(splitCase(1), 257);
    Enqueued b(splitCase(2), 33);
    auto work = [](Enqueued& task) {
        TestStream stream;
        for (int i = 0; i < 50; ++i) {
            task.enqueue(stream);
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    };
    std::thread other([&] { work(b); });
    work(a);
    other.join();
    EXPECT_TRUE(a.data.check(a.k, a.result()));
    EXPECT_TRUE(b.data.check(b.k, b.result()));
}

TEST_F(SelectStreams, GraphCapture) {
    for (int k : {1, 100, 2048}) {
        TestStream stream;
        Enqueued task(splitCase(4), k);
        CapturedGraph graph(
                stream,
                [&] { task.enqueue(stream); },
                cudaStreamCaptureModeGlobal);
        EXPECT_EQ(
                task.outIds.download(),
                std::vector<int64_t>(
                        task.outIds.size(), int64_t(0xA5A5A5A5A5A5A5A5)))
                << "a captured call must not run";
        for (int i = 0; i < 2; ++i) {
            task.clearOutputs();
            task.scratch.fillBytes(i ? 0x00 : 0xFF);
            graph.launch();
            ASSERT_TRUE(task.data.check(k, task.result())) << "launch " << i;
        }
    }
}

TEST_F(SelectStreams, RefusedCallLeavesTheOutput) {
    Enqueued task(splitCase(5), 100);
    ASSERT_GT(task.scratch.size(), 0u) << "the case must need scratch";
    EXPECT_THROW(
            runSelect(
                    task.problem,
                    {task.scratch.data(), task.scratch.size() - 1},
                    nullptr),
            Error);
    for (uint8_t byte : task.result().keyBytes) {
        ASSERT_EQ(byte, kOutputByte);
    }
    // And the same problem still works.
    task.enqueue(nullptr);
    EXPECT_TRUE(task.data.check(100, task.result()));
}

} // namespace
} // namespace faiss_bits::test
