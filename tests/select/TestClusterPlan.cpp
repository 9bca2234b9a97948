/// Which rows the blocks of a cluster share. Makes no CUDA call.

#include <gtest/gtest.h>

#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// Where a cluster took less time than the launches of a split row (measured,
/// H100). Of up to 262,144 columns, those with more results than blocks that
/// hold rows find.
TEST(ClusterPlans, FewLongRowsAreShared) {
    const auto blocks = [](idx_t rows, idx_t cols, int k, DataType type) {
        const ThresholdPlan plan = planThreshold(onH200(rows, cols, k, type));
        return plan.isCluster ? int(plan.sampleParts) : 0;
    };
    const DataType wide = DataType::Float32;
    const DataType narrow = DataType::Float16;
    for (const DataType type : {wide, narrow}) {
        EXPECT_EQ(blocks(1, 32768, 1100, type), 0);
        EXPECT_EQ(blocks(1, 32769, 1100, type), 8);
        EXPECT_EQ(blocks(1, 65537, 1025, type), 16);
        EXPECT_EQ(blocks(1, 65537, 2048, type), 16);
        EXPECT_EQ(blocks(1, 65537, 2049, type), 16);
        EXPECT_EQ(blocks(1, 300000, 4096, type), 16);
        EXPECT_EQ(blocks(2, 300000, 2049, type), 0);
        EXPECT_EQ(blocks(1, 300000, 4097, type), 0);
        EXPECT_EQ(blocks(8, 100000, 1100, type), 16);
        EXPECT_EQ(blocks(9, 100000, 1100, type), 8);
        EXPECT_EQ(blocks(33, 100000, 1100, type), 4);
        EXPECT_EQ(blocks(34, 100000, 1100, type), 0);
        // 65,536 columns a block, or a mebibyte where all blocks are busy.
        EXPECT_EQ(blocks(1, 16 * 65536, 10, type), 16);
        EXPECT_EQ(blocks(1, 16 * 65536 + 1, 10, type), 0);
    }
    EXPECT_EQ(blocks(8, 1 << 22, 10, wide), 16);
    EXPECT_EQ(blocks(8, (1 << 22) + 1, 10, wide), 0);
    EXPECT_EQ(blocks(8, 1 << 23, 10, narrow), 16);
    SelectProblem p = onH200(1, 65537, 1100, wide);
    p.device.computeCapability = 80;
    EXPECT_FALSE(planThreshold(p).isCluster);
    p = onH200(1, 65537, 1100, wide);
    p.device.multiprocessors = 50;
    EXPECT_EQ(planThreshold(p).sampleParts, 8u);
    p.device.blockSharedBytes = 100 * 1024;
    EXPECT_FALSE(planThreshold(p).isCluster);
}

} // namespace
} // namespace faiss_bits::test
