/// Argument checks and size queries of the queue methods. None makes a CUDA
/// call, so all of this runs without a device.

#include <cstdlib>
#include <functional>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "research/queues/PartialBitonicSelect.h"
#include "research/queues/QueueSelect.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

template <class T = void>
T* nowhere() {
    return reinterpret_cast<T*>(uintptr_t(1) << 20);
}

const Workspace kRoom = {nowhere(), size_t(1) << 40};

class QueueArguments : public ::testing::Test {
   protected:
    static void SetUpTestSuite() {
        // Any CUDA call would now fail, on a GPU machine too.
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    }

    QueueArguments() {
        good.rows = 4;
        good.cols = 1000000;
        good.k = 100;
        good.keys = nowhere();
        good.outKeys = nowhere();
        good.outIds = nowhere();
    }

    void expectBadOption(
            const QueueSelectOptions& o,
            const char* name,
            const char* value) {
        EXPECT_TRUE(throwsNaming(
                [&] { queueSelectWorkspaceBytes(good, o); }, name, value));
        EXPECT_TRUE(throwsNaming(
                [&] { runQueueSelect(good, o, kRoom, nullptr); }, name, value));
    }

    void expectBadOption(
            const PartialBitonicOptions& o,
            const char* name,
            const char* value) {
        EXPECT_TRUE(throwsNaming(
                [&] { partialBitonicWorkspaceBytes(good, o); }, name, value));
        EXPECT_TRUE(throwsNaming(
                [&] { runPartialBitonic(good, o, kRoom, nullptr); },
                name,
                value));
    }

    void expectBadRun(
            const SelectProblem& p,
            const char* name,
            const char* value = "") {
        EXPECT_TRUE(throwsNaming(
                [&] { runQueueSelect(p, {}, kRoom, nullptr); }, name, value));
        EXPECT_TRUE(throwsNaming(
                [&] { runPartialBitonic(p, {}, kRoom, nullptr); },
                name,
                value));
    }

    /// The size queries check the shape as well.
    void expectBadShape(
            const SelectProblem& p,
            const char* name,
            const char* value) {
        expectBadRun(p, name, value);
        EXPECT_TRUE(throwsNaming(
                [&] { queueSelectWorkspaceBytes(p, {}); }, name, value));
        EXPECT_TRUE(throwsNaming(
                [&] { partialBitonicWorkspaceBytes(p, {}); }, name, value));
    }

    SelectProblem good;
};

TEST_F(QueueArguments, QueueOptions) {
    QueueSelectOptions o;
    o.queue = QueueKind::Heap;
    expectBadOption(o, "aligned", "true");
    o = {};
    o.queue = QueueKind(9);
    o.aligned = false;
    expectBadOption(o, "queue", "9");
    o = {};
    o.localSort = true;
    expectBadOption(o, "localSort", "true");
    o = {};
    o.flushTogether = false;
    expectBadOption(o, "flushTogether", "false");
    for (int partition : {-4, 1, 3, 32}) {
        o = {};
        o.partition = partition;
        expectBadOption(o, "partition", std::to_string(partition).c_str());
    }
    for (int threads : {-1, 3, 1 << 18}) {
        o = {};
        o.threadsPerRow = threads;
        expectBadOption(o, "threadsPerRow", std::to_string(threads).c_str());
    }
    for (int m : {0, -8, 3, 4096}) {
        o = {};
        o.firstLevel = m;
        expectBadOption(o, "firstLevel", std::to_string(m).c_str());
    }
    o = {};
    o.memory = QueueMemory(7);
    expectBadOption(o, "memory", "7");
}

TEST_F(QueueArguments, BitonicOptions) {
    PartialBitonicOptions o;
    o.step = BitonicStep(5);
    expectBadOption(o, "step", "5");
    o = {};
    o.step = BitonicStep::Shuffles;
    o.buffered = true;
    expectBadOption(o, "buffered", "true");
    o = {};
    o.readsPerThread = 4;
    expectBadOption(o, "readsPerThread", "4");
    o = {};
    o.prefetch = true;
    expectBadOption(o, "prefetch", "1");
    o = {};
    o.buffered = true;
    for (int reads : {0, 3, 16}) {
        o.readsPerThread = reads;
        expectBadOption(o, "readsPerThread", std::to_string(reads).c_str());
    }
    for (int blocks : {-1, 1 << 17}) {
        o = {};
        o.blocksPerRow = blocks;
        expectBadOption(o, "blocksPerRow", std::to_string(blocks).c_str());
    }
}

