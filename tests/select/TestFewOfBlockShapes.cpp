/// Which kernel of FewOfBlock.cuh has a row, and that it holds it.

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

TEST(FewOfBlockShapes, HoldRows) {
    for (idx_t cols = 2; cols <= 16384; ++cols) {
        for (int k : {1, 2, 31, 40, 41, 64, 65}) {
            const SelectProblem p = onH200(100000, cols, k);
            const int items = fewOfBlockItems(p);
            const bool isTaken = cols >= (k <= 40 ? 3042 : 2049) &&
                    cols <= 10113 && k >= 2 && k <= 64;
            ASSERT_EQ(items > 0, isTaken) << cols << " k=" << k;
            if (!isTaken) {
                continue;
            }
            // A row may begin at any of 128 keys.
            EXPECT_LE(127 + cols, fewOfBlockThreads(items) * items) << cols;
            EXPECT_LE(2 * k, kFewOfBlockNumbers) << cols << " k=" << k;
            EXPECT_NO_THROW(fewOfBlockLaunch(items)) << cols;
            EXPECT_EQ(fewOfLanesShape(p).items, 0) << cols << " k=" << k;
        }
    }
}

TEST(FewOfBlockShapes, HaveAsFewKeysAsThereAre) {
    const auto items = [](idx_t cols) {
        return fewOfBlockItems(onH200(100000, cols, 41));
    };
    EXPECT_EQ(items(2049), 32);
    EXPECT_EQ(items(3969), 32);
    EXPECT_EQ(items(3970), 48);
    EXPECT_EQ(items(6017), 48);
    EXPECT_EQ(items(6018), 64);
    EXPECT_EQ(items(8065), 64);
    EXPECT_EQ(items(8066), 40);
    EXPECT_EQ(fewOfBlockThreads(40), 256);
    EXPECT_EQ(items(10113), 40);
    EXPECT_EQ(items(10114), 0);
}

TEST(FewOfBlockShapes, AreOfManyRowsOfFloats) {
    const auto takes = [](const SelectProblem& p) {
        return fewOfBlockItems(p) > 0;
    };
    SelectProblem p = onH200(100000, 5000, 4);
    EXPECT_TRUE(takes(p));
    p.keyType = DataType::Float16;
    EXPECT_FALSE(takes(p));
    p = onH200(100000, 5000, 4);
    p.colBiasGiven = true;
    EXPECT_FALSE(takes(p));
    p = onH200(100000, 5000, 4);
    p.rows = 16 * p.device.multiprocessors;
    EXPECT_FALSE(takes(p));
    p.rows += 1;
    EXPECT_TRUE(takes(p));
}

TEST(FewOfBlockShapes, HaveNoOtherKernels) {
    EXPECT_THROW(fewOfBlockLaunch(0), Error);
    EXPECT_THROW(fewOfBlockLaunch(56), Error);
}

} // namespace
} // namespace faiss_bits::test
