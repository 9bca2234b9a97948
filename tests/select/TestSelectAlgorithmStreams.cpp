/// Every method of the program: streams, graphs, workspace, and what is
/// refused; a small subset of all of it for the sanitizer.

#include "tests/common/CapturedGraph.h"
#include "tests/common/ExpectError.h"
#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

class EverySelectAlgorithm
        : public GpuTest,
          public ::testing::WithParamInterface<SelectMethod> {
   protected:
    /// A case that every method splits or buffers somehow.
    static SelectCase splitCase() {
        SelectCase c;
        c.rows = 2;
        c.cols = 100000;
        c.values = Values::FewDistinct;
        return c;
    }

    std::vector<int> ks() const {
        return GetParam().anyK ? std::vector<int>{1, 100, 2048, 5000}
                               : std::vector<int>{1, 100, 2048};
    }
};

TEST_P(EverySelectAlgorithm, NonDefaultStream) {
    TestStream stream;
    expectAllSelect(splitCase(), ks(), {GetParam()}, stream);
}

/// The strictest mode: any call that would wait, allocate, or touch another
/// stream ends the capture with an error.
TEST_P(EverySelectAlgorithm, GraphCapture) {
    SelectData data(splitCase());
    for (int k : ks()) {
        TestStream stream;
        SelectProblem p = data.problem(k);
        DeviceBuffer<uint8_t> outKeys(p.rows * k * 4, kOutputByte);
        DeviceBuffer<uint8_t> outIds(p.rows * k * 8, kOutputByte);
        DeviceBuffer<uint8_t> scratch(GetParam().workspaceBytes(p));
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        data.rank(k);

        CapturedGraph graph(
                stream,
                [&] {
                    GetParam().run(p, {scratch.data(), scratch.size()}, stream);
                },
                cudaStreamCaptureModeGlobal);
        for (uint8_t byte : outIds.download()) {
            ASSERT_EQ(byte, kOutputByte) << "a captured call must not run";
        }
        for (int i = 0; i < 2; ++i) {
            outKeys.fillBytes(kOutputByte);
            outIds.fillBytes(kOutputByte);
            scratch.fillBytes(i ? 0x00 : 0xFF);
            graph.launch();
            ASSERT_TRUE(data.check(k, {outKeys.download(), outIds.download()}))
                    << "launch " << i;
        }
    }
}

/// The keys arrive on the stream just before, and go just after.
TEST_P(EverySelectAlgorithm, WorkIsOrderedOnTheStream) {
    TestStream stream;
    SelectData data(splitCase());
    for (int k : ks()) {
        SelectProblem p = data.problem(k);
        const size_t bytes = p.rows * p.cols * 4;
        DeviceBuffer<uint8_t> keys(bytes, 0x00);
        DeviceBuffer<uint8_t> outKeys(p.rows * k * 4, kOutputByte);
        DeviceBuffer<uint8_t> outIds(p.rows * k * 8, kOutputByte);
        DeviceBuffer<uint8_t> scratch(GetParam().workspaceBytes(p));
        const void* source = p.keys;
        p.keys = keys.data();
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                keys.data(), source, bytes, cudaMemcpyDeviceToDevice, stream));
        GetParam().run(p, {scratch.data(), scratch.size()}, stream);
        BITS_CUDA_CHECK(cudaMemsetAsync(keys.data(), 0, bytes, stream));
        BITS_CUDA_CHECK(
                cudaMemsetAsync(scratch.data(), 0xFF, scratch.size(), stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        data.rank(k);
        EXPECT_TRUE(data.check(k, {outKeys.download(), outIds.download()}));
    }
}

TEST_P(EverySelectAlgorithm, WorkspaceTooSmallLeavesTheOutput) {
    SelectData data(splitCase());
    bool needsScratch = false;
    for (int k : ks()) {
        SelectProblem p = data.problem(k);
        DeviceBuffer<uint8_t> outKeys(p.rows * k * 4, kOutputByte);
        DeviceBuffer<uint8_t> outIds(p.rows * k * 8, kOutputByte);
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        const size_t bytes = GetParam().workspaceBytes(p);
        if (bytes == 0) {
            continue;
        }
        needsScratch = true;
        DeviceBuffer<uint8_t> scratch(bytes);
        EXPECT_TRUE(throwsNaming(
                [&] {
                    GetParam().run(p, {scratch.data(), bytes - 1}, nullptr);
                },
                "workspace",
                std::to_string(bytes - 1)));
        for (uint8_t byte : outIds.download()) {
            ASSERT_EQ(byte, kOutputByte);
        }
    }
    if (!needsScratch) {
        GTEST_SKIP() << "needs no scratch";
    }
}

TEST_P(EverySelectAlgorithm, NoColumnsGiveSentinels) {
    SelectCase c;
    c.rows = 70;
    c.cols = 0;
    for (bool largest : {false, true}) {
        c.largest = largest;
        expectAllSelect(c, ks(), {GetParam()});
    }
}

// ---- the subset for the sanitizer: every algorithm on ordinary keys and on
// many ties, a minute for one tool

/// Two rows of an ordinary kind, several tiles long.
TEST_P(EverySelectAlgorithm, SmallKeysOfEveryType) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        SelectCase c;
        c.rows = 2;
        c.cols = 5003;
        c.keyType = type;
        c.largest = type == DataType::Float16;
        if (type == DataType::Float32) {
            expectAllSelect(c, {1, 65, 1025}, {GetParam()});
        } else {
            expectAllSelect(c, {65}, {GetParam()});
        }
    }
}

/// One row that is split over blocks where the algorithm splits any; full of
/// ties, and in the order that suits none.
TEST_P(EverySelectAlgorithm, SmallSplitRow) {
    SelectCase c;
    c.cols = 40001;
    c.values = Values::FewDistinct;
    expectAllSelect(c, {1, 257}, {GetParam()});
    c.values = Values::Descending;
    expectAllSelect(c, {100}, {GetParam()});
}

TEST_P(EverySelectAlgorithm, SmallUnsortedUnaligned) {
    SelectCase c;
    c.rows = 3;
    c.cols = 4999;
    c.padding = 1;
    c.outPadding = 1;
    c.shift = 1;
    c.sorted = false;
    c.idType = IdType::Int32;
    c.values = Values::SomeNan;
    expectAllSelect(c, {1, 300}, {GetParam()});
}

TEST_P(EverySelectAlgorithm, SmallShortRows) {
    for (int64_t cols : {0, 1, 100}) {
        SelectCase c;
        c.rows = 3;
        c.cols = cols;
        expectAllSelect(c, {1, 128}, {GetParam()});
    }
}

TEST_P(EverySelectAlgorithm, SmallIdsAndBiasesThatItTakes) {
    SelectCase ids;
    ids.cols = 5000;
    ids.values = Values::FewDistinct;
    ids.givenIds = true;
    SelectCase bias;
    bias.cols = 5000;
    bias.bias = true;
    for (const SelectCase& c : {ids, bias}) {
        expectAllSelect(c, {1, 129}, {GetParam()});
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        EverySelectAlgorithm,
        ::testing::ValuesIn(contractMethods()),
        [](const auto& info) { return info.param.name; });

} // namespace
} // namespace faiss_bits::test