TEST_F(QueueArguments, Shape) {
    for (int k : {0, -1, 2049}) {
        SelectProblem p = good;
        p.k = k;
        expectBadShape(p, "k", std::to_string(k).c_str());
    }
    SelectProblem p = good;
    p.rows = -1;
    expectBadShape(p, "rows", "-1");
    p.rows = kMaxSelectRows + 1;
    expectBadShape(p, "rows", "4294967296");
    p = good;
    p.cols = -5;
    expectBadShape(p, "cols", "-5");
    p.cols = kMaxSelectCols + 1;
    expectBadShape(p, "cols", "4294901761");
    p = good;
    p.rowStride = 17;
    expectBadShape(p, "rowStride", "17");
    p = good;
    p.keyType = DataType(9);
    expectBadShape(p, "keyType", "9");
    p = good;
    p.idType = IdType(9);
    expectBadShape(p, "idType", "9");
    p = good;
    p.device.multiprocessors = 0;
    expectBadShape(p, "multiprocessors", "0");
}

TEST_F(QueueArguments, Pointers) {
    SelectProblem p = good;
    p.keys = nullptr;
    expectBadRun(p, "keys");
    p = good;
    p.outKeys = nullptr;
    expectBadRun(p, "outKeys");
    p = good;
    p.outIds = nullptr;
    expectBadRun(p, "outIds");
    p = good;
    p.outStride = 99;
    expectBadRun(p, "outStride", "99");
    p = good;
    p.ids = nowhere();
    expectBadRun(p, "ids");
    p = good;
    p.colBias = nowhere<float>();
    p.rowBias = nowhere<float>();
    expectBadRun(p, "biases");
    p = good;
    p.idType = IdType::Int32;
    p.idOffset = int64_t(1) << 31;
    expectBadRun(p, "idOffset", "2147483648");
}

TEST_F(QueueArguments, ScratchMustBeAsLargeAsTheQuery) {
    const size_t bytes = queueSelectWorkspaceBytes(good, {});
    ASSERT_GT(bytes, 0u);
    EXPECT_TRUE(throwsNaming(
            [&] {
                runQueueSelect(good, {}, {nowhere(), bytes - 1}, nullptr);
            },
            "workspace",
            std::to_string(bytes)));
    PartialBitonicOptions blocks;
    blocks.blocksPerRow = 8;
    const size_t sortBytes = partialBitonicWorkspaceBytes(good, blocks);
    ASSERT_GE(sortBytes, size_t(4 * 8 * 100) * sizeof(uint64_t));
    EXPECT_TRUE(throwsNaming(
            [&] {
                runPartialBitonic(
                        good, blocks, {nowhere(), sortBytes - 1}, nullptr);
            },
            "workspace",
            std::to_string(sortBytes)));
    blocks.blocksPerRow = 1;
    EXPECT_EQ(partialBitonicWorkspaceBytes(good, blocks), 0u);
}

TEST_F(QueueArguments, ScratchIsBounded) {
    for (int partition : {0, 2, 16}) {
        for (int64_t rows : {1, 100, 1 << 20}) {
            SelectProblem p = good;
            p.rows = rows;
            p.cols = int64_t(1) << 20;
            p.k = 2048;
            QueueSelectOptions o;
            o.partition = partition;
            // What the sorts need comes on top.
            EXPECT_LT(
                    queueSelectWorkspaceBytes(p, o),
                    (size_t(3) << 30) + (size_t(1) << 28))
                    << rows << " rows, G=" << partition;
        }
    }
}

TEST_F(QueueArguments, NoRowsNeedNothing) {
    SelectProblem p = good;
    p.rows = 0;
    EXPECT_EQ(queueSelectWorkspaceBytes(p, {}), 0u);
    EXPECT_EQ(partialBitonicWorkspaceBytes(p, {}), 0u);
    p.keys = p.outKeys = p.outIds = nullptr;
    EXPECT_NO_THROW(runQueueSelect(p, {}, {}, nullptr));
    EXPECT_NO_THROW(runPartialBitonic(p, {}, {}, nullptr));
}

TEST_F(QueueArguments, OptionsOfTheNamedMethods) {
    EXPECT_TRUE(throwsNaming(
            [] { queueSelectOptionsOf(ResearchAlgorithm::PartialBitonic); },
            "algorithm"));
    const auto combined =
            queueSelectOptionsOf(ResearchAlgorithm::CombinedQueue);
    EXPECT_TRUE(combined.aligned && combined.buffered && combined.localSort);
    EXPECT_EQ(combined.partition, 4);
    EXPECT_FALSE(queueSelectOptionsOf(ResearchAlgorithm::MergeQueue).buffered);
}

} // namespace
} // namespace faiss_bits::test
