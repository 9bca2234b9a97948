/// Which kernel of lists of lanes has a row.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits::test {
namespace {

/// Written down by hand: one column more is of the next line.
TEST(LaneListsShapes, AreThoseOfTheKernels) {
    struct Line {
        uint32_t mostCols;
        int lanes;
        int items;
    };
    const auto expectLines = [](auto rows,
                                const auto& shapeOf,
                                uint32_t mostCols,
                                const std::vector<Line>& lines) {
        uint32_t cols = 2;
        for (const Line& line : lines) {
            for (; cols <= line.mostCols; ++cols) {
                const LaneListsShape shape = shapeOf(cols, rows);
                EXPECT_EQ(shape.lanes, line.lanes) << cols << " " << rows;
                EXPECT_EQ(shape.items, line.items) << cols << " " << rows;
            }
        }
        EXPECT_EQ(cols, mostCols + 1);
    };
    const auto shapeOf = [](uint32_t cols, uint64_t rowsOfSm) {
        return laneListsShape(cols, rowsOfSm);
    };
    expectLines(
            256,
            shapeOf,
            kMostManyLaneListsCols,
            {{16, 4, 4}, {32, 4, 8}, {48, 4, 12}, {64, 4, 16}, {96, 8, 12}});
    for (const int rows : {17, 255}) {
        expectLines(
                rows,
                shapeOf,
                kMostManyLaneListsCols,
                {{32, 8, 4}, {64, 8, 8}, {96, 8, 12}});
    }
    expectLines(
            16,
            shapeOf,
            kMostLaneListsCols,
            {{32, 8, 4},
             {128, 32, 4},
             {256, 32, 8},
             {384, 32, 12},
             {512, 32, 16}});
    expectLines(
            256,
            narrowListsShape,
            1200,
            {{16, 4, 4},
             {32, 4, 8},
             {48, 4, 12},
             {64, 4, 16},
             {96, 8, 12},
             {128, 8, 16},
             {192, 8, 24},
             {256, 8, 32},
             {384, 16, 24},
             {512, 16, 32},
             {768, 32, 24},
             {1200, 32, 32}});
    expectLines(
            128,
            narrowListsShape,
            1200,
            {{16, 4, 4},
             {32, 8, 4},
             {64, 8, 8},
             {96, 8, 12},
             {128, 8, 16},
             {192, 8, 24},
             {256, 8, 32},
             {384, 16, 24},
             {512, 16, 32},
             {768, 32, 24},
             {1200, 32, 32}});
    expectLines(
            127,
            narrowListsShape,
            1200,
            {{16, 4, 4},
             {32, 8, 4},
             {64, 16, 4},
             {128, 16, 8},
             {192, 16, 12},
             {256, 16, 16},
             {384, 16, 24},
             {512, 16, 32},
             {768, 32, 24},
             {1200, 32, 32}});
    expectLines(
            63,
            narrowListsShape,
            1200,
            {{16, 4, 4},
             {32, 8, 4},
             {64, 16, 4},
             {128, 32, 4},
             {256, 32, 8},
             {384, 32, 12},
             {512, 32, 16},
             {768, 32, 24},
             {1200, 32, 32}});
}

/// Longer rows of floats have other kernels where they are many.
TEST(LaneListsShapes, LeaveManyLongRowsToPacks) {
    SelectProblem p;
    p.rows = 100000;
    for (p.cols = 17; p.cols <= idx_t(kMostLaneListsCols); ++p.cols) {
        for (p.k = 2; p.k <= kMostLaneListsK; ++p.k) {
            ASSERT_TRUE(hasLaneLists(p) || fewOfPacksShape(p).packs > 0)
                    << p.cols << " k=" << p.k;
        }
    }
}

/// Of 16-bit keys in rows of one chunk: as many entries as are faster.
TEST(ShortRowsPolicies, NarrowRowsHaveRoom) {
    SelectProblem p;
    p.rows = 100000;
    p.cols = 602;
    const auto sorted = [&](int k, DataType type) {
        p.k = k;
        p.keyType = type;
        return shortRowsPolicy(p)->sorted;
    };
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        EXPECT_EQ(sorted(32, type), 2);
        EXPECT_EQ(sorted(33, type), 4);
        EXPECT_EQ(sorted(48, type), 4);
    }
    EXPECT_EQ(sorted(48, DataType::Float32), 2);
    EXPECT_EQ(sorted(49, DataType::Float32), 4);
    p.cols = 50;
    EXPECT_EQ(sorted(10, DataType::Float16), 2);
    EXPECT_EQ(sorted(11, DataType::Float16), 4);
    EXPECT_EQ(sorted(24, DataType::Float16), 4);
    EXPECT_EQ(sorted(25, DataType::Float16), 8);
    EXPECT_EQ(sorted(25, DataType::Float32), 4);
    p.cols = 120;
    EXPECT_EQ(sorted(55, DataType::Float16), 8);
    EXPECT_EQ(sorted(56, DataType::Float16), 16);
    p.cols = 200;
    EXPECT_EQ(sorted(24, DataType::Float16), 2);
    EXPECT_EQ(sorted(25, DataType::Float16), 4);
    p.cols = 500;
    EXPECT_EQ(sorted(23, DataType::Float16), 1);
    EXPECT_EQ(sorted(24, DataType::Float16), 2);
    // Every k has a kernel, up to the row's length.
    for (const idx_t rows : {1, 100000}) {
        p.rows = rows;
        for (p.cols = 1; p.cols <= 512; ++p.cols) {
            for (p.k = 1; p.k <= p.cols; ++p.k) {
                for (DataType type : {DataType::Float32, DataType::Float16}) {
                    p.keyType = type;
                    ASSERT_NE(shortRowsPolicy(p), nullptr)
                            << p.cols << " k=" << p.k;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
