/// Every method of the program against one contract: values, key types, both
/// directions, every kind of k. Layouts are in TestSelectAlgorithmLayout, k
/// beyond 2048 in TestSelectAlgorithmLargeK.

#include "tests/select/AlgorithmHarness.h"

namespace faiss_bits::test {
namespace {

class SelectAlgorithmValues : public GpuTest,
                              public ::testing::WithParamInterface<Values> {};

TEST_P(SelectAlgorithmValues, MatchOracle) {
    const std::pair<DataType, bool> kinds[] = {
            {DataType::Float32, false},
            {DataType::Float32, true},
            {DataType::Float16, false},
            {DataType::BFloat16, true}};
    for (auto [type, largest] : kinds) {
        SelectCase c;
        c.values = GetParam();
        c.keyType = type;
        c.largest = largest;
        // A few blocks, a row split over blocks, more rows than blocks.
        c.rows = 3;
        c.cols = 4097;
        expectAllSelect(c, {1, 10, 33, 257, 2048});
        c.rows = 1;
        c.cols = 70001;
        expectAllSelect(c, {1, 100, 2048});
        c.rows = 300;
        c.cols = 700;
        expectAllSelect(c, {50, 700});
        if (HasFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectAlgorithmValues,
        ::testing::ValuesIn(kAllValues),
        [](const auto& info) { return nameOf(info.param); });

class SelectAlgorithms : public GpuTest {};

TEST_F(SelectAlgorithms, EveryKUpTo2048) {
    for (Values values : {Values::Random, Values::FewDistinct}) {
        SelectCase c;
        c.rows = 3;
        c.cols = 5000;
        c.values = values;
        expectAllSelect(c, kSelectKs);
    }
}

/// A sample of runs of 32 columns finds all of a run's keys or none. Where the
/// k best are few such runs, many rows get a limit with too few keys under it,
/// or with more than there is room for, and are selected from again.
TEST_F(SelectAlgorithms, RowsThatASampleMisleads) {
    SelectCase c;
    c.values = Values::BestInRuns;
    c.rows = 400;
    c.cols = 1 << 15;
    expectAllSelect(c, {32, 512, 2048});
    c.rows = 6;
    c.cols = 1 << 20;
    expectAllSelect(c, {32, 512, 2048});
    c.keyType = DataType::Float16;
    c.largest = true;
    expectAllSelect(c, {32, 2048});
}

TEST_F(SelectAlgorithms, KBeyondTheColumns) {
    for (int64_t cols : {0, 1, 2, 31, 33, 1000}) {
        for (bool largest : {false, true}) {
            for (DataType type : {DataType::Float32, DataType::BFloat16}) {
                SelectCase c;
                c.rows = 3;
                c.cols = cols;
                c.largest = largest;
                c.keyType = type;
                SelectData data(c);
                expectAllSelect(data, {1, 32, 1001, 2048});
                expectAllSelect(data, {2049, 5000}, anyKMethods());
            }
        }
    }
}

TEST_F(SelectAlgorithms, EveryColumnCount) {
    std::vector<int64_t> counts = kSelectCols;
    counts.insert(counts.end(), {8191, 8192, 8193, 16385, 32769});
    for (int64_t cols : counts) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            SelectCase c;
            c.rows = type == DataType::Float32 ? 2 : 3;
            c.cols = cols;
            c.keyType = type;
            expectAllSelect(c, {1, 100, 1025});
            if (HasFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
