/// Which kernel of lists of lanes has a row.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/select/short_rows/LaneListsLaunch.h"

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
    const auto shapeOf = [](uint32_t cols, bool isFew) {
        return laneListsShape(cols, isFew);
    };
    expectLines(
            false,
            shapeOf,
            kMostLaneListsCols,
            {{32, 8, 4},
             {64, 8, 8},
             {96, 8, 12},
             {128, 8, 16},
             {192, 16, 12},
             {256, 16, 16},
             {384, 32, 12},
             {512, 32, 16}});
    expectLines(
            true,
            shapeOf,
            kMostLaneListsCols,
            {{32, 8, 4},
             {128, 32, 4},
             {256, 32, 8},
             {384, 32, 12},
             {512, 32, 16}});
    expectLines(
            128,
            narrowListsShape,
            1200,
            {{32, 8, 4},
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
            {{32, 8, 4},
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
            {{32, 8, 4},
             {64, 16, 4},
             {128, 32, 4},
             {256, 32, 8},
             {384, 32, 12},
             {512, 32, 16},
             {768, 32, 24},
             {1200, 32, 32}});
}

} // namespace
} // namespace faiss_bits::test
