/// Which rows blocks hold in registers. Makes no CUDA call.

#include <gtest/gtest.h>

#include "kernels/select/threshold/HeldPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// Few rows of some thousand columns are held in registers, by one block or a
/// cluster each; blocks of clusters have a multiprocessor of their own.
TEST(HeldPlans, FewRowsAreHeld) {
    const auto blocks = [](idx_t rows, idx_t cols, int k) {
        const SelectProblem p = onH200(rows, cols, k);
        const ThresholdPlan plan = planThreshold(p);
        EXPECT_EQ(plan.isHeld, holdsRows(p));
        return plan.isHeld ? int(plan.sampleParts) : 0;
    };
    EXPECT_EQ(blocks(1, 1024, 10), 0);
    EXPECT_EQ(blocks(1, 1025, 1024), 1);
    EXPECT_EQ(blocks(1, 1025, 1025), 0);
    EXPECT_EQ(blocks(1, 8192, 10), 1);
    EXPECT_EQ(blocks(1, 8193, 10), 2);
    EXPECT_EQ(blocks(264, 8192, 10), 1);
    EXPECT_EQ(blocks(265, 8192, 10), 0);
    // Half of the multiprocessors have no block: two a row.
    EXPECT_EQ(blocks(66, 16384, 10), 2);
    EXPECT_EQ(blocks(67, 16384, 10), 1);
    EXPECT_EQ(blocks(66, 16385, 10), 2);
    EXPECT_EQ(blocks(67, 16385, 10), 0);
    EXPECT_EQ(blocks(1, 100000, 128), 16);
    EXPECT_EQ(blocks(8, 262144, 1024), 16);
    EXPECT_EQ(blocks(9, 262144, 10), 0);
    EXPECT_EQ(blocks(1, 262145, 10), 0);
    SelectProblem p = onH200(1, 16385, 10);
    p.device.computeCapability = 80;
    EXPECT_FALSE(holdsRows(p));
    p.cols = 16384;
    EXPECT_TRUE(holdsRows(p));
    // Auto takes them where the table has short rows, but for k = 1.
    for (const int k : {1, 2}) {
        p = onH200(5, 2000, k);
        EXPECT_EQ(
                planSelection(p).algorithm() ==
                        SelectAlgorithm::SampleThreshold,
                k > 1);
    }
}

} // namespace
} // namespace faiss_bits::test
