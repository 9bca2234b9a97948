/// The queue methods: every combination of options, what the options decide,
/// graphs and repeated runs.

#include "research/tests/TestQueueHarness.h"

namespace faiss_bits::test {
namespace {

class QueueOptions : public GpuTest, public ::testing::WithParamInterface<int> {
   protected:
    /// All queues and buffers with the partition of the parameter.
    static std::vector<SelectMethod> methods(int threadsPerRow) {
        std::vector<SelectMethod> list;
        for (QueueSelectOptions o : queuesAndBuffers()) {
            o.partition = GetParam();
            o.threadsPerRow = threadsPerRow;
            list.push_back(methodOf(o));
        }
        return list;
    }
};

TEST_P(QueueOptions, FewRows) {
    SelectCase c;
    c.rows = 3;
    c.cols = 4099;
    c.values = Values::FewDistinct;
    expectMethods(c, methods(0), {1, 10, 33, 257});
    c.rows = 1;
    c.cols = 70001;
    c.values = Values::Random;
    c.largest = true;
    expectMethods(c, methods(0), {100});
}

TEST_P(QueueOptions, OneThreadARow) {
    SelectCase c;
    c.rows = 77;
    c.cols = 1501;
    expectMethods(c, methods(1), {5, 64, 200});
}

TEST_P(QueueOptions, WorstOrder) {
    SelectCase c;
    c.rows = 2;
    c.cols = 3000;
    c.values = Values::Descending;
    expectMethods(c, methods(8), {9, 130});
}

INSTANTIATE_TEST_SUITE_P(
        Partition,
        QueueOptions,
        ::testing::Values(0, 2, 4, 8, 16),
        [](const auto& info) { return "G" + std::to_string(info.param); });

class QueueShapes : public GpuTest {};

TEST_F(QueueShapes, ThreadsPerRow) {
    for (int threads : {1, 2, 16, 32, 64, 1024}) {
        for (int partition : {0, 4}) {
            QueueSelectOptions o =
                    queueSelectOptionsOf(ResearchAlgorithm::BufferedSearch);
            o.threadsPerRow = threads;
            o.partition = partition;
            for (auto [rows, cols] :
                 {std::pair<int64_t, int64_t>{1, 5003}, {35, 1000}, {2, 1}}) {
                SelectCase c;
                c.rows = rows;
                c.cols = cols;
                c.values = Values::FewDistinct;
                expectMethods(c, {methodOf(o)}, {1, 100, 2048});
            }
        }
    }
}

TEST_F(QueueShapes, FirstLevel) {
    for (int m : {1, 2, 4, 8, 16, 64, 2048}) {
        for (bool aligned : {false, true}) {
            QueueSelectOptions o;
            o.aligned = aligned;
            o.firstLevel = m;
            SelectCase c;
            c.rows = 2;
            c.cols = 5000;
            expectMethods(c, {methodOf(o)}, {1, 8, 9, 100, 1500});
        }
    }
}

TEST_F(QueueShapes, SharedAndGlobalMemory) {
    for (QueueMemory memory : {QueueMemory::Shared, QueueMemory::Global}) {
        for (int partition : {0, 4}) {
            QueueSelectOptions o =
                    queueSelectOptionsOf(ResearchAlgorithm::CombinedQueue);
            o.partition = partition;
            o.memory = memory;
            SelectCase c;
            c.rows = 40;
            c.cols = 9000;
            // 64 of them need 20 KB a warp: any device has that.
            expectMethods(c, {methodOf(o)}, {3, 64});
        }
    }
}

TEST_F(QueueShapes, MoreSharedMemoryThanTheDeviceHas) {
    QueueSelectOptions o;
    o.memory = QueueMemory::Shared;
    SelectCase c;
    c.cols = 5000;
    SelectData data(c);
    EXPECT_THROW(data.run(2048, nullptr, 0xFF, methodOf(o)), Error);
}

TEST_F(QueueShapes, ManyRows) {
    SelectCase c;
    c.rows = 20011;
    c.cols = 130;
    expectMethods(c, namedQueueMethods(), {1, 20});
}

TEST_F(QueueShapes, MoreRowsThanScratch) {
    // 131072 queues of 2048 a row are 2 GiB, so each row is a round of its
    // own, and what one leaves in the scratch must not reach the next.
    QueueSelectOptions o;
    o.threadsPerRow = 1 << 17;
    SelectCase c;
    c.rows = 2;
    c.cols = 300001;
    SelectData data(c);
    const size_t bytes = queueSelectWorkspaceBytes(data.problem(2048), o);
    ASSERT_LT(bytes, size_t(3) << 30) << "the rows are in one round";
    if (!hasFreeMemory(bytes)) {
        GTEST_SKIP() << "not enough memory";
    }
    data.rank(2048);
    EXPECT_TRUE(data.check(2048, data.run(2048, nullptr, 0x00, methodOf(o))));
}

class QueueStreams : public GpuTest {};

TEST_F(QueueStreams, CapturedInAGraph) {
    SelectCase c;
    c.rows = 2;
    c.cols = 50000;
    constexpr int k = 100;
    std::vector<SelectMethod> methods = namedQueueMethods();
    methods.push_back(methodOf(PartialBitonicOptions{}));
    SelectData data(c);
    data.rank(k);
    for (const SelectMethod& method : methods) {
        DeviceBuffer<uint8_t> outKeys(c.rows * k * 4, kOutputByte);
        DeviceBuffer<uint8_t> outIds(c.rows * k * 8, kOutputByte);
        SelectProblem p = data.problem(k);
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        DeviceBuffer<uint8_t> scratch(method.workspaceBytes(p));
        TestStream stream;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        BITS_CUDA_CHECK(cudaStreamBeginCapture(
                stream, cudaStreamCaptureModeThreadLocal));
        method.run(p, {scratch.data(), scratch.size()}, stream);
        BITS_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        BITS_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int run = 0; run < 2; ++run) {
            outKeys.fillBytes(kOutputByte);
            outIds.fillBytes(kOutputByte);
            BITS_CUDA_CHECK(cudaGraphLaunch(executable, stream));
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            EXPECT_TRUE(data.check(k, {outKeys.download(), outIds.download()}))
                    << method.name;
        }
        BITS_CUDA_CHECK(cudaGraphExecDestroy(executable));
        BITS_CUDA_CHECK(cudaGraphDestroy(graph));
    }
}

TEST_F(QueueStreams, SameBitsEveryRun) {
    SelectCase c;
    c.rows = 3;
    c.cols = 20000;
    c.values = Values::FewDistinct;
    SelectData data(c);
    std::vector<SelectMethod> methods = namedQueueMethods();
    PartialBitonicOptions buffered;
    buffered.buffered = true;
    buffered.readsPerThread = 8;
    methods.push_back(methodOf(buffered));
    for (const SelectMethod& method : methods) {
        const auto first = data.run(300, nullptr, 0xFF, method);
        EXPECT_TRUE(first == data.run(300, nullptr, 0x00, method))
                << method.name;
    }
}

} // namespace
} // namespace faiss_bits::test
