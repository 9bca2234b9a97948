/// What SampleThreshold's plan does with shapes whose times were measured. None
/// makes a CUDA call.

#include <tuple>

#include <gtest/gtest.h>

#include "kernels/select/threshold/HeldPlan.h"
#include "kernels/select/threshold/SecondPlaces.h"
#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// A second sample that a launch draws is as large as the first, unless all
/// rows pay for it.
TEST(ThresholdShapes, FewRowsHaveASecondSampleThatALaunchDraws) {
    const auto drawn = [](idx_t rows, idx_t cols, int k, DataType type) {
        const ThresholdPlan plan = planThreshold(onH200(rows, cols, k, type));
        EXPECT_GT(plan.againPlaces, 0);
        if (plan.secondDraw != SecondDraw::ByEachBlock) {
            const bool isBeside = plan.secondDraw == SecondDraw::WithFirst;
            EXPECT_EQ(
                    plan.againPlaces,
                    isBeside ? placesBeside(plan.samplePlaces, plan.sampleParts)
                             : plan.samplePlaces);
            EXPECT_LE(plan.againRanks[0].rank, plan.sampleRanks[0].rank);
            EXPECT_GT(plan.sampleParts, 1u);
        }
        return plan.secondDraw;
    };
    const DataType wide = DataType::Float32;
    const DataType narrow = DataType::Float16;
    EXPECT_EQ(drawn(1, 7682657, 5, wide), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(1, 1 << 27, 2048, narrow), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(2, 1 << 24, 50, wide), SecondDraw::WithFirst);
    // Each of the samples by half as many blocks.
    EXPECT_EQ(drawn(3, 1 << 25, 50, wide), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(5, 13421773, 805, narrow), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(5, 13421772, 805, narrow), SecondDraw::ByEachBlock);
    EXPECT_EQ(drawn(128, 1040447, 50, wide), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(4, (1 << 25) - 1, 50, wide), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(4, 1 << 25, 50, wide), SecondDraw::Alone);
    EXPECT_EQ(drawn(4, (1 << 26) - 1, 50, narrow), SecondDraw::WithFirst);
    EXPECT_EQ(drawn(4, 1 << 26, 50, narrow), SecondDraw::Alone);
    EXPECT_EQ(drawn(129, 1040447, 50, wide), SecondDraw::ByEachBlock);
    EXPECT_EQ(drawn(129, 1040448, 50, wide), SecondDraw::Alone);
    // One block draws it.
    EXPECT_EQ(drawn(1, 5640430, 249526, narrow), SecondDraw::ByEachBlock);
}

/// Both samples of a row are drawn by as many blocks as one of them otherwise.
TEST(ThresholdShapes, TwoSamplesTakeNoMoreBlocksThanOne) {
    for (const idx_t rows : {3, 4, 5, 16, 23, 64, 65, 128}) {
        SelectProblem p = onH200(
                rows, ((1 << 27) - 1) / (2 * rows), 50, DataType::Float16);
        p.device.computeCapability = 80; // clusters would take some
        const ThresholdPlan one = planThreshold(p);
        p.cols = (1 << 27) / (2 * rows) + 1;
        const ThresholdPlan both = planThreshold(p);
        ASSERT_EQ(both.secondDraw, SecondDraw::WithFirst) << both.toString();
        ASSERT_EQ(one.secondDraw, SecondDraw::ByEachBlock) << one.toString();
        EXPECT_EQ(2 * both.sampleParts, one.sampleParts) << rows;
        EXPECT_EQ(
                both.againPlaces,
                placesBeside(both.samplePlaces, both.sampleParts));
    }
}

/// Rows whose neighbours are alike have fewer survivors where they are so many
/// that one in twenty may be read again; random ones as many as ever.
TEST(ThresholdShapes, ManyAlikeRowsHaveLowerRanks) {
    const auto ranksOf = [](idx_t rows, idx_t cols, int k, DataType type) {
        const ThresholdPlan plan = planThreshold(onH200(rows, cols, k, type));
        EXPECT_TRUE(plan.fused) << plan.toString();
        return plan.sampleRanks;
    };
    for (const auto& [cols, k, type] :
         {std::tuple(8759, 1063, DataType::Float32),
          std::tuple(7504, 262, DataType::Float16)}) {
        const auto few = ranksOf(16 * 132 - 1, cols, k, type);
        const auto many = ranksOf(16 * 132, cols, k, type);
        EXPECT_EQ(many[0].rank, few[0].rank);
        EXPECT_EQ(many[0].most, few[0].most);
        for (int i = 1; i < kSampleRanks; ++i) {
            EXPECT_LE(many[i].rank, few[i].rank) << i;
        }
        EXPECT_LT(many.back().rank, 0.9 * few.back().rank);
    }
}

/// A limit far too high is seen by a list that is full, and not all of a row is
/// sorted.
TEST(ThresholdShapes, NoListHasRoomForAllOfARow) {
    const ThresholdPlan plan = planThreshold(onH200(2, 3850145, 1048575));
    EXPECT_GT(plan.againPlaces, 0);
    EXPECT_GE(plan.capacity, 0.93 * 3850145);
    EXPECT_LT(plan.capacity, 0.94 * 3850145);
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
