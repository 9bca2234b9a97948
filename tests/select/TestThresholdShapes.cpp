/// What SampleThreshold's plan does with shapes whose times were measured. None
/// makes a CUDA call.

#include <gtest/gtest.h>

#include "kernels/select/threshold/HeldPlan.h"
#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// A second sample as large as the first takes no longer lists.
TEST(ThresholdShapes, FewRowsHaveASecondSampleAsLargeAsTheFirst) {
    const auto drawn = [](idx_t rows, idx_t cols, int k, DataType type) {
        const ThresholdPlan plan = planThreshold(onH200(rows, cols, k, type));
        EXPECT_GT(plan.againPlaces, 0);
        if (plan.secondDraw != SecondDraw::ByEachBlock) {
            EXPECT_EQ(plan.againPlaces, plan.samplePlaces);
            EXPECT_EQ(plan.againRanks[0].rank, plan.sampleRanks[0].rank);
            EXPECT_GT(plan.sampleParts, 1u);
        }
        return plan.secondDraw;
    };
    const DataType wide = DataType::Float32;
    const DataType narrow = DataType::Float16;
    EXPECT_EQ(drawn(1, 7682657, 5, wide), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(1, 1 << 27, 2048, narrow), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(2, 1 << 24, 50, wide), SecondDraw::WithFirst);
    // 96 blocks draw the first one of three rows.
    EXPECT_EQ(drawn(3, 1 << 25, 50, wide), SecondDraw::ByEachBlock);
    EXPECT_EQ(drawn(4, 1 << 25, 50, wide), SecondDraw::Alone);
    EXPECT_EQ(drawn(4, (1 << 25) - 1, 50, wide), SecondDraw::ByEachBlock);
    EXPECT_EQ(drawn(4, 1 << 26, 50, narrow), SecondDraw::Alone);
    EXPECT_EQ(drawn(4, 1 << 25, 50, narrow), SecondDraw::ByEachBlock);
    // One block draws it.
    EXPECT_EQ(drawn(1, 5640430, 249526, narrow), SecondDraw::ByEachBlock);
}

/// Rows of large k that are too many for longer lists have another turn too,
/// with fewer places, so that no list grows for it.
TEST(ThresholdShapes, ManyRowsOfLargeKHaveAnotherTurn) {
    for (const SelectProblem& p :
         {onH200(14232, 34350, 3189, DataType::Float16),
          onH200(1502, 567593, 35992, DataType::BFloat16),
          onH200(79, 3781013, 515017, DataType::Float32)}) {
        const ThresholdPlan plan = planThreshold(p);
        EXPECT_GE(plan.againPlaces, 1) << plan.toString();
        EXPECT_LT(plan.againPlaces, 8) << plan.toString();
        EXPECT_LT(plan.capacity, 1.75 * p.k) << plan.toString();
        EXPECT_GE(plan.againRanks[0].rank, 1);
        EXPECT_EQ(plan.batchRows, p.rows) << plan.toString();
    }
}

/// Few rows that are not held in registers, without clusters: one launch up to
/// where the split plan's took less time (measured, H200).
TEST(ThresholdShapes, FewRowsTakeOneLaunch) {
    const auto fused = [](idx_t rows, idx_t cols, int k, DataType type) {
        SelectProblem p = onH200(rows, cols, k, type);
        p.device.computeCapability = 80;
        if (holdsRows(p)) {
            p.k = 1025; // one more than are held
        }
        return planThreshold(p).fused;
    };
    for (const idx_t rows : {1, 4, 16, 32}) {
        EXPECT_TRUE(fused(rows, 32768, 32, DataType::Float32)) << rows;
        EXPECT_FALSE(fused(rows, 32769, 32, DataType::Float32)) << rows;
        EXPECT_TRUE(fused(rows, 16384, 2048, DataType::Float32)) << rows;
        EXPECT_FALSE(fused(rows, 16385, 33, DataType::Float32)) << rows;
        EXPECT_TRUE(fused(rows, 16384, 10, DataType::Float16)) << rows;
        EXPECT_FALSE(fused(rows, 16385, 10, DataType::Float16)) << rows;
    }
    for (const idx_t rows : {33, 118}) {
        EXPECT_FALSE(fused(rows, 16385, 10, DataType::Float32)) << rows;
    }
    for (const idx_t rows : {119, 132}) {
        for (const DataType type : {DataType::Float32, DataType::Float16}) {
            EXPECT_TRUE(fused(rows, 102400, 2048, type)) << rows;
        }
    }
    EXPECT_TRUE(fused(200, 32768, 10, DataType::Float32));
    EXPECT_FALSE(fused(200, 32768, 129, DataType::Float16));
}

} // namespace
} // namespace faiss_bits::test
