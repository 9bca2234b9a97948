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

} // namespace
} // namespace faiss_bits::test
