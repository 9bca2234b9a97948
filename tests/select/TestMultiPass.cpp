/// The paper's systems for large k: what their passes, buffers and batches may
/// get wrong. The contract that all algorithms share is in
/// TestSelectAlgorithms.

#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

const std::vector<SelectAlgorithm> kMultiPass = {
        SelectAlgorithm::BitsGlobal,
        SelectAlgorithm::SampleSelect,
        SelectAlgorithm::SampleSelectTwoStage,
        SelectAlgorithm::RadixSelect,
        SelectAlgorithm::Sort};

class MultiPass : public GpuTest {};

/// One block is enough up to 2048 columns, and sorts up to 8192 entries.
TEST_F(MultiPass, EdgesOfColumnsAndK) {
    for (int cols : {2047, 2048, 2049, 4096, 4097, 8192, 8193, 16385, 32769}) {
        SelectCase c;
        c.rows = 2;
        c.cols = cols;
        c.sorted = cols % 2 == 1;
        c.values = cols % 3 ? Values::Random : Values::FewDistinct;
        expectAllSelect(
                c,
                {1, 2048, 2049, 4096, 4097, cols - 1, cols, cols + 5},
                anyKMethods());
        if (HasFailure()) {
            return;
        }
    }
}

class MultiPassValues : public GpuTest,
                        public ::testing::WithParamInterface<Values> {};

/// A row split over blocks, whose bucket of the k-th may hold all of it: it
/// does not fit the buffer, and the keys are read again.
TEST_P(MultiPassValues, SplitRows) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        SelectCase c;
        c.rows = 2;
        c.cols = 150001;
        c.values = GetParam();
        c.keyType = type;
        c.largest = type != DataType::Float16;
        c.sorted = type != DataType::BFloat16;
        expectAllSelect(c, {1, 2049, 60000}, anyKMethods());
        if (HasFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        MultiPassValues,
        ::testing::ValuesIn(kAllValues),
        [](const auto& info) { return nameOf(info.param); });

/// Rows of one multiprocessor are never split, those of many as far as they
/// go.
TEST_F(MultiPass, AnyNumberOfBlocks) {
    SelectCase c;
    c.rows = 3;
    c.cols = 100003;
    c.values = Values::FewDistinct;
    SelectData data(c);
    for (int multiprocessors : {1, 5, 132, 5000}) {
        data.options().multiprocessors = multiprocessors;
        expectAllSelect(data, {5, 3000, 40000}, anyKMethods());
    }
}

/// Atomics do not show in the order of an unsorted result either.
TEST_F(MultiPass, UnsortedResultsAreTheSameBits) {
    SelectCase c;
    c.rows = 3;
    c.cols = 200001;
    c.sorted = false;
    SelectData data(c);
    for (SelectAlgorithm algorithm : kMultiPass) {
        data.options().algorithm = algorithm;
        for (int k : {100, 10000}) {
            const SelectResult first = data.run(k, nullptr, 0xFF);
            for (int i = 0; i < 3; ++i) {
                ASSERT_TRUE(first == data.run(k, nullptr, 0x00))
                        << nameOf(algorithm) << ", k=" << k;
            }
        }
    }
}

/// So many rows that their scratch is split into batches. All rows are alike,
/// and so must their results be.
TEST_F(MultiPass, MoreThanOneBatchOfRows) {
    constexpr int64_t kRows = 9000;
    constexpr int64_t kCols = 8200;
    constexpr int k = 3000;
    if (!hasFreeMemory(size_t(4) << 30)) {
        GTEST_SKIP() << "needs 4 GiB of free GPU memory";
    }
    std::mt19937 random(1);
    std::vector<float> keys =
            makeRow(Values::SomeNan, kCols, DataType::Float32, random);
    const auto ranked =
            topKOfRow(keys.data(), kCols, nullptr, int64_t(0), k, false);
    keys.resize(kRows * kCols);
    for (int64_t filled = kCols; filled < kRows * kCols; filled *= 2) {
        const int64_t more = std::min(filled, kRows * kCols - filled);
        std::copy_n(keys.begin(), more, keys.begin() + filled);
    }
    const DeviceBuffer<float> deviceKeys(keys);
    DeviceBuffer<float> outKeys(kRows * k, kOutputByte);
    DeviceBuffer<int64_t> outIds(kRows * k, kOutputByte);
    SelectProblem p;
    p.rows = kRows;
    p.cols = kCols;
    p.k = k;
    p.keys = deviceKeys.data();
    p.outKeys = outKeys.data();
    p.outIds = outIds.data();
    for (SelectAlgorithm algorithm : kMultiPass) {
        SCOPED_TRACE(nameOf(algorithm));
        p.algorithm = algorithm;
        outIds.fillBytes(kOutputByte);
        const DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p));
        EXPECT_LT(scratch.size(), size_t(5) << 29);
        runSelect(p, {scratch.data(), scratch.size()}, nullptr);
        const auto gotKeys = outKeys.download();
        const auto gotIds = outIds.download();
        const RowOfKeys row{keys.data(), kCols, nullptr, 0};
        ASSERT_TRUE(isTopKOfRow(
                row, ranked, gotKeys.data(), gotIds.data(), k, 0.f));
        for (int64_t r = 1; r < kRows; ++r) {
            ASSERT_EQ(
                    0,
                    std::memcmp(
                            gotIds.data(),
                            gotIds.data() + r * k,
                            k * sizeof(int64_t)))
                    << "row " << r;
            ASSERT_EQ(
                    0,
                    std::memcmp(
                            gotKeys.data(),
                            gotKeys.data() + r * k,
                            k * sizeof(float)))
                    << "row " << r;
        }
    }
}

// For the sanitizer: more columns than one block takes, sums of few.

TEST_F(MultiPass, SmallPasses) {
    for (bool sorted : {true, false}) {
        SelectCase c;
        c.rows = 2;
        c.cols = 40001;
        c.sorted = sorted;
        c.values = sorted ? Values::Random : Values::FewDistinct;
        expectAllSelect(c, {100, 3000, 20000}, anyKMethods());
    }
}

TEST_F(MultiPass, SmallBucketsThatDoNotFit) {
    SelectCase c;
    c.cols = 150000;
    c.values = Values::AllEqual;
    expectAllSelect(c, {5000}, anyKMethods());
}

} // namespace
} // namespace faiss_bits::test
