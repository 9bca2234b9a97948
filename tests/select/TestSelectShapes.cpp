/// The shapes, strides and alignments that runSelect takes.

#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

class SelectShapes : public GpuTest,
                     public ::testing::WithParamInterface<int64_t> {};

TEST_P(SelectShapes, EveryColumnCount) {
    const int64_t cols = GetParam();
    for (int64_t rows : {1, 2, 3, 64, 257}) {
        if (rows * cols > (int64_t(1) << 22)) {
            continue;
        }
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.keyType = type;
            expectSelects(c, {1, 32, 100, 1024, 2048});
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

std::vector<int64_t> manyColumnCounts() {
    std::vector<int64_t> counts = kSelectCols;
    // Around the rows that are split in two, and one that is split finely.
    counts.insert(counts.end(), {8191, 8192, 8193, 16385, 32769, 1 << 20});
    return counts;
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectShapes,
        ::testing::ValuesIn(manyColumnCounts()));

class SelectLayout : public GpuTest {};

TEST_F(SelectLayout, ManyShortRows) {
    // More rows than a grid has blocks in y.
    for (int64_t cols : {1, 40, 300}) {
        SelectCase c;
        c.rows = 70000;
        c.cols = cols;
        c.values = Values::FewDistinct;
        expectSelects(c, {1, 33});
    }
}

/// The k best of a row have both signs: k is about half of it, or more.
TEST_F(SelectLayout, BestOfBothSigns) {
    for (int64_t cols : {600, 2431, 4000}) {
        for (Values values :
             {Values::Random,
              Values::FewDistinct,
              Values::SignedZeros,
              Values::Denormals,
              Values::BothInfinities,
              Values::SomeNan}) {
            for (bool largest : {false, true}) {
                SelectCase c;
                c.rows = 300;
                c.cols = cols;
                c.values = values;
                c.largest = largest;
                c.algorithm = SelectAlgorithm::SampleThreshold;
                expectSelects(c, {500, 1203, 2000});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(SelectLayout, SixtyFourLongRows) {
    SelectCase c;
    c.rows = 64;
    c.cols = 1 << 17;
    expectSelects(c, {1, 100, 2048});
}

TEST_F(SelectLayout, OneRowOf16777216) {
    SelectCase c;
    c.cols = 1 << 24;
    expectSelects(c, {1, 10, 2048});
}

TEST_F(SelectLayout, OneDescendingRowOf4194304) {
    SelectCase c;
    c.cols = 1 << 22;
    c.values = Values::Descending;
    expectSelects(c, {1, 100, 2048});
}

TEST_F(SelectLayout, RowStrideAboveColumns) {
    for (int64_t padding : {1, 2, 3, 4, 8, 100}) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            for (int64_t cols : {33, 4096, 70000}) {
                SelectCase c;
                c.rows = 3;
                c.cols = cols;
                c.keyType = type;
                c.padding = padding;
                expectSelects(c, {1, 100});
            }
        }
    }
}

TEST_F(SelectLayout, OutStrideAboveK) {
    for (int64_t cols : {20, 5000, 70000}) {
        for (bool givenIds : {false, true}) {
            SelectCase c;
            c.rows = 3;
            c.cols = cols;
            c.givenIds = givenIds;
            c.outPadding = 7;
            expectSelects(c, {1, 33, 1000});
        }
    }
}

TEST_F(SelectLayout, AnyAlignmentOfThePointers) {
    for (DataType type : {DataType::Float32, DataType::Float16}) {
        for (size_t shift = 1; shift < 16 / sizeOf(type); ++shift) {
            for (bool largest : {false, true}) {
                SelectCase c;
                c.rows = 2;
                c.cols = 20003;
                c.keyType = type;
                c.largest = largest;
                c.shift = shift;
                c.padding = shift;
                expectSelects(c, {1, 100, 1025});
            }
        }
    }
}

TEST_F(SelectLayout, MultiprocessorsNeverChangeTheResult) {
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{1, 500000},
          {2, 70000},
          {64, 40000},
          {300, 9000}}) {
        for (Values values : {Values::Random, Values::FewDistinct}) {
            SelectCase c;
            c.rows = rows;
            c.cols = cols;
            c.values = values;
            SCOPED_TRACE(c.describe());
            SelectData data(c);
            data.rank(2048);
            for (int k : {1, 100, 2048}) {
                data.options().multiprocessors = 1;
                const SelectResult one = data.run(k, nullptr, 0xFF);
                ASSERT_TRUE(data.check(k, one));
                for (int count : {2, 7, 132, 1000, 100000}) {
                    data.options().multiprocessors = count;
                    ASSERT_TRUE(one == data.run(k, nullptr, 0xFF))
                            << "multiprocessors=" << count << " k=" << k;
                }
            }
        }
    }
}

TEST_F(SelectLayout, NoColumnsGiveSentinels) {
    for (DataType type : {DataType::Float32, DataType::Float16}) {
        for (bool largest : {false, true}) {
            SelectCase c;
            c.rows = 70;
            c.cols = 0;
            c.keyType = type;
            c.largest = largest;
            expectSelects(c, {1, 33, 2048});
        }
    }
}

TEST_F(SelectLayout, NoColumnsNeedNoKeys) {
    SelectCase c;
    c.rows = 2;
    c.cols = 0;
    SelectProblem p = SelectData(c).problem(3);
    DeviceBuffer<float> keys(6, kOutputByte);
    DeviceBuffer<int64_t> ids(6, kOutputByte);
    p.keys = nullptr;
    p.outKeys = keys.data();
    p.outIds = ids.data();
    runSelect(p, {}, nullptr);
    EXPECT_EQ(keys.download(), std::vector<float>(6, maxOf(p.keyType)));
    EXPECT_EQ(ids.download(), std::vector<int64_t>(6, -1));
}

TEST_F(SelectLayout, NoRowsDoNothing) {
    SelectProblem p;
    p.rows = 0;
    p.cols = 100;
    p.k = 10;
    EXPECT_EQ(selectWorkspaceBytes(p), 0u);
    EXPECT_NO_THROW(runSelect(p, {}, nullptr));
}

} // namespace
} // namespace faiss_bits::test
