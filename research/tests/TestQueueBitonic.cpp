/// Partial bitonic sort: every step and option.

#include "research/tests/TestQueueHarness.h"

namespace faiss_bits::test {
namespace {

const std::vector<DataType> kKeyTypes = {
        DataType::Float32,
        DataType::Float16,
        DataType::BFloat16};

std::vector<SelectMethod> bitonicMethods(int blocksPerRow = 0) {
    std::vector<PartialBitonicOptions> list = bitonicSteps();
    for (PartialBitonicOptions& o : list) {
        o.blocksPerRow = blocksPerRow;
    }
    return methodsOf(list);
}

class QueueBitonicValues : public GpuTest,
                           public ::testing::WithParamInterface<Values> {};

TEST_P(QueueBitonicValues, MatchOracle) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{3, 4097}, {1, 60001}, {600, 700}}) {
        for (DataType type : kKeyTypes) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = GetParam();
            c.keyType = type;
            c.largest = (rows + int(type)) % 2 == 0;
            expectMethods(c, bitonicMethods(), {1, 50, 700});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        QueueBitonicValues,
        ::testing::ValuesIn(kAllValues),
        [](const auto& info) { return nameOf(info.param); });

class QueueBitonicShapes : public GpuTest {};

TEST_F(QueueBitonicShapes, EveryK) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{2, 6000}, {1, 100001}, {40, 2048}}) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        expectMethods(c, bitonicMethods(), kSelectKs);
    }
}

TEST_F(QueueBitonicShapes, EveryCols) {
    for (int64_t cols : kSelectCols) {
        SelectCase c;
        c.rows = 3;
        c.cols = cols;
        c.values = Values::FewDistinct;
        expectMethods(c, bitonicMethods(), {1, 129, 1000});
    }
}

TEST_F(QueueBitonicShapes, NoColumns) {
    SelectCase c;
    c.rows = 3;
    c.cols = 0;
    expectMethods(c, bitonicMethods(), {1, 2048});
}

TEST_F(QueueBitonicShapes, BlocksPerRow) {
    // Also more blocks than columns, and partial results that take further
    // passes to merge.
    for (int blocks : {1, 2, 7, 500}) {
        for (int64_t cols : {3, 5000, 200000}) {
            SelectCase c;
            c.rows = 2;
            c.cols = cols;
            c.values = Values::FewDistinct;
            expectMethods(c, bitonicMethods(blocks), {1, 600});
        }
    }
}

TEST_F(QueueBitonicShapes, WorstOrder) {
    for (Values values : {Values::Descending, Values::Ascending}) {
        SelectCase c;
        c.rows = 2;
        c.cols = 40000;
        c.values = values;
        expectMethods(c, bitonicMethods(1), {10, 257, 2048});
    }
}

TEST_F(QueueBitonicShapes, StridesAndIds) {
    for (DataType type : kKeyTypes) {
        SelectCase c;
        c.rows = 5;
        c.cols = 4999;
        c.keyType = type;
        c.padding = 3;
        c.outPadding = 2;
        c.shift = 1;
        c.idOffset = 1000;
        c.idType = IdType::Int32;
        expectMethods(c, bitonicMethods(), {77, 500});
    }
}

TEST_F(QueueBitonicShapes, NonDefaultStream) {
    TestStream stream;
    SelectCase c;
    c.rows = 2;
    c.cols = 300000;
    expectMethods(c, bitonicMethods(), {100, 2048}, stream);
}

} // namespace
} // namespace faiss_bits::test
