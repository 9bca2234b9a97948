/// Which kernel of FewOfPacks.cuh has a row, and that it holds it.

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

TEST(FewOfPacksShapes, HoldRows) {
    for (int cols = kLeastPackCols; cols <= kMostPackCols; ++cols) {
        for (int k = 2; k <= 16; ++k) {
            const FewOfPacksShape shape =
                    fewOfPacksShape(onH200(100000, cols, k));
            const bool isTaken =
                    k >= (cols < 94 ? 5 : 2) && k <= (cols < 510 ? 16 : 8);
            ASSERT_EQ(shape.packs > 0, isTaken) << cols << " k=" << k;
            if (!isTaken) {
                continue;
            }
            // A row may begin at any of the four keys of a pack.
            const int step = shape.lanes * 4;
            EXPECT_LE(3 + cols, shape.packs * step) << cols;
            EXPECT_LE(surePacks(shape.lanes, shape.packs) * step, cols) << cols;
            EXPECT_GE(shape.lanes * shape.minima, 2 * k) << cols << " k=" << k;
            EXPECT_NO_THROW(fewOfPacksLaunch(shape)) << cols << " k=" << k;
        }
    }
}

TEST(FewOfPacksShapes, AreOfAsFewPacksAsThereAre) {
    const auto packs = [](idx_t cols) {
        return fewOfPacksShape(onH200(100000, cols, 6)).packs;
    };
    const auto lanes = [](idx_t cols) {
        return fewOfPacksShape(onH200(100000, cols, 6)).lanes;
    };
    EXPECT_EQ(packs(79), 0);
    EXPECT_EQ(packs(80), 3);
    EXPECT_EQ(packs(93), 3);
    EXPECT_EQ(packs(94), 4);
    EXPECT_EQ(packs(257), 9);
    EXPECT_EQ(packs(317), 10);
    EXPECT_EQ(packs(318), 12);
    EXPECT_EQ(packs(509), 16);
    EXPECT_EQ(lanes(509), 8);
    EXPECT_EQ(lanes(510), 16);
    EXPECT_EQ(packs(510), 9);
    EXPECT_EQ(packs(1021), 16);
}

TEST(FewOfPacksShapes, AreOfManyRowsOfFloats) {
    const auto takes = [](const SelectProblem& p) {
        return fewOfPacksShape(p).packs > 0;
    };
    SelectProblem p = onH200(100000, 100, 4);
    EXPECT_TRUE(takes(p));
    EXPECT_FALSE(takes(onH200(100000, 79, 6)));
    EXPECT_FALSE(takes(onH200(100000, 1022, 4)));
    EXPECT_FALSE(takes(onH200(100000, 100, 1)));
    EXPECT_FALSE(takes(onH200(100000, 100, 17)));
    p.keyType = DataType::Float16;
    EXPECT_FALSE(takes(p));
    p = onH200(100000, 100, 4);
    p.colBiasGiven = true;
    EXPECT_FALSE(takes(p));
    p = onH200(100000, 100, 4);
    p.rows = 16 * p.device.multiprocessors;
    EXPECT_FALSE(takes(p));
    p.rows += 1;
    EXPECT_TRUE(takes(p));
}

TEST(FewOfPacksShapes, HaveNoOtherKernels) {
    EXPECT_THROW(fewOfPacksLaunch({8, 11, 1}), Error);
    EXPECT_THROW(fewOfPacksLaunch({16, 9, 2}), Error);
}

} // namespace
} // namespace faiss_bits::test
