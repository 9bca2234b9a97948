/// Kernels and blocks of bits. None makes a CUDA call.

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "kernels/select/bits/BitsPlan.h"
#include "kernels/select/bits/BitsPolicy.h"

namespace faiss_bits::test {
namespace {

TEST(BitsPlans, HaveAKernelForEveryK) {
    for (int k = 1; k <= kMaxSelectK; ++k) {
        const int items = bitsItemsFor(k);
        ASSERT_GE(items * kBitsThreads, k) << "k=" << k;
    }
}

/// Blocks that do not fit a multiprocessor are not counted on.
TEST(BitsPlans, CountBlocksThatFit) {
    const DeviceTraits large;
    EXPECT_EQ(bitsBlocksAtOnce(large, 1), 5);
    EXPECT_EQ(bitsBlocksAtOnce(large, 1024), 4);
    EXPECT_EQ(bitsBlocksAtOnce(large, 2048), 3);
    DeviceTraits small;
    small.sharedBytes = 100 * 1024;
    EXPECT_EQ(bitsBlocksAtOnce(small, 1024), 4);
    EXPECT_EQ(bitsBlocksAtOnce(small, 2048), 2);
}

/// k = 1: one pass up to where a second one takes less time.
TEST(BitsPlans, TheBestOfShortRowsTakesOnePass) {
    const auto passes = [](idx_t rows, idx_t cols, int k) {
        SelectProblem p;
        p.rows = rows;
        p.cols = cols;
        p.k = k;
        return planBits(p).numPasses;
    };
    EXPECT_EQ(passes(1, 24576, 1), 1);
    EXPECT_EQ(passes(1, 24577, 1), 2);
    EXPECT_EQ(passes(132, 24576, 1), 1);
    EXPECT_EQ(passes(132, 24577, 1), 2);
    EXPECT_EQ(passes(133, 98304, 1), 1);
    EXPECT_EQ(passes(200, 131072, 1), 1);
    EXPECT_EQ(passes(200, 131073, 1), 2);
    EXPECT_EQ(passes(1, 32768, 2), 2);
}

} // namespace
} // namespace faiss_bits::test
