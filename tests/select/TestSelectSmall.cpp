/// A subset small enough for compute-sanitizer (--gtest_filter=*Small*): every
/// kernel and path once, on the least data that reaches it.

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

class SelectSmall : public GpuTest {};

const std::vector<int> kSmallKs = {1, 5, 129, 257, 1025};

TEST_F(SelectSmall, OneBlockARow) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (bool largest : {false, true}) {
            SelectCase c;
            c.rows = 2;
            c.cols = 5003;
            c.keyType = type;
            c.largest = largest;
            expectSelects(c, kSmallKs);
        }
    }
}

TEST_F(SelectSmall, WorstOrder) {
    SelectCase c;
    c.rows = 2;
    c.cols = 6000;
    c.values = Values::Descending;
    expectSelects(c, kSmallKs);
}

TEST_F(SelectSmall, RowsSplitOverBlocks) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        // Clusters of blocks, and blocks of several launches.
        for (bool clusters : {true, false}) {
            SelectCase c;
            c.cols = 40001;
            c.values = Values::FewDistinct;
            c.keyType = type;
            c.clusters = clusters;
            expectSelects(c, kSmallKs);
        }
    }
}

TEST_F(SelectSmall, ShortRows) {
    for (int64_t cols : {0, 1, 33, 1000}) {
        SelectCase c;
        c.rows = 3;
        c.cols = cols;
        expectSelects(c, kSmallKs);
    }
}

TEST_F(SelectSmall, Unaligned) {
    SelectCase c;
    c.rows = 2;
    c.cols = 4999;
    c.padding = 1;
    c.outPadding = 1;
    c.shift = 1;
    expectSelects(c, kSmallKs);
}

TEST_F(SelectSmall, GivenIds) {
    for (IdType idType : {IdType::Int32, IdType::Int64}) {
        for (int64_t cols : {1500, 40000}) {
            SelectCase c;
            c.cols = cols;
            c.values = Values::FewDistinct;
            c.idType = idType;
            c.givenIds = true;
            expectSelects(c, kSmallKs);
        }
    }
}

TEST_F(SelectSmall, Bias) {
    for (int64_t cols : {5003, 40000}) {
        SelectCase c;
        c.cols = cols;
        c.bias = true;
        expectSelects(c, kSmallKs);
    }
}

TEST_F(SelectSmall, NanAndInfinity) {
    for (Values values : {Values::SomeNan, Values::BothInfinities}) {
        SelectCase c;
        c.cols = 5003;
        c.values = values;
        expectSelects(c, kSmallKs);
    }
}

} // namespace
} // namespace faiss_bits::test
